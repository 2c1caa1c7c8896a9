package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/dump"
	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/secret"
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
	o.start = cmd.Flag("start", "Start of the first run in the log, such as 2026-11-21T14:03:00Z or 14:03; for several logs, comma-separated or repeated (default: times in the log, else a time in its name, else its modification time minus the duration of its runs)").PlaceHolder("TIME").Strings()
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
	files    *[]string
	fromPath *string
	format   *string

	pattern *ingest.PathLabels // --label-from; nil: not given
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
	// MonitorLogs are the files from which it is known what the machine did.
	MonitorLogs []string `json:"monitor_logs,omitempty"`
	// Dumps are the files with the status and the variables of the server.
	Dumps []string `json:"dumps,omitempty"`
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
		"benchwatch runs import --label-from='{engine}/{buffer_pool}/threads-{threads}.log' results")
	r := &importCommand{}
	r.files = cmd.Arg("LOGFILE", "Output of a benchmark tool with one or more runs, or a folder that is searched recursively for such logs").Required().Strings()
	r.fromPath = cmd.Flag("label-from", "Labels from the end of each log's path, such as '{engine}/{buffer_pool}/threads-{threads}.log'; * matches anything; {workload} and {threads} are used if the log does not show them; logs that differ only in {generator} are one run; other files in folders are skipped").PlaceHolder("PATTERN").String()
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
	if *r.fromPath != "" {
		var err error
		if r.pattern, err = ingest.ParsePathLabels(*r.fromPath); err != nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("--label-from %w", err), Hint: "--label-from='{engine}/threads-{threads}.log'"}
		}
	}
	logs, failed := r.logs(s)
	if len(failed) > 0 && len(r.began) > 0 { // which start would be whose?
		return failed[0]
	}
	var err error
	logs, err = ingest.Pair(context.Background(), logs)
	if err != nil {
		return err
	}
	if r.pattern != nil {
		logs = ingest.GeneratorsOf(logs, r.pattern)
	}
	if len(failed) == 0 {
		if err := r.checkStarts(len(logs)); err != nil {
			return err
		}
	}
	earlier, err := ingest.ReadEarlier(r.dataDir)
	if err != nil {
		return err
	}
	// The heap is small: at 100 % it would be collected many times for each log.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	all := []imported{}
	progress := terminal.NewProgress(s.Err)
	s = Streams{In: s.In, Out: progress.Above(s.Out), Err: progress.Above(s.Err)}
	for i, log := range logs {
		progress.Count("import", i, len(logs), "logs")
		var path map[string]string
		if r.pattern != nil {
			path, _ = r.pattern.Match(log.Path)
		}
		var used []host.MonitorLog
		alone := !slices.ContainsFunc(logs, func(l ingest.Log) bool {
			return l.Path != log.Path && filepath.Dir(l.Path) == filepath.Dir(log.Path) // those of generators are no others
		})
		server := dumps(s, log.Path, alone)
		made, err := r.importLog(r.dataDir, earlier, log, r.startOf(i), path, r.completion(s, monitorLogs(s, log.Path, alone), &used, &server))
		for i := range made {
			line := importLine(log.Path, &made[i])
			one := newImported(log.Path, &made[i])
			for _, m := range used {
				one.MonitorLogs = append(one.MonitorLogs, m.Path)
				line += ", " + m.Program
			}
			if server != nil && len(made) == 1 {
				one.Dumps = server.Paths
				line += ", " + table.Plural(len(server.Paths), "dump")
			}
			all = append(all, one)
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

// monitorLogs returns what vmstat, iostat, mpstat and dstat printed beside a log, which is the
// only one in its folder or not.
func monitorLogs(s Streams, path string, alone bool) []host.MonitorLog {
	found, err := host.MonitorLogsBeside(path, alone)
	if err != nil {
		s.notice("%v", err)
	}
	return found
}

// dumps returns what dumps beside a log show of the server, nil if there are none.
func dumps(s Streams, path string, alone bool) *dump.Server {
	server, err := dump.Beside(path, alone)
	if err != nil {
		s.notice("%s: without what the server did: %v", path, err)
		return nil
	}
	if server != nil && server.Problem != "" {
		s.notice("%s: without the server's counters: %s", path, server.Problem)
	}
	return server
}

// completion records what the machine and the server did. Logs and dumps that can't be read
// are left out with a notice: they must not keep a run from being imported. used gets those
// with values; server becomes nil if it was not recorded.
func (r *importCommand) completion(s Streams, logs []host.MonitorLog, used *[]host.MonitorLog, server **dump.Server) func(context.Context, rundir.Directory, time.Time, float64) error {
	if len(logs) == 0 && *server == nil {
		return nil
	}
	left := func(dir rundir.Directory, what string, err error, names ...string) error {
		s.notice("without what the %s did: %v", what, err)
		for _, name := range names {
			if err := os.Remove(dir.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}
	return func(ctx context.Context, dir rundir.Directory, start time.Time, seconds float64) error {
		if *server != nil {
			if err := history.RecordDumps(dir, start, seconds, *server); err != nil {
				*server = nil
				if err := left(dir, "server", err, rundir.StatusFile, history.SettingsFile); err != nil {
					return err
				}
			}
		}
		if len(logs) == 0 {
			return ctx.Err()
		}
		found, err := history.RecordMonitorLogs(ctx, dir, start, seconds, logs)
		if err == nil || ctx.Err() != nil {
			*used = found
			return ctx.Err()
		}
		return left(dir, "machine", err, host.File)
	}
}

// logs returns the logs that the arguments name. Those in folders are the ones that match
// --label-from and that a tool has written.
func (r *importCommand) logs(s Streams) (logs []ingest.Log, failed []error) {
	for _, name := range *r.files {
		files, err := logsBelow(name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		listed := files == nil
		if listed {
			files = []string{name}
		}
		unmatched, unknown := 0, 0
		for _, file := range files {
			if !listed && (host.IsMonitorLog(file) || dump.IsDump(file)) {
				continue // belongs to a log beside it, or to none
			}
			if r.pattern != nil {
				if _, ok := r.pattern.Match(file); !ok {
					if listed {
						failed = append(failed, fmt.Errorf("%s does not match --label-from %s", file, r.pattern))
					}
					unmatched++
					continue
				}
			}
			t, err := recognise(r.tools, file, *r.tool)
			switch {
			case err == nil:
				logs = append(logs, ingest.Log{Path: file, Tool: t})
			case listed:
				failed = append(failed, err)
			default:
				unknown++
			}
		}
		if !listed && unmatched > 0 {
			s.notice("%s: left out %s not matching --label-from", name, table.Plural(unmatched, "file"))
		}
		if !listed && unknown > 0 {
			s.notice("%s: left out %s in which no tool's output was recognised", name, table.Plural(unknown, "file"))
		}
		if !listed && len(files) == unmatched+unknown {
			failed = append(failed, fmt.Errorf("no log in %s", name))
		}
	}
	return logs, failed
}

// logsBelow returns the regular files in a folder and below, by name, without hidden ones;
// nil if path is no folder.
func logsBelow(path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, nil //nolint:nilerr // a file that can't be read is named when it is opened
	}
	files := []string{}
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		hidden := file != path && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return fs.SkipDir
		case !hidden && d.Type().IsRegular():
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return files, nil
}

// importLog makes runs of one log. earlier are the imported runs, nil: they are read. path is
// what its path shows. With an error it returns
// those that were made. complete adds to the only run of the log; nil: nothing.
func (o *logOptions) importLog(dataDir string, earlier *ingest.Earlier, log ingest.Log, start time.Time, path map[string]string,
	complete func(context.Context, rundir.Directory, time.Time, float64) error,
) ([]ingest.Imported, error) {
	im := ingest.Import{DataDir: dataDir, Earlier: earlier, Complete: complete, Log: log, Start: start, Title: *o.title, Labels: map[string]string{}, Selection: o.selection(), Servers: o.servers}
	for name, value := range path {
		switch name {
		case "workload":
			im.Workload = value
		case "generator": // it is no label of their group
		case "threads":
			im.Threads, _ = strconv.Atoi(value) // else the log shows it, or it is unknown
		default:
			im.Labels[name] = secret.Value(name, value)
		}
	}
	maps.Copy(im.Labels, o.labels)
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
