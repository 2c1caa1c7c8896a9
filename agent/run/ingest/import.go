package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Import makes runs from an old log.
type Import struct {
	DataDir string
	// Earlier are the imported runs of DataDir, shared by several imports; nil: Run reads them.
	Earlier *Earlier
	Log
	// Start is when the first run began. If zero, it is taken from the times in the log, the file's
	// name, Beside, or the file's last change.
	Start time.Time
	// Beside is when a program that monitored a machine began, according to its output; zero: unknown. It is called only
	// if nothing before it is known. Nil: there is none.
	Beside func(ctx context.Context, written time.Time) Start
	// Title of the runs; empty: the file's name and the number of threads.
	Title  string
	Labels map[string]string
	// Workload and Threads apply if the log does not show them; empty and 0 if unknown.
	Workload string
	Threads  int
	// Selection and Servers of the runs; nil: unknown.
	Selection *rundir.Selection
	Servers   *rundir.Servers
	// Complete adds files to the run directory before the run becomes visible, if the log has only
	// one run; nil: nothing to add.
	Complete func(ctx context.Context, dir rundir.Directory, start time.Time, seconds float64) error

	// decoded is a temporary file with the text of a binary log; empty: the log is text.
	decoded string
	joined  string // a temporary file with the intervals of the run's threads; empty: none
}

// Imported is a run that was found in a log.
type Imported struct {
	Meta rundir.Meta
	Part *Part
	// Existing: an earlier import made this run from the same bytes.
	Existing bool
	// Latencies are the files from which latencies and statistics of this run were kept.
	Latencies []string
}

// ErrNoRuns is returned for a log in which the tool's parser finds no run.
var ErrNoRuns = errors.New("no run")

// GrownError is returned for a log that has grown since a run was made from it.
type GrownError struct{ ID string }

func (e *GrownError) Error() string {
	return fmt.Sprintf("run %s was made of this log when it was shorter", e.ID)
}

// Run makes the runs and returns them in the order of the log. If it fails, it returns the runs
// made so far. The error may match ErrNoRuns, GrownError and fs.ErrNotExist.
func (im *Import) Run(ctx context.Context) ([]Imported, error) {
	file, info, err := openLog(im.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parts, bytes := make([]*Part, 1), im.Path
	if im.decoded, err = im.decode(ctx, file); err != nil {
		return nil, err
	}
	if im.decoded != "" {
		defer os.Remove(im.decoded)
		bytes = im.decoded
	}
	generators := im.generatorLogs()
	if names := containers(file, info.Size(), im.Tool); len(generators) == 0 && len(names) > 0 {
		folder := ""
		folder, generators, err = im.separate(ctx, file, names)
		defer os.RemoveAll(folder)
	}
	switch {
	case err != nil:
	case len(generators) > 0:
		bytes, parts[0], err = im.journal(ctx, generators)
		if err == nil {
			defer os.Remove(bytes)
		}
	case len(im.Intervals) > 0:
		im.joined, err = im.joinThreads(ctx)
		if err == nil {
			defer os.Remove(im.joined)
			parts[0], err = im.join(ctx, info.Size(), im.joined)
		}
	case im.Stderr != "":
		parts[0], err = im.join(ctx, info.Size(), im.Stderr)
	default:
		parts, err = splitFile(ctx, bytes, im.Tool)
		if err == nil && im.decoded == "" {
			parts, err = joinStreams(ctx, file, im.Tool, parts)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, ErrNoRuns
	}
	if err := im.carryIntervals(ctx, bytes, parts); err != nil {
		return nil, err
	}
	if len(parts) == 1 && parts[0].Began.IsZero() {
		parts[0].Began = im.began
	}
	if im.Earlier == nil {
		if im.Earlier, err = ReadEarlier(im.DataDir); err != nil {
			return nil, err
		}
	}
	var made []Imported
	named := Start{namedTime(im.Path), rundir.StartFromName}
	if im.Beside != nil && named.At.IsZero() && im.Start.IsZero() && parts[0].Began.IsZero() {
		named = im.Beside(ctx, info.ModTime())
	}
	for i, start := range Starts(parts, im.Start, named, info.ModTime()) {
		parts[i].place = placeOf(i, parts)
		m, err := im.part(ctx, bytes, parts[i], start, len(parts) == 1, len(generators))
		if err != nil {
			return made, fmt.Errorf("%s: %w", im.Path, err)
		}
		made = append(made, m)
	}
	return made, nil
}

// carryIntervals gives the intervals of a run that does not show their length the length that an earlier run of the log
// has: a script that starts several runs sets it once.
func (im *Import) carryIntervals(ctx context.Context, path string, parts []*Part) error {
	known := 0.0
	for _, p := range parts {
		snap := p.Snapshot()
		known = cmp.Or(snap.Announced.Value, known)
		if known == 0 || snap.Announced.Known || !p.Feed.unsized() {
			continue
		}
		file, _, err := openLog(path)
		if err != nil {
			return err
		}
		p.carried = known
		p.Feed = NewFeed(im.Tool, &rundir.Meta{Benchmark: rundir.Benchmark{ReportIntervalSeconds: known}})
		err = p.Feed.readSection(ctx.Err, tool.Stdout, io.NewSectionReader(file, p.Offset, p.End-p.Offset))
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		p.Feed.Close(p.Began)
		p.Seconds = max(p.Seconds, p.Feed.elapsed())
	}
	return nil
}

// generatorLogs are the logs of the generators of the run; none if there is only one.
func (im *Import) generatorLogs() []generatorLog {
	if len(im.Generators) == 0 {
		return nil
	}
	logs := []generatorLog{{im.Path, im.Path}}
	for _, path := range im.Generators {
		logs = append(logs, generatorLog{path, path})
	}
	return logs
}

// Start is when a run began, and the source of that time.
type Start struct {
	At     time.Time
	Source rundir.StartSource
}

// Starts returns when each part of a log began. Sources in order: first, each later part beginning
// when the previous one ended; the times in the log; the time in the file's name or in a file beside it (named); counting
// back from written, the file's last change.
func Starts(parts []*Part, first time.Time, named Start, written time.Time) []Start {
	starts := make([]Start, len(parts))
	length := func(i int) time.Duration { return time.Duration(parts[i].Seconds * float64(time.Second)) }
	next, source := first, rundir.StartFromOption
	if first.IsZero() {
		next, source = named.At, named.Source
	}
	for i, p := range parts {
		switch {
		case first.IsZero() && !p.Began.IsZero():
			starts[i] = Start{p.Began, rundir.StartFromLog}
		case !next.IsZero():
			starts[i] = Start{next, source}
		default:
			continue
		}
		if !next.IsZero() {
			next = starts[i].At.Add(length(i))
		}
	}
	end := written
	for i := len(parts) - 1; i >= 0; i-- {
		if starts[i].Source == "" {
			starts[i] = Start{end.Add(-length(i)), rundir.StartFromFile}
		}
		end = starts[i].At
	}
	return starts
}

// Describe returns the metadata of a run that was found in a log.
func Describe(path string, t *tool.Tool, version, verb, workload string, threads series.Optional[int]) rundir.Meta {
	m := rundir.Meta{Benchmark: rundir.Benchmark{
		Tool: t.Name, ToolVersion: version, Workload: workload, Verb: cmp.Or(verb, "run"), Threads: threads.Value,
	}}
	m.Title = withThreads(titleOf(path), m.Threads)
	return m
}

// part makes a run from one part of the file bytes, unless an earlier import did.
func (im *Import) part(ctx context.Context, bytes string, p *Part, start Start, only bool, generators int) (Imported, error) {
	sum, err := fingerprint(bytes, p.Offset, p.End)
	if err != nil {
		return Imported{}, err
	}
	abs, err := filepath.Abs(im.Path)
	stderr := im.Stderr
	if err == nil && stderr != "" {
		stderr, err = filepath.Abs(stderr)
	}
	if err != nil {
		return Imported{}, err
	}
	latencies := im.latenciesOf(p, only)
	if existing, found, err := im.Earlier.find(im.Tool.Name, abs, p, sum); err != nil || found {
		return Imported{Meta: existing, Part: p, Existing: found, Latencies: latencies}, err
	}
	meta := im.meta(p, start, generators)
	meta.Import = &rundir.ImportSource{Path: abs, Stderr: stderr,
		Offset: p.Offset, Size: p.End - p.Offset, SHA256: sum, Start: start.Source}
	dir, claim, err := rundir.CreateWith(im.DataDir, meta, func(d rundir.Directory) error {
		err := copyTo(d, rundir.StdoutFile, bytes, p.Offset, cmp.Or(p.stderr, p.End))
		if err == nil && p.stderr > 0 {
			err = copyTo(d, rundir.StderrFile, bytes, p.stderr, p.End)
		}
		if beside := cmp.Or(im.joined, im.Stderr); err == nil && beside != "" {
			err = copyTo(d, rundir.StderrFile, beside, 0, math.MaxInt64)
		}
		if err == nil && len(latencies) > 0 {
			err = keepLatencies(ctx, d, im.Tool, latencies)
		}
		if err == nil && only && im.Complete != nil {
			err = im.Complete(ctx, d, meta.StartedAt, p.Seconds)
		}
		return err
	})
	if err != nil {
		return Imported{}, fmt.Errorf("import run: %w", err)
	}
	claim.Release()
	meta.ID = dir.ID()
	if meta.IsGroup() {
		meta.Group.Name = meta.ID
	}
	im.Earlier.add(meta)
	return Imported{Meta: meta, Part: p, Latencies: latencies}, nil
}

// latenciesOf returns the files with latencies and statistics of a part of the log.
func (im *Import) latenciesOf(p *Part, only bool) []string {
	if !only {
		return im.Files[p.Snapshot().Files]
	}
	if files := im.Files[p.Snapshot().Files]; len(files) > 0 {
		return files
	}
	return append(slices.Clip(im.Latencies), im.Files[""]...)
}

// meta returns the facts of the run in one part of the log.
func (im *Import) meta(p *Part, start Start, generators int) rundir.Meta {
	snap := p.Snapshot()
	threads := snap.Threads
	if !threads.Known && im.Threads > 0 {
		threads = series.Some(im.Threads)
	}
	meta := Describe(im.Path, im.Tool, snap.Meta.ToolVersion, snap.Meta.Verb, cmp.Or(snap.Meta.Workload, im.Workload), threads)
	meta.Title = withThreads(cmp.Or(im.name, titleOf(im.Path))+p.place, meta.Threads)
	meta.RatePerSecond, meta.ReportIntervalSeconds = snap.Meta.RatePerSecond, cmp.Or(snap.Announced.Value, p.carried)
	meta.Title = cmp.Or(im.Title, meta.Title)
	meta.Labels, meta.Selection, meta.Servers = maps.Clone(im.Labels), im.Selection, im.Servers
	if generators > 0 {
		if im.Title == "" {
			meta.Title += fmt.Sprintf(", %d generators", generators)
		}
		meta.Group = &rundir.Group{Generators: generators, Members: p.members}
	}
	meta.StartedAt, meta.StartEstimated = start.At.UTC().Truncate(time.Millisecond), start.Source.IsEstimated()
	end := meta.StartedAt.Add(time.Duration(p.Seconds * float64(time.Second)))
	meta.EndedAt, meta.ClosedAt = &end, &end
	meta.Conclude(p.Feed.Output())
	return meta
}

// copyTo copies a part of a log into the file of a run.
func copyTo(d rundir.Directory, name, path string, offset, end int64) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := d.OpenOutput(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(in, offset, end-offset))
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// Earlier are the imported runs of a data directory.
type Earlier struct {
	bySum  map[toolSum]rundir.Meta // the newest run of each fingerprint
	byPart map[logPart][]rundir.Meta
}

// toolSum is a tool and the fingerprint of its output, which may have output of other tools, too.
type toolSum struct{ tool, sum string }

// logPart is where a run of a tool begins in a log.
type logPart struct {
	tool   string
	path   string
	offset int64
}

// ReadEarlier reads the imported runs of a data directory. It skips damaged runs, which are
// reported elsewhere.
func ReadEarlier(dataDir string) (*Earlier, error) {
	ids, err := rundir.List(dataDir)
	if err != nil {
		return nil, err
	}
	e := &Earlier{bySum: map[toolSum]rundir.Meta{}, byPart: map[logPart][]rundir.Meta{}}
	for _, id := range ids {
		if m, err := rundir.At(dataDir, id).Load(); err == nil && m.Import != nil {
			e.add(m)
		}
	}
	return e, nil
}

func (e *Earlier) add(m rundir.Meta) {
	e.bySum[toolSum{m.Tool, m.Import.SHA256}] = m
	part := logPart{m.Tool, m.Import.Path, m.Import.Offset}
	e.byPart[part] = append(e.byPart[part], m)
}

// find returns the run that was made from the same bytes. The error is a GrownError if a run was
// made from fewer of them.
func (e *Earlier) find(tool, path string, p *Part, sum string) (_ rundir.Meta, found bool, err error) {
	if m, ok := e.bySum[toolSum{tool, sum}]; ok {
		return m, true, nil
	}
	for _, m := range e.byPart[logPart{tool, path, p.Offset}] {
		if m.Import.Size >= p.End-p.Offset {
			continue
		}
		if begun, err := fingerprint(path, p.Offset, p.Offset+m.Import.Size); err == nil && begun == m.Import.SHA256 {
			return rundir.Meta{}, false, &GrownError{m.ID}
		}
	}
	return rundir.Meta{}, false, nil
}

// fingerprint identifies the bytes of a log from offset to end.
func fingerprint(path string, offset, end int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, offset, end-offset)); err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// nameTime matches a date and time of day in the forms that programs use in file names:
// 20261121T140300Z, 2026-11-21_14-03-00, 20261121-1403, 2026-11-21T14:03.
var nameTime = regexp.MustCompile(`(?:^|\D)(20\d\d)-?(\d\d)-?(\d\d)[T_ .-]?(\d\d)[:h_.-]?(\d\d)(?:[:m_.-]?(\d\d))?(Z?)(?:\D|$)`)

// namedTime returns the time in the name of a file, local without a zone; zero if there is no time.
func namedTime(path string) time.Time {
	m := nameTime.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return time.Time{}
	}
	seconds, zone := m[6], time.Local
	if seconds == "" {
		seconds = "00"
	}
	if m[7] == "Z" {
		zone = time.UTC
	}
	at, err := time.ParseInLocation("20060102150405", m[1]+m[2]+m[3]+m[4]+m[5]+seconds, zone)
	if err != nil {
		return time.Time{}
	}
	return at
}
