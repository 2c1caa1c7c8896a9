package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/metrics"
	"github.com/benchwatch/benchwatch/agent/report"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// exportCommand is one `benchwatch export`.
type exportCommand struct {
	*store
	output
	*logOptions
	names   *[]string
	format  *string
	servers *bool

	streams Streams
	temp    string // where logs are made runs of, for as long as it takes
}

func addExport(app *kingpin.Application) (string, action) {
	cmd := addCommand(app, "export", "Export everything that was recorded of runs with its timestamps: for Prometheus (see scripts/backfill.sh), a spreadsheet or a program.",
		"benchwatch export last --format=csv --output=run.csv")
	r := &exportCommand{}
	r.names = cmd.Arg("RUN|LOGFILE", "Id of a run, the beginning of one, last, or a log file").Required().Strings()
	r.format = cmd.Flag("format", "Format of the export: openmetrics, csv or json (one object per line)").Default("openmetrics").Enum("openmetrics", "csv", "json")
	r.servers = cmd.Flag("servers", "With --format=csv, export the samples of the servers instead of the intervals of the tool").Bool()
	r.logOptions = addLogOptions(cmd)
	r.output = addOutput(cmd)
	r.store = addStore(cmd)
	return cmd.FullCommand(), func(s Streams) error {
		r.streams = s
		return r.run()
	}
}

func (r *exportCommand) run() error {
	if err := r.load(); err != nil {
		return err
	}
	if err := r.logOptions.check(r.tools); err != nil {
		return err
	}
	if *r.servers && *r.format != "csv" {
		return &exitError{Status: exitUsage, Err: errors.New("--servers is for --format=csv: the other formats hold both"), Hint: "leave it out"}
	}
	if err := r.output.check(); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "benchwatch-export-")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer os.RemoveAll(temp)
	r.temp = temp
	var histories []*history.History
	for _, name := range *r.names {
		dirs, err := r.resolve(name)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			h, err := r.history(context.Background(), dir)
			if err != nil {
				return err
			}
			for _, line := range h.DamageLines() {
				r.streams.notice("run %s: %s", dir.ID(), line)
			}
			histories = append(histories, h)
		}
	}
	return r.stream(r.streams, func(w io.Writer) error { return r.write(w, histories) })
}

func (r *exportCommand) write(w io.Writer, histories []*history.History) error {
	switch {
	case *r.format == "csv" && *r.servers:
		return report.ServersCSV(w, histories)
	case *r.format == "csv":
		return report.IntervalsCSV(w, histories)
	case *r.format == "json":
		return report.JSONLines(w, histories)
	}
	b := metrics.NewBackfill()
	for _, h := range histories {
		b.Run(h)
	}
	_, err := b.WriteTo(w)
	return err
}

// resolve returns the run that a name names or, if it is a file, the runs in
// that log.
func (r *exportCommand) resolve(name string) ([]rundir.Directory, error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		dir, err := r.findRun(name)
		return []rundir.Directory{dir}, err
	}
	made, err := r.importLog(r.temp, r.tools, name)
	if err != nil {
		return nil, err
	}
	var dirs []rundir.Directory
	for i, m := range made {
		if !m.Existing {
			r.streams.notice("%s", importLine(name, &made[i]))
			dirs = append(dirs, rundir.At(r.temp, m.Meta.ID))
		}
	}
	return dirs, nil
}
