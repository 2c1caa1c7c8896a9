package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/imports"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/run/topology"
)

// logOptions are the flags of import and export about old logs.
type logOptions struct {
	tool   string
	start  []string
	labels map[string]string
	title  string
	*selecting

	began   []time.Time     // --start
	servers *rundir.Servers // --cluster and --targets; nil: not given
}

func addLogOptions(cmd command) *logOptions {
	o := &logOptions{labels: map[string]string{}}
	cmd.text(&o.tool, "tool", "NAME", "Tool that wrote the logs (default: recognised from the content)")
	cmd.texts(&o.start, "start", "TIME", "Start of the first run, such as 14:03; for several logs, comma-separated or repeated (default: from the log, its name or its last change)")
	cmd.labels(&o.labels, "label", "Label of the runs in a log; repeatable")
	cmd.text(&o.title, "title", "TEXT", "Title of the runs in a log (default: file name and threads)")
	o.selecting = addSelecting(cmd)
	return o
}

func (o *logOptions) check(tools tool.Set, c *config.Config) error {
	if err := rundir.CheckLabels(o.labels); err != nil {
		return &exitError{Status: exitUsage, Err: err}
	}
	if o.tool != "" && tools.ByName(o.tool) == nil {
		return unknownTool(o.tool, tools)
	}
	if chosen := o.selection(); chosen != nil {
		if err := checkSelection(c, chosen); err != nil {
			return err
		}
		found := c.Topology(c.Servers()).Servers(context.Background(), &rundir.Meta{Placement: rundir.Placement{Selection: chosen}}, topology.Machine{})
		o.servers = &found
	}
	now := time.Now()
	for _, list := range o.start {
		for one := range strings.SplitSeq(list, ",") {
			began, err := parseTime(one, now)
			if err != nil {
				return &exitError{Status: exitUsage, Err: fmt.Errorf("--start %s is not a time", one),
					Hint: "use 2026-11-21T14:03:00Z, 14:03 or -2h"}
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
		Hint: "give one --start per log"}
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
	files    []string
	fromPath string
	format   string

	pattern *ingest.PathLabels // --label-from; nil: not given
}

// imported is a run in the output of `runs import --format=json`.
type imported struct {
	ID string `json:"id"`
	// Log is the file, Offset and End the run's bytes in it.
	Log    string `json:"log"`
	Offset int64  `json:"offset"`
	End    int64  `json:"end"`
	// Existing: an earlier import created the run from the same bytes.
	Existing        bool      `json:"existing"`
	Title           string    `json:"title"`
	StartedAt       time.Time `json:"started_at"`
	DurationSeconds float64   `json:"duration_seconds"`
	// Start is where the start comes from: log, option, name or file.
	Start rundir.StartSource `json:"start,omitempty"`
	// Latencies are the files with the distribution of the latencies.
	Latencies []string `json:"latency_logs,omitempty"`
	// Intervals are the files with the intervals of the tool's threads.
	Intervals []string `json:"interval_logs,omitempty"`
	// MonitorLogs are the files with what the machine did.
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

func newRunsImport() *cobra.Command {
	cmd := newCommand("import", "Import logs of earlier benchmarks. Each run in a log becomes a run directory with a copy of its bytes.",
		"benchwatch runs import --label-from='{engine}/{buffer_pool}/threads-{threads}.log' results")
	r := &importCommand{}
	cmd.arguments(&r.files, "LOGFILE...",
		"Output of a benchmark tool, or a folder with such logs; a log may have several runs, a folder is searched recursively")
	cmd.text(&r.fromPath, "label-from", "PATTERN", "Labels from the end of the path; such as '{engine}/threads-{threads}.log'; * matches anything; logs that differ only in {generator} are one run")
	addFormat(cmd, &r.format, text, jsonFormat)
	r.logOptions = addLogOptions(cmd)
	r.store = addStore(cmd)
	return cmd.does(r.run)
}

func (r *importCommand) run(s Streams) error {
	if err := r.prepare(); err != nil {
		return err
	}
	logs, folders, failed := r.search()
	if len(failed) > 0 && len(r.began) > 0 { // which start would be whose?
		return failed[0]
	}
	logs, err := ingest.Pair(context.Background(), logs)
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
	ingest.NameLogs(logs, earlier)
	// The heap is small: at 100 % it would be collected many times for each log.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	all := []imported{}
	beside := newBeside(logs, r.tools)
	progress := terminal.NewProgress(s.Err)
	s = Streams{In: s.In, Out: progress.Above(s.Out), Err: progress.Above(s.Err)}
	for i, log := range logs {
		progress.Count("import", i, len(logs), "logs")
		made, err := r.importRuns(s, earlier, log, r.startOf(i), beside)
		all = append(all, made...)
		for _, other := range log.Others {
			made, otherErr := r.importRuns(s, earlier, log.Of(other), r.startOf(i), beside)
			all = append(all, made...)
			if errors.Is(err, ingest.ErrNoRuns) || !errors.Is(otherErr, ingest.ErrNoRuns) {
				err = otherErr
			}
		}
		switch folder := folderOf(folders, log.Path); {
		case errors.Is(err, ingest.ErrNoRuns) && folder != nil:
			folder.Left[ingest.WithoutRun]++
		case err != nil:
			failed = append(failed, err)
		}
	}
	for _, f := range folders {
		if err := f.summarize(s, beside); err != nil {
			failed = append(failed, err)
		}
	}
	progress.Clear()
	if r.format == jsonFormat {
		if err := table.JSON(s.Out, all); err != nil {
			return err
		}
	}
	return s.failures(failed)
}

// failures returns a single error. It prints several errors.
func (s Streams) failures(all []error) error {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	for _, err := range all {
		s.notice("%v", err)
	}
	return &exitError{Status: 1}
}

// prepare reads the configuration and checks the options.
func (r *importCommand) prepare() (err error) {
	if err := r.load(); err != nil {
		return err
	}
	if err := r.check(r.tools, r.config); err != nil {
		return err
	}
	if r.fromPath == "" {
		return nil
	}
	if r.pattern, err = ingest.ParsePathLabels(r.fromPath); err != nil {
		return &exitError{Status: exitUsage, Err: fmt.Errorf("--label-from %w", err),
			Hint: "--label-from='{engine}/threads-{threads}.log'"}
	}
	return nil
}

// importRuns makes the runs of one log and prints them. With an error, it returns the runs made so far.
func (r *importCommand) importRuns(s Streams, earlier *ingest.Earlier,
	log ingest.Log, start time.Time, beside *besideLogs) ([]imported, error) {
	var path map[string]string
	if r.pattern != nil {
		path, _ = r.pattern.Match(log.Path)
	}
	var used []imports.MachineLog
	monitors, server := beside.of(s, log.Path)
	files := filesBeside{servers: server.AsServers(), complete: r.completion(s, monitors, &used, &server)}
	if len(monitors) > 0 {
		files.began = startOf(monitors)
	}
	made, err := r.importLog(r.dataDir, earlier, log, start, path, files)
	var all []imported
	for i := range made {
		one := newImported(log.Path, &made[i])
		one.Latencies = made[i].Latencies
		if len(made) == 1 {
			one.Intervals = log.Intervals
			for _, m := range used {
				one.MonitorLogs = append(one.MonitorLogs, m.Path)
			}
			if server != nil {
				one.Dumps = server.Paths
			}
			beside.use(one.MonitorLogs, one.Dumps)
			if made[i].Existing { // they were recorded when it was imported
				for _, m := range monitors {
					beside.use([]string{m.Path})
				}
			}
		}
		all = append(all, one)
		line := importLine(&made[i], &one, used)
		if made[i].Existing {
			s.notice("%s", line)
		} else if r.format == text {
			fmt.Fprintln(s.Out, line)
		}
	}
	return all, err
}

// besideLogs are the files in the folders of logs that belong to them.
type besideLogs struct {
	logs    map[string]int // in a folder
	folders map[string]*imports.Folder
	tools   tool.Set
	used    map[string]bool // paths of those that were recorded with a run
}

func newBeside(logs []ingest.Log, tools tool.Set) *besideLogs {
	b := &besideLogs{logs: map[string]int{}, folders: map[string]*imports.Folder{}, tools: tools, used: map[string]bool{}}
	seen := map[string]bool{}
	for _, l := range logs { // several generators of a run may share a log
		if !seen[l.Path] {
			b.logs[filepath.Dir(l.Path)]++
		}
		seen[l.Path] = true
	}
	return b
}

// of returns the output of vmstat, iostat, mpstat and dstat beside a log, and the server according to dumps beside it,
// nil if there are none.
func (b *besideLogs) of(s Streams, path string) ([]imports.MachineLog, *imports.Server) {
	folder, name := filepath.Split(path)
	folder = filepath.Clean(folder)
	found := b.folders[folder]
	if found == nil {
		var err error
		if found, err = imports.List(folder, b.tools); err != nil {
			s.notice("%v", err)
			return nil, nil
		}
		b.folders[folder] = found
	}
	alone := b.logs[folder] == 1
	server, err := found.Server(name, alone)
	if err != nil {
		s.notice("%s: server data not imported: %v", path, err)
	} else if server != nil && server.Problem != "" {
		s.notice("%s: the server's counters are not imported: %s", path, server.Problem)
	}
	return found.MachineLogs(name, alone), server
}

func (b *besideLogs) use(paths ...[]string) {
	for _, list := range paths {
		for _, path := range list {
			b.used[filepath.Clean(path)] = true
		}
	}
}

// unused counts the files that were not recorded with a run.
func (b *besideLogs) unused(files []string) int {
	n := 0
	for _, path := range files {
		if !b.used[filepath.Clean(path)] {
			n++
		}
	}
	return n
}

// foundFolder is a folder that an argument names.
type foundFolder struct {
	path string
	*ingest.Folder
}

// summarize prints how many files were left out, and fails if the folder has no log.
func (f *foundFolder) summarize(s Streams, beside *besideLogs) error {
	f.Left[ingest.NotBeside] = beside.unused(f.Beside)
	for _, reason := range ingest.Reasons {
		if n := f.Left[reason]; n > 0 {
			s.notice("%s: left out %s %s", f.path, table.Plural(n, "file"), reason)
		}
	}
	if len(f.Logs) == f.Left[ingest.WithoutRun] {
		return fmt.Errorf("no log in %s", f.path)
	}
	return nil
}

// folderOf returns the folder in which a log was found; nil for one that an argument names.
func folderOf(folders []foundFolder, path string) *foundFolder {
	for i := range folders {
		if folders[i].Has(path) {
			return &folders[i]
		}
	}
	return nil
}

// completion records what the machine and the server did. Logs and dumps that can't be read are left out with a notice:
// they must not prevent the import of a run. used gets the files with values; server becomes nil if it was not
// recorded.
func (r *importCommand) completion(s Streams, logs []imports.MachineLog, used *[]imports.MachineLog,
	server **imports.Server) func(context.Context, rundir.Directory, time.Time, float64) error {
	if len(logs) == 0 && *server == nil {
		return nil
	}
	left := func(dir rundir.Directory, what string, err error, names ...string) error {
		s.notice("%s data not imported: %v", what, err)
		for _, name := range names {
			if err := os.Remove(dir.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	}
	return func(ctx context.Context, dir rundir.Directory, start time.Time, seconds float64) error {
		if *server != nil {
			if err := imports.RecordServer(dir, start, seconds, *server); err != nil {
				*server = nil
				if err := left(dir, "server", err, rundir.StatusFile, record.SettingsFile); err != nil {
					return err
				}
			}
		}
		if len(logs) == 0 {
			return ctx.Err()
		}
		found, err := imports.RecordMachine(ctx, dir, start, seconds, logs)
		if err == nil || ctx.Err() != nil {
			*used = found
			return ctx.Err()
		}
		return left(dir, "machine", err, host.File)
	}
}

// search returns the logs that the arguments name, and what was found in folders.
func (r *importCommand) search() (logs []ingest.Log, folders []foundFolder, failed []error) {
	for _, name := range r.files {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			found, err := ingest.Search(name, r.tools, r.tools.ByName(r.tool), r.pattern, imports.IsBeside)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			folders = append(folders, foundFolder{name, found})
			logs = append(logs, found.Logs...)
			continue
		}
		if r.pattern != nil {
			if _, ok := r.pattern.Match(name); !ok {
				failed = append(failed, fmt.Errorf("%s does not match --label-from %s", name, r.pattern))
				continue
			}
		}
		found, err := recognise(r.tools, name, r.tool)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		logs = append(logs, ingest.Log{Path: name, Tool: found[0], Others: found[1:]})
	}
	return logs, folders, failed
}

// filesBeside is what the files beside a log add to its runs. Each of them may be nil.
type filesBeside struct {
	// servers come from dumps. Options replace them.
	servers *rundir.Servers
	// began is when the programs that monitored a machine began.
	began func(context.Context, time.Time) ingest.Start
	// complete adds files to the only run of the log.
	complete func(context.Context, rundir.Directory, time.Time, float64) error
}

// startOf returns a function that reads when the first of these programs began.
func startOf(logs []imports.MachineLog) func(context.Context, time.Time) ingest.Start {
	return func(ctx context.Context, written time.Time) ingest.Start {
		at, onlyDay := imports.Began(ctx, logs, written)
		if onlyDay {
			return ingest.Start{At: at, Source: rundir.StartFromDay}
		}
		return ingest.Start{At: at, Source: rundir.StartFromBeside}
	}
}

// importLog makes runs from one log. earlier are the imported runs, nil: they are read. path has the facts in its path.
// With an error, it returns the runs made so far.
func (o *logOptions) importLog(dataDir string, earlier *ingest.Earlier,
	log ingest.Log, start time.Time, path map[string]string, beside filesBeside,
) ([]ingest.Imported, error) {
	im := ingest.Import{DataDir: dataDir, Earlier: earlier, Complete: beside.complete, Log: log, Start: start, Beside: beside.began,
		Title: o.title, Labels: map[string]string{}, Selection: o.selection(), Servers: cmp.Or(o.servers, beside.servers)}
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
		err = withHint(fmt.Errorf("%w of %s in %s", ingest.ErrNoRuns, log.Tool.Name, log.Path), "name the tool that wrote it with --tool")
	case errors.Is(err, ingest.ErrBeingWritten):
		err = withHint(err, "import it again when the tool has ended")
	case errors.As(err, &grown):
		err = withHint(err, "benchwatch runs rm "+grown.ID+", and import again")
	}
	return made, err
}

// importLine returns the line that is printed about an imported run.
func importLine(m *ingest.Imported, one *imported, used []imports.MachineLog) string {
	line := ""
	if m.Existing {
		line = fmt.Sprintf("bytes %d to %d of %s are run %s already", m.Part.Offset, m.Part.End, one.Log, m.Meta.ID)
	} else {
		line = fmt.Sprintf("imported %s  %s, %.1f s, began %s (%s)", m.Meta.ID, table.Clip(m.Meta.Title, 60),
			m.Part.Seconds, m.Meta.StartedAt.Local().Format(time.DateTime), startWords[m.Meta.Import.Start])
	}
	if n := len(one.Latencies); n > 0 {
		line += ", " + table.Plural(n, "file") + " of latencies"
	}
	if n := len(one.Intervals); n > 0 {
		line += ", " + table.Plural(n, "file") + " of intervals"
	}
	for _, m := range used {
		line += ", " + m.Program
	}
	if n := len(one.Dumps); n > 0 {
		line += ", " + table.Plural(n, "dump")
	}
	return line
}

// startWords describes the source of a start.
var startWords = map[rundir.StartSource]string{
	rundir.StartFromLog:    "from the log",
	rundir.StartFromOption: "from --start",
	rundir.StartFromName:   "from the file's name",
	rundir.StartFromBeside: "from the files beside it",
	rundir.StartFromDay:    "only the day is known, from the files beside it",
	rundir.StartFromFile:   "estimated from the file's last change",
}

// recognise returns the named tool, or the tools that a log's content indicates.
func recognise(tools tool.Set, path, name string) ([]*tool.Tool, error) {
	if name != "" {
		if t := tools.ByName(name); t != nil {
			return []*tool.Tool{t}, nil
		}
		return nil, unknownTool(name, tools)
	}
	found, err := ingest.Recognise(path, tools)
	if err == nil && len(found) == 0 {
		head, headErr := ingest.Head(path)
		err = withHint(errors.Join(fmt.Errorf("no benchmark tool's output recognised in %s", path), headErr), unrecognised(head, tools))
	}
	return found, err
}
