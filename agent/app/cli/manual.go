package cli

import (
	"cmp"
	_ "embed"
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

//go:embed manual.tmpl
var manualTemplate string

// addManual makes --help-man print a page with the parts that Unix manuals have, in
// place of kingpin's. The result is the same for the same program: it has no date.
func addManual(app *kingpin.Application) {
	kingpin.ManPageTemplate = manualTemplate
	app.UsageFuncs(template.FuncMap{
		"Roff":    roff,
		"Version": func() string { return roff(version.Version) },
		"Statuses": func() [][2]string {
			var rows [][2]string
			for _, s := range exitStatuses {
				rows = append(rows, [2]string{s.status, roff(s.meaning)})
			}
			return rows
		},
		"Example": func(c *kingpin.CmdModel) string { return roff(c.HelpLong) },
		"PlaceHolder": func(a *kingpin.ArgModel) string {
			return roff(cmp.Or(a.PlaceHolder, a.Name))
		},
	})
}

// roff quotes text for a manual page: no character of it is an instruction, options
// keep their ASCII hyphens, and `code` is bold.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "…", `\&...`, "–", `\(en`).Replace(s)
	parts := strings.Split(s, "`")
	if len(parts)%2 == 1 {
		for i := 1; i < len(parts); i += 2 {
			parts[i] = `\fB` + parts[i] + `\fR`
		}
		s = strings.Join(parts, "")
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
