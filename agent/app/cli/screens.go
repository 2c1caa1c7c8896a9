package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// screens are the flags that the help of a command shows on one screen, under headings. --help-all and the
// documentation have the others. A command that is not listed shows all flags but those of configurationFlags.
var screens = map[string][]screen{
	"run": {
		{"What to run", "label on no-inject"},
		{"What to sample", "sample cluster wait-ready"},
		{"When to stop", "abort-when drain-timeout"},
		{"Output", "require format data-dir"},
	},
	"sweep": {
		{"What to run", "set repeat before sample"},
		{"When to stop", "stop-when abort-when resume"},
		{"Output", "output format measure"},
	},
	"seek": {
		{"What to run", "max subject-to from to before"},
		{"When to stop", "precision abort-when resume"},
		{"Output", "output format"},
	},
	"ab": {
		{"What to run", "a b toggle values before"},
		{"When to stop", "fail-if strict max-time resume"},
		{"Output", "output format"},
	},
	"compare": {
		{"What to decide", "fail-if strict"},
		{"What to draw", "x lines measure"},
		{"Output", "output format all"},
	},
	"history": {
		{"Which runs", "label tool workload since until"},
		{"What to show", "measure by mark"},
		{"Output", "output format"},
	},
	"export": {
		{"Output", "format output servers remote-write"},
		{"About a log file", "tool start label cluster"},
	},
	"runs import": {
		{"About the logs", "label-from label tool start title"},
		{"Servers", "cluster targets"},
		{"Output", "format"},
	},
	"runs": {
		{"Which runs", "last label tool workload since until"},
		{"Output", "format archive"},
	},
	"runs label": {{"Flags", "format data-dir"}},
	"runs rm": {
		{"Which runs", "older-than max-count max-size label tool workload"},
		{"What to do", "dry-run yes format"},
	},
	"init": {
		{"Servers", "target password-file"},
		{"Grafana and Prometheus", "grafana.url grafana.token-file prometheus.url"},
		{"Output", "config.file force yes"},
	},
	"agent": {
		{"Flags", "config.file data-dir web.listen-address web.config.file web.external-url log.level"},
	},
	"replay": {
		{"Flags", "speed linger web.listen-address data-dir format"},
	},
	"group attach": {
		{"Flags", "linger data-dir format"},
	},
	"status": {
		{"Servers", "config.file"},
		{"A server without a configuration", "engine address user password-file"},
		{"Output", "interval once hosts format"},
	},
	"archive list": {
		{"Which runs", "label tool workload since until"},
		{"Output", "format archive"},
	},
	"dashboards import": {{"Flags", "config.file grafana.url grafana.token-file grafana.folder format"}},
	"parse":             {{"Flags", "tool config.file"}},
}

// screen is a heading and the names of the flags under it.
type screen struct{ title, flags string }

// isConfiguration reports whether a flag means the same for every command that has it: the help on one screen only
// names it.
func isConfiguration(name string) bool {
	return slices.Contains([]string{"config.file", "data-dir", "ssh", "remote-benchwatch"}, name) ||
		strings.HasPrefix(name, "log.") || strings.HasPrefix(name, "web.")
}

// flagSection is a heading with its flags.
type flagSection struct {
	title string
	flags []*pflag.Flag
}

// flagsOf divides the flags of a command: the sections of its help, how many flags are in none, and the names of the
// configuration in none, those of one family as one. With all, every flag is in a section.
func flagsOf(c *cobra.Command, all bool) (sections []flagSection, others int, configuration []string) {
	shown := map[string]bool{"help": true, "help-all": true}
	for _, s := range screens[below(c)] {
		section := flagSection{title: s.title}
		for name := range strings.FieldsSeq(s.flags) {
			shown[name] = true
			section.flags = append(section.flags, c.Flag(name))
		}
		sections = append(sections, section)
	}
	more := flagSection{title: "Flags"}
	if len(sections) > 0 {
		more.title = "Other flags"
	}
	rest := flagSection{title: "Configuration"}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || shown[f.Name]:
		case isConfiguration(f.Name):
			rest.flags = append(rest.flags, f)
		default:
			more.flags = append(more.flags, f)
		}
	})
	if !all {
		for _, f := range rest.flags {
			name := "--" + f.Name
			if family, _, ok := strings.Cut(name, "."); ok && family != "--config" {
				name = family + ".*"
			}
			if !slices.Contains(configuration, name) {
				configuration = append(configuration, name)
			}
		}
		if len(sections) > 0 {
			return sections, len(more.flags), configuration
		}
		return []flagSection{more}, 0, configuration
	}
	return append(sections, more, rest), 0, nil
}
