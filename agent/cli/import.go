package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/table"

	"github.com/benchwatch/benchwatch/agent/tool"
)

// logOptions say what old logs are, for import and export.
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
		return &exitError{Status: exitUsage, Err: errors.New("--start is one time for one log"), Hint: "import the logs one by one"}
	}
	var failed []error
	for _, file := range *r.files {
		made, err := r.makeRuns(r.dataDir, r.tools, file)
		for _, m := range made {
			if m.fresh {
				fmt.Fprintln(s.Out, m.text)
			} else {
				fmt.Fprintf(s.Err, "benchwatch: %s\n", m.text)
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
			fmt.Fprintf(s.Err, "benchwatch: %v\n", err)
		}
		return &exitError{Status: 1}
	}
	return nil
}

// madeRun is a run that stands in a log.
type madeRun struct {
	id    string
	fresh bool   // it was made now, not before
	text  string // says so
}

// makeRuns makes runs of one log. With an error it returns those that were made.
func (o *logOptions) makeRuns(dataDir string, tools tool.Set, path string) ([]madeRun, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read log: %s is not a file", path)
	}
	t, err := recognise(tools, path, *o.tool)
	if err != nil {
		return nil, err
	}
	parts, err := ingest.ReadLog(context.Background(), path, t)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	if len(parts) == 0 {
		return nil, withHint(fmt.Errorf("no run of %s in %s", t.Name, path), "--tool says which tool wrote it")
	}
	starts, sources := o.starts(parts, info.ModTime())
	var made []madeRun
	for i, part := range parts {
		m, err := o.part(dataDir, path, t, part, starts[i], sources[i])
		if err != nil {
			return made, fmt.Errorf("%s: %w", path, err)
		}
		made = append(made, m)
	}
	return made, nil
}

// starts finds when each part began. A log that carries times tells; else each
// run is taken to have begun when the one before it ended, from --start on or
// back from the file's last change.
func (o *logOptions) starts(parts []ingest.LogPart, written time.Time) ([]time.Time, []rundir.StartSource) {
	starts := make([]time.Time, len(parts))
	sources := make([]rundir.StartSource, len(parts))
	length := func(i int) time.Duration { return time.Duration(parts[i].Seconds * float64(time.Second)) }
	next := o.began
	for i := range parts {
		if !next.IsZero() {
			starts[i], sources[i] = next, rundir.StartFromOption
			next = next.Add(length(i))
		} else if !parts[i].Began.IsZero() {
			starts[i], sources[i] = parts[i].Began, rundir.StartFromLog
		}
	}
	end := written
	for i := len(parts) - 1; i >= 0; i-- {
		if sources[i] == "" {
			starts[i], sources[i] = end.Add(-length(i)), rundir.StartFromFile
		}
		end = starts[i]
	}
	return starts, sources
}

// part makes a run of one part, unless that was done before.
func (o *logOptions) part(dataDir, path string, t *tool.Tool, part ingest.LogPart, start time.Time, source rundir.StartSource) (madeRun, error) {
	sum, err := ingest.Fingerprint(path, part)
	if err != nil {
		return madeRun{}, err
	}
	id, whole, err := ingest.Imported(dataDir, path, part, sum)
	switch {
	case err != nil:
		return madeRun{}, err
	case id != "" && whole:
		return madeRun{id: id, text: fmt.Sprintf("bytes %d to %d of %s are run %s already", part.Offset, part.End, path, id)}, nil
	case id != "":
		return madeRun{}, withHint(fmt.Errorf("run %s was made of this log when it was shorter", id), "benchwatch runs rm "+id+", and import again")
	}
	meta, err := o.meta(path, t, part, start, source)
	if err != nil {
		return madeRun{}, err
	}
	meta.Import.SHA256 = sum
	name := meta.Workload
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	for n := 1; ; n++ {
		meta.ID = rundir.NewID(meta.StartedAt, name, meta.Threads, n)
		_, err := ingest.Import(dataDir, meta, path, part)
		if errors.Is(err, rundir.ErrExists) {
			continue
		}
		if err != nil {
			return madeRun{}, err
		}
		return madeRun{id: meta.ID, fresh: true, text: fmt.Sprintf("imported %s  %s, %.1f s, began %s (%s)", meta.ID, table.Clip(meta.Title, 60),
			part.Seconds, meta.StartedAt.Local().Format(time.DateTime), startWords[source])}, nil
	}
}

// startWords say where a start comes from.
var startWords = map[rundir.StartSource]string{
	rundir.StartFromLog:    "as the log says",
	rundir.StartFromOption: "as --start says",
	rundir.StartFromFile:   "worked back from the file's last change",
}

func (o *logOptions) meta(path string, t *tool.Tool, part ingest.LogPart, start time.Time, source rundir.StartSource) (rundir.Meta, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return rundir.Meta{}, err
	}
	snap := &part.Snapshot
	start = start.UTC().Truncate(time.Millisecond)
	end := start.Add(time.Duration(part.Seconds * float64(time.Second)))
	meta := rundir.Meta{
		Title: *o.title, Labels: maps.Clone(o.labels), Tool: t.Name, ToolVersion: snap.Meta.ToolVersion, Workload: snap.Meta.Workload, Verb: "run",
		StartedAt: start, StartEstimated: source == rundir.StartFromFile, EndedAt: &end, ClosedAt: &end,
		Import: &rundir.ImportSource{Path: abs, Offset: part.Offset, Size: part.End - part.Offset, Start: source},
	}
	meta.Conclude(part.Output)
	if snap.Threads.Known {
		meta.Threads = snap.Threads.Value
	}
	if meta.Title == "" {
		meta.Title = filepath.Base(path)
		if meta.Threads > 0 {
			meta.Title += " " + strconv.Itoa(meta.Threads) + " threads"
		}
	}
	return meta, nil
}

// recognise returns the named tool, or the one that a log looks like.
func recognise(tools tool.Set, path, name string) (*tool.Tool, error) {
	if name != "" {
		if t := tools.ByName(name); t != nil {
			return t, nil
		}
		return nil, unknownTool(name, tools)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	head := make([]byte, sniffed)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read log: %w", err)
	}
	if t := tools.Sniff(head[:n]); t != nil {
		return t, nil
	}
	return nil, withHint(fmt.Errorf("no benchmark tool's output recognised in %s", path), "--tool says which tool wrote it")
}
