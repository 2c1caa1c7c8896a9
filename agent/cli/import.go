package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/table"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// logOptions are the flags of import and export about old logs.
type logOptions struct {
	tool   *string
	start  *string
	labels map[string]string
	title  *string

	began time.Time // --start
}

func addLogOptions(cmd *kingpin.CmdClause) *logOptions {
	o := &logOptions{labels: map[string]string{}}
	o.tool = cmd.Flag("tool", "Tool that wrote the logs (default: recognised from the content)").PlaceHolder("NAME").String()
	o.start = cmd.Flag("start", "Start of the first run in the log, such as 2026-11-21T14:03:00Z or 14:03 (default: times in the log, else the modification time of the file minus the duration of its runs)").PlaceHolder("TIME").String()
	cmd.Flag("label", "Label of the runs in a log; repeatable").PlaceHolder("K=V").StringMapVar(&o.labels)
	o.title = cmd.Flag("title", "Title of the runs in a log (default: file name and threads)").PlaceHolder("TEXT").String()
	return o
}

func (o *logOptions) check(tools tool.Set) error {
	if err := rundir.CheckLabels(o.labels); err != nil {
		return &exitError{Status: exitUsage, Err: err}
	}
	if *o.tool != "" && tools.ByName(*o.tool) == nil {
		return unknownTool(*o.tool, tools)
	}
	if *o.start == "" {
		return nil
	}
	var err error
	if o.began, err = parseTime(*o.start, time.Now()); err != nil {
		return &exitError{Status: exitUsage, Err: fmt.Errorf("--start %s is not a time", *o.start), Hint: "use 2026-11-21T14:03:00Z, 14:03 or -2h"}
	}
	return nil
}

// importCommand is one `benchwatch runs import`.
type importCommand struct {
	*store
	*logOptions
	files *[]string
}

func addRunsImport(app *kingpin.Application) (string, action) {
	cmd := addCommand(app.GetCommand("runs"), "import", "Import logs of earlier benchmarks: each run in a log becomes a run directory with a copy of its bytes.",
		"benchwatch runs import --tool=sysbench old/*.log")
	r := &importCommand{}
	r.files = cmd.Arg("LOGFILE", "Output of a benchmark tool with one or more runs").Required().Strings()
	r.logOptions = addLogOptions(cmd)
	r.store = addStore(cmd)
	return cmd.FullCommand(), r.run
}

func (r *importCommand) run(s Streams) error {
	if err := r.load(); err != nil {
		return err
	}
	if err := r.check(r.tools); err != nil {
		return err
	}
	if *r.start != "" && len(*r.files) > 1 {
		return &exitError{Status: exitUsage, Err: errors.New("--start is for one log only"), Hint: "import the logs one at a time"}
	}
	var failed []error
	for _, file := range *r.files {
		made, err := r.importLog(r.dataDir, r.tools, file)
		for i := range made {
			line := importLine(file, &made[i])
			if made[i].Existing {
				s.notice("%s", line)
			} else {
				fmt.Fprintln(s.Out, line)
			}
		}
		if err != nil {
			failed = append(failed, err)
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
func (o *logOptions) importLog(dataDir string, tools tool.Set, path string) ([]ingest.Imported, error) {
	t, err := recognise(tools, path, *o.tool)
	if err != nil {
		return nil, err
	}
	log := ingest.Import{DataDir: dataDir, Path: path, Tool: t, Start: o.began, Title: *o.title, Labels: o.labels}
	made, err := log.Run(context.Background())
	var grown *ingest.GrownError
	switch {
	case errors.Is(err, ingest.ErrNoRuns):
		err = withHint(fmt.Errorf("no run of %s in %s", t.Name, path), "name the tool that wrote it with --tool")
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
