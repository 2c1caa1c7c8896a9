package ingest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// LogPart is one of the runs that stand in a log file one after the other. It
// begins behind the line with which the last report of the one before it was
// complete, as where such a file is followed.
type LogPart struct {
	// Offset and End are bytes in the file.
	Offset, End int64
	// Snapshot is what the part says; the start and the like are not in it.
	Snapshot Snapshot
	// Seconds is the last time that the tool told on its own clock.
	Seconds float64
	// Began is when it began by the times that the log's own lines carry, as
	// YCSB's status lines do; zero if they carry none. A time without a zone
	// is taken as local.
	Began time.Time
	// Output is what the part shows of how the run ended.
	Output rundir.Output

	Ends []int64 // where it may end: the lines up to that with which its last report came
}

// ReadLog finds the runs in a log file that nobody writes any more.
func ReadLog(ctx context.Context, path string, t *tool.Tool) ([]LogPart, error) {
	r, err := follow.Open(path, follow.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.Finish()
	l := &logReader{parser: t.NewParser(tool.Description{})}
	for {
		line, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			l.parser.Close(l.report)
			l.end(r.Offset())
			return l.parts, l.draw(path, t)
		}
		if err != nil {
			return nil, err
		}
		l.line(line)
	}
}

// undecided is how many lines before a report that was held back may belong to
// the run behind it.
const undecided = 24

// lineEnds are where the newest lines of a log end.
type LineEnds []int64

func (e *LineEnds) Add(line follow.Line) {
	if len(*e) == 0 {
		*e = append(*e, line.Offset)
	}
	*e = append(*e, line.Offset+int64(len(line.Text))+1)
	if n := len(*e) - undecided; n > 0 {
		*e = append((*e)[:0], (*e)[n:]...)
	}
}

// logReader splits one log into its runs.
type logReader struct {
	parser   tool.Parser
	parts    []LogPart
	state    *state // of the last part
	number   int    // the parser's number of the last part
	boundary int64  // behind the line that completed the last report
	stamp    time.Time
	header   time.Time // the first time since the last report
	recent   LineEnds
	begin    int64 // of the line that is being parsed
	reported bool  // it has given a report
	old      bool  // it has given one of the last part
	exact    bool  // Began of the last part comes from a report's line
}

func (l *logReader) line(line follow.Line) {
	l.reported, l.old, l.begin = false, false, line.Offset
	l.recent.Add(line)
	if stamp, ok := LineTime(line.Text); ok {
		l.stamp = stamp
		if l.header.IsZero() {
			l.header = stamp
		}
	} else {
		l.stamp = time.Time{}
	}
	v := l.parser.Parse(tool.Line{Text: line.Text, Cut: line.Cut}, l.report)
	if l.state != nil {
		l.state.verdict(v)
	}
	if l.reported {
		l.boundary = line.Offset + int64(len(line.Text)) + 1
		l.header = time.Time{}
	}
}

func (l *logReader) report(r *tool.Report) {
	l.reported = true
	if len(l.parts) == 0 || r.Run != l.number {
		if l.old { // reports held back until this line, with which the next run begins
			l.boundary = l.begin
		}
		l.end(l.boundary)
		l.parts = append(l.parts, LogPart{Offset: l.boundary, Began: l.header})
		l.number, l.state, l.exact, l.old = r.Run, newState(), false, false
	}
	part := &l.parts[len(l.parts)-1]
	if !l.old {
		l.old = true
		part.Ends = append(part.Ends[:0], l.recent...)
	}
	l.state.apply(r, time.Time{})
	if r.ElapsedSeconds.Known {
		part.Seconds = max(part.Seconds, r.ElapsedSeconds.Value)
		if !l.exact && !l.stamp.IsZero() && r.Kind == tool.Interval {
			l.exact = true
			part.Began = l.stamp.Add(-time.Duration(r.ElapsedSeconds.Value * float64(time.Second)))
		}
	}
}

// end completes the last part.
func (l *logReader) end(offset int64) {
	if len(l.parts) == 0 {
		return
	}
	part := &l.parts[len(l.parts)-1]
	part.End, part.Output = offset, l.state.output()
	at := time.Unix(0, 0)
	part.Snapshot = l.state.snapshot(rundir.Meta{EndedAt: &at, ClosedAt: &at}, at)
}

// draw draws the lines between the parts. A parser may hold a summary back
// until it sees what follows it: then the last lines before it came are the
// next run's. They are if the part says the same without them.
func (l *logReader) draw(path string, t *tool.Tool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	for i := range len(l.parts) - 1 {
		end, err := l.parts[i].Shortest(f, t)
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		l.parts[i].End, l.parts[i+1].Offset = end, end
	}
	return nil
}

// shortest is where the part ends if the lines are left out that it says the
// same without.
func (p *LogPart) Shortest(f io.ReaderAt, t *tool.Tool) (int64, error) {
	end, found := p.End, false
	for _, at := range slices.Backward(p.Ends) {
		if at <= p.Offset {
			break
		}
		same, err := p.saysTheSame(f, t, at)
		if err != nil {
			return p.End, err
		}
		if found && !same {
			break
		}
		if same {
			end, found = at, true
		}
	}
	return end, nil
}

// saysTheSame reports whether the part's bytes up to end say what it says as a
// part of the log.
func (p *LogPart) saysTheSame(f io.ReaderAt, t *tool.Tool, end int64) (bool, error) {
	alone := NewFeed(t, &rundir.Meta{})
	if err := alone.readSection(io.NewSectionReader(f, p.Offset, end-p.Offset)); err != nil {
		return false, err
	}
	is := alone.Snapshot(p.Snapshot.Meta, time.Time{})
	return sameContent(&p.Snapshot, &is), nil
}

// sameContent reports whether two outputs of ended runs say the same.
func sameContent(a, b *Snapshot) bool {
	return a.Meta.ToolVersion == b.Meta.ToolVersion && a.Meta.Workload == b.Meta.Workload && a.Threads == b.Threads &&
		maps.Equal(a.Totals, b.Totals) && a.Errors == b.Errors && a.Reconnects == b.Reconnects &&
		a.MessageCount == b.MessageCount && slices.Equal(a.Messages, b.Messages) && sameSummary(a.Summary, b.Summary)
}

func sameSummary(a, b *Summary) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ElapsedSeconds == b.ElapsedSeconds && a.Threads == b.Threads && a.TpmC == b.TpmC && a.Parts == b.Parts &&
		slices.Equal(a.Rates, b.Rates) && slices.Equal(a.Counts, b.Counts) && slices.Equal(a.Latencies, b.Latencies)
}

// readSection parses what r holds, to its end.
func (f *Feed) readSection(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		text, err := lines.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if len(text) > 0 {
			f.line(tool.Line{Text: bytes.TrimSuffix(text, []byte("\n")), Cut: cut}, time.Time{}, false)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			f.Close(time.Time{})
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lineStamp is a date and time at the beginning of a line; YCSB writes its
// milliseconds behind a colon.
var lineStamp = regexp.MustCompile(`^\[?(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,:](\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?`)

// lineTime reads the time that a line begins with.
func LineTime(line []byte) (time.Time, bool) {
	if len(line) < 19 || line[0] != '[' && (line[0] < '1' || line[0] > '2') {
		return time.Time{}, false
	}
	m := lineStamp.FindSubmatch(line[:min(len(line), 64)])
	if m == nil {
		return time.Time{}, false
	}
	text := fmt.Sprintf("%s-%s-%sT%s.%s0", m[1], m[2], m[3], m[4], m[5])
	if zone := strings.ReplaceAll(string(m[6]), ":", ""); zone != "" {
		t, err := time.Parse("2006-01-02T15:04:05Z0700", text+zone)
		return t, err == nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local)
	return t, err == nil
}

// Fingerprint identifies the bytes of a part of a log.
func Fingerprint(path string, part LogPart) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, part.Offset, part.End-part.Offset)); err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Import makes an ended run of a part of a log file: meta says what it is, the
// part's bytes become its output. The folder appears whole.
func Import(dataDir string, meta rundir.Meta, path string, part LogPart) (rundir.Directory, error) {
	if err := rundir.CheckID(meta.ID); err != nil {
		return "", err
	}
	if !meta.Closed() {
		return "", errors.New("import run: it has not ended")
	}
	root := rundir.Root(dataDir)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	tmp, err := os.MkdirTemp(root, ".new-")
	if err != nil {
		return "", fmt.Errorf("import run: %w", err)
	}
	err = fillImport(rundir.Directory(tmp), &meta, path, part)
	if err == nil {
		err = rundir.Place(tmp, string(rundir.At(dataDir, meta.ID)))
	}
	if err == nil {
		return rundir.At(dataDir, meta.ID), nil
	}
	os.RemoveAll(tmp)
	if errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%w: %s", rundir.ErrExists, meta.ID)
	}
	return "", fmt.Errorf("import run: %w", err)
}

func fillImport(tmp rundir.Directory, meta *rundir.Meta, path string, part LogPart) error {
	if err := os.Chmod(string(tmp), 0o755); err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile} {
		out, err := tmp.OpenOutput(name)
		if err != nil {
			return err
		}
		if name == rundir.StdoutFile {
			_, err = io.Copy(out, io.NewSectionReader(in, part.Offset, part.End-part.Offset))
			if err == nil {
				err = out.Sync()
			}
		}
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return rundir.WriteMeta(tmp, meta)
}

// Imported finds the run that was made of the same bytes, or of the beginning
// of this part when the log was shorter. The second result tells which.
func Imported(dataDir, path string, part LogPart, fingerprint string) (id string, whole bool, err error) {
	ids, err := rundir.List(dataDir)
	if err != nil {
		return "", false, err
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	for _, candidate := range slices.Backward(ids) {
		m, err := rundir.At(dataDir, candidate).Load()
		if err != nil || m.Import == nil {
			continue // a damaged run is told of elsewhere
		}
		if m.Import.SHA256 == fingerprint {
			return candidate, true, nil
		}
		if m.Import.Path != path || m.Import.Offset != part.Offset || m.Import.Size >= part.End-part.Offset {
			continue
		}
		part := part
		part.End = part.Offset + m.Import.Size
		if sum, err := Fingerprint(path, part); err == nil && sum == m.Import.SHA256 {
			id = candidate
		}
	}
	return id, false, nil
}
