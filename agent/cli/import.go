package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/table"
	"github.com/benchwatch/benchwatch/agent/terminal"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/topology"
)

// logOptions are the flags of import and export about old logs.
type logOptions struct {
	tool   *string
	start  *[]string
	labels map[string]string
	title  *string
	*selecting

	began   []time.Time     // --start
	servers *rundir.Servers // --cluster and --targets; nil: not given
}

func addLogOptions(cmd *kingpin.CmdClause) *logOptions {
	o := &logOptions{labels: map[string]string{}}
	o.tool = cmd.Flag("tool", "Tool that wrote the logs (default: recognised from the content)").PlaceHolder("NAME").String()
	o.start = cmd.Flag("start", "Start of the first run in the log, such as 2026-11-21T14:03:00Z or 14:03; of several logs a list with commas, or repeated (default: times in the log, else a time in its name, else its modification time minus the duration of its runs)").PlaceHolder("TIME").Strings()
	cmd.Flag("label", "Label of the runs in a log; repeatable").PlaceHolder("K=V").StringMapVar(&o.labels)
	o.title = cmd.Flag("title", "Title of the runs in a log (default: file name and threads)").PlaceHolder("TEXT").String()
	o.selecting = addSelecting(cmd)
	return o
}

func (o *logOptions) check(tools tool.Set, c *config.Config) error {
	if err := rundir.CheckLabels(o.labels); err != nil {
		return &exitError{Status: exitUsage, Err: err}
	}
	if *o.tool != "" && tools.ByName(*o.tool) == nil {
		return unknownTool(*o.tool, tools)
	}
	if chosen := o.selection(); chosen != nil {
		if err := checkSelection(c, chosen); err != nil {
			return err
		}
		found := c.Topology(c.Servers()).Servers(context.Background(), &rundir.Meta{Selection: chosen}, topology.Machine{})
		o.servers = &found
	}
	now := time.Now()
	for _, list := range *o.start {
		for one := range strings.SplitSeq(list, ",") {
			began, err := parseTime(one, now)
			if err != nil {
				return &exitError{Status: exitUsage, Err: fmt.Errorf("--start %s is not a time", one), Hint: "use 2026-11-21T14:03:00Z, 14:03 or -2h"}
			}
			o.began = append(o.began, began)
		}
	}
	return nil
}

// checkStarts reports whether there is a start for each of n logs, or none.
func (o *logOptions) checkStarts(n int) error {
	if len(o.began) == 0 || len(o.began) == n {
		return nil
	}
	return &exitError{Status: exitUsage, Err: fmt.Errorf("%s for %s", table.Plural(len(o.began), "--start"), table.Plural(n, "log")),
		Hint: "give as many, in the order of the logs, with commas between them"}
}

// startOf is the start of log number i; zero if none is given.
func (o *logOptions) startOf(i int) time.Time {
	if len(o.began) == 0 {
		return time.Time{}
	}
	return o.began[i]
}

// importCommand is one `benchwatch runs import`.
type importCommand struct {
	*store
	*logOptions
	files  *[]string
	format *string
}

// imported is one run of what `runs import --format=json` prints.
type imported struct {
	ID string `json:"id"`
	// Log is the file, Offset and End the run's bytes in it.
	Log    string `json:"log"`
	Offset int64  `json:"offset"`
	End    int64  `json:"end"`
	// Existing: an earlier import had made the run of the same bytes.
	Existing        bool      `json:"existing"`
	Title           string    `json:"title"`
	StartedAt       time.Time `json:"started_at"`
	DurationSeconds float64   `json:"duration_seconds"`
	// Start is where the start comes from: log, option, name or file.
	Start rundir.StartSource `json:"start,omitempty"`
}

func newImported(path string, m *ingest.Imported) imported {
	one := imported{
		ID: m.Meta.ID, Log: path, Offset: m.Part.Offset, End: m.Part.End, Existing: m.Existing, Title: m.Meta.Title,
		StartedAt: m.Meta.StartedAt, DurationSeconds: m.Part.Seconds,
	}
	if m.Meta.Import != nil {
		one.Start = m.Meta.Import.Start
	}
	return one
}

func addRunsImport(app *kingpin.Application) (string, action) {
	cmd := addCommand(app.GetCommand("runs"), "import", "Import logs of earlier benchmarks: each run in a log becomes a run directory with a copy of its bytes.",
		"benchwatch runs import --tool=sysbench old/*.log")
	r := &importCommand{}
	r.files = cmd.Arg("LOGFILE", "Output of a benchmark tool with one or more runs").Required().Strings()
	r.format = addFormat(cmd, text, jsonFormat)
	r.logOptions = addLogOptions(cmd)
	r.store = addStore(cmd)
	return cmd.FullCommand(), r.run
}

func (r *importCommand) run(s Streams) error {
	if err := r.load(); err != nil {
		return err
	}
	if err := r.check(r.tools, r.config); err != nil {
		return err
	}
	var failed []error
	var logs []ingest.Log
	for _, file := range *r.files {
		t, err := recognise(r.tools, file, *r.tool)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		logs = append(logs, ingest.Log{Path: file, Tool: t})
	}
	if len(failed) > 0 && len(r.began) > 0 { // which start would be whose?
		return failed[0]
	}
	logs, err := ingest.Pair(context.Background(), logs)
	if err != nil {
		return err
	}
	if len(failed) == 0 {
		if err := r.checkStarts(len(logs)); err != nil {
			return err
		}
	}
	all := []imported{}
	progress := terminal.NewProgress(s.Err)
	s = Streams{In: s.In, Out: progress.Above(s.Out), Err: progress.Above(s.Err)}
	for i, log := range logs {
		progress.Count("import", i, len(logs), "logs")
		made, err := r.importLog(r.dataDir, log, r.startOf(i))
		for i := range made {
			line := importLine(log.Path, &made[i])
			all = append(all, newImported(log.Path, &made[i]))
			if made[i].Existing {
				s.notice("%s", line)
			} else if *r.format == text {
				fmt.Fprintln(s.Out, line)
			}
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	progress.Clear()
	if *r.format == jsonFormat {
		if err := table.JSON(s.Out, all); err != nil {
			return err
		}
	}
	switch {
	case len(failed) == 1:
		return failed[0]
	case len(failed) > 1:
		for _, err := range failed {
			s.notice("%v", err)
		}
		return &exitError{Status: 1}
	}
	return nil
}

// importLog makes runs of one log. With an error it returns those that were made.
func (o *logOptions) importLog(dataDir string, log ingest.Log, start time.Time) ([]ingest.Imported, error) {
	im := ingest.Import{DataDir: dataDir, Log: log, Start: start, Title: *o.title, Labels: o.labels, Selection: o.selection(), Servers: o.servers}
	made, err := im.Run(context.Background())
	var grown *ingest.GrownError
	switch {
	case errors.Is(err, ingest.ErrNoRuns):
		err = withHint(fmt.Errorf("no run of %s in %s", log.Tool.Name, log.Path), "name the tool that wrote it with --tool")
	case errors.As(err, &grown):
		err = withHint(err, "benchwatch runs rm "+grown.ID+", and import again")
	}
	return made, err
}

// importLine is what a user reads about a run that is imported.
func importLine(path string, m *ingest.Imported) string {
	if m.Existing {
		return fmt.Sprintf("bytes %d to %d of %s are run %s already", m.Part.Offset, m.Part.End, path, m.Meta.ID)
	}
	return fmt.Sprintf("imported %s  %s, %.1f s, began %s (%s)", m.Meta.ID, table.Clip(m.Meta.Title, 60),
		m.Part.Seconds, m.Meta.StartedAt.Local().Format(time.DateTime), startWords[m.Meta.Import.Start])
}

// startWords is where a start comes from.
var startWords = map[rundir.StartSource]string{
	rundir.StartFromLog:    "from the log",
	rundir.StartFromOption: "from --start",
	rundir.StartFromName:   "from the file's name",
	rundir.StartFromFile:   "estimated from the file's last change",
}

// recognise returns the named tool, or the one that a log looks like.
func recognise(tools tool.Set, path, name string) (*tool.Tool, error) {
	if name != "" {
		if t := tools.ByName(name); t != nil {
			return t, nil
		}
		return nil, unknownTool(name, tools)
	}
	t, err := ingest.Recognise(path, tools)
	if err == nil && t == nil {
		err = withHint(fmt.Errorf("no benchmark tool's output recognised in %s", path), "name the tool that wrote it with --tool")
	}
	return t, err
}
