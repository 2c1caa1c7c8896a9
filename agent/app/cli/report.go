package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// reportCommand is one `benchwatch report`.
type reportCommand struct {
	*store
	output
	names []string
}

func newReport() *cobra.Command {
	cmd := newCommand("report", "Write a report about runs. With --output=FILE.html it is a self-contained page: for a PDF, print that. Every second: benchwatch export.",
		"benchwatch report last --output=report.html")
	r := &reportCommand{}
	cmd.arguments(&r.names, "RUN...", "Id of a run, its beginning, last or last~1")
	r.declareFormat(cmd, "text, html, markdown, csv or json (default: by the name of the file, else text)", "text", "html", "markdown", "csv", "json")
	r.output.declare(cmd)
	r.declareAll(cmd)
	r.store = addReadingStore(cmd)
	return cmd.does(r.run)
}

func (r *reportCommand) run(s Streams) error {
	if err := r.loadToRead(s); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	screen := r.screen(s)
	r.format = cmp.Or(r.format, text)
	dirs, err := r.findRuns(r.names)
	if err != nil {
		return err
	}
	others := r.metas()
	pager := ""
	if screen.Is && r.format == text {
		pager = os.Getenv("PAGER")
	}
	doc := report.Document{Made: time.Now(), Version: version.Version, VerdictLast: screen.Is && pager == ""}
	incomplete := false
	for _, dir := range dirs {
		h, err := r.history(context.Background(), dir)
		if err != nil {
			return err
		}
		incomplete = incomplete || h.Damage.Output != nil
		for _, problem := range h.Damage.Problems {
			s.notice("run %s: %s", dir.ID(), problem)
		}
		one := report.New(h, others...)
		if r.prometheus != "" {
			if err := one.AddHosts(context.Background(), h, r.prometheus); err != nil {
				s.notice("run %s: %v", dir.ID(), err)
			}
		}
		doc.Runs = append(doc.Runs, one)
	}
	err = r.document(s.through(pager), func(w io.Writer) error { return r.write(w, &doc, screen) })
	if err == nil && incomplete { // what is missing was printed
		return &exitError{Status: exitFailure}
	}
	return err
}

func (r *reportCommand) write(w io.Writer, doc *report.Document, screen terminal.Terminal) error {
	switch r.format {
	case "csv":
		return doc.CSV(w)
	case "json":
		return table.JSON(w, doc)
	}
	return doc.Page().Write(w, r.format, screen)
}

// writeJSON writes the report of one run for a program.
func writeJSON(w io.Writer, h *record.History) error {
	return table.JSON(w, report.Document{Made: time.Now(), Version: version.Version, Runs: []report.Report{report.New(h)}})
}
