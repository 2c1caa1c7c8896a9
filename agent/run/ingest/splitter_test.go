package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/model/tool/tpccmysql"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// allTools are the tools that have recordings: all.
var allTools = registry.Tools

// recordings are the outputs in a tool's own tests, as 2>&1 would write them: stdout.txt with the stderr.txt beside it,
// and texts in folders without either.
func recordings(t *testing.T, tl *tool.Tool) [][]byte {
	t.Helper()
	var found [][]byte
	err := filepath.WalkDir("../../model/tool/"+strings.ReplaceAll(tl.Name, "-", "")+"/testdata", func(path string, d os.DirEntry, err error) error {
		beside := func(name string) bool {
			_, err := os.Stat(filepath.Join(filepath.Dir(path), name))
			return err == nil
		}
		if err != nil || d.Name() != "stdout.txt" && (!strings.HasSuffix(path, ".txt") || beside("stdout.txt") || beside("stderr.txt")) {
			return err
		}
		stdout, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		stderr, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stderr.txt"))
		if d.Name() != "stdout.txt" {
			stderr = nil
		}
		text := append(stderr, stdout...)
		if n := len(text); n > 0 && text[n-1] != '\n' {
			text = append(text, '\n')
		}
		found = append(found, text)
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("recordings of %s: %v, %d found", tl.Name, err, len(found))
	}
	return found
}

// lines cuts a log into lines as follow does.
func lines(log []byte) []follow.Line {
	var all []follow.Line
	offset := int64(0)
	for text := range bytes.Lines(log) {
		trimmed := bytes.TrimSuffix(text, []byte("\n"))
		all = append(all, follow.Line{Text: trimmed, Offset: offset, Size: int64(len(text)), Unterminated: len(trimmed) == len(text)})
		offset += int64(len(text))
	}
	return all
}

// begun is what a run directory records about a part.
type begun struct {
	Offset, End int64
	Snapshot    Snapshot
	Output      rundir.Output
	Lines       Lines
}

// splitting collects the parts that Splitters find, as an agent does: a part that
// begins where one has begun already is the same run.
type splitting struct {
	order []int64
	parts map[int64]*Part
}

func (s *splitting) splitter(tl *tool.Tool, log []byte, offset, first int64) *Splitter {
	sp := NewSplitter(context.Background(), tl, bytes.NewReader(log), offset, first)
	sp.OnBegin = func(p *Part, _ *tool.Report, _ time.Time, _ bool) {
		if s.parts[p.Offset] == nil {
			s.order = append(s.order, p.Offset)
		}
		s.parts[p.Offset] = p
	}
	return sp
}

func (s *splitting) result() []begun {
	var all []begun
	for _, offset := range s.order {
		p := s.parts[offset]
		all = append(all, begun{p.Offset, p.End, p.Snapshot(), p.Feed.Output(), p.Feed.lines()})
	}
	return all
}

// resume is where an agent reads from after a restart, and where the first run
// begins that has not ended.
func (s *splitting) resume() (offset, first int64) {
	for _, begin := range s.order {
		end := s.parts[begin].End
		if end == 0 {
			return offset, begin
		}
		offset, first = begin, end
	}
	return offset, first
}

// followed reads a log line by line as it grows. After every line for which restart returns true, a new Splitter
// catches up and continues.
func followed(tl *tool.Tool, log []byte, restart func(line int) bool) []begun {
	s := &splitting{parts: map[int64]*Part{}}
	all := lines(log)
	sp := s.splitter(tl, log, 0, 0)
	for i, l := range all {
		sp.content = bytes.NewReader(log[:l.Offset+int64(len(l.Text))+1])
		sp.Line(l, time.Time{}, true)
		if !restart(i) {
			continue
		}
		from, first := s.resume()
		sp = s.splitter(tl, log, from, first)
		for _, past := range all[:i+1] {
			if past.Offset >= from {
				sp.Line(past, time.Time{}, false)
			}
		}
	}
	sp.Close(time.Time{})
	return s.result()
}

// TestSameRunsHoweverRead guards that a log has the same runs, with the same bytes,
// counters, summaries and outcomes, whether it is followed, caught up with after
// restarts or imported.
func TestSameRunsHoweverRead(t *testing.T) {
	for _, tl := range allTools {
		t.Run(tl.Name, func(t *testing.T) {
			recorded := recordings(t, tl)
			logs := map[string][]byte{}
			for i, one := range recorded {
				if len(one) > 30_000 {
					continue
				}
				next := recorded[(i+1)%len(recorded)]
				third := recorded[(i+len(recorded)/2)%len(recorded)]
				name := strconv.Itoa(i)
				logs["two "+name] = bytes.Join([][]byte{one, next}, nil)
				if i%3 != 0 {
					continue
				}
				logs["one "+name] = one
				logs["twice "+name] = bytes.Join([][]byte{one, one}, nil)
				logs["three "+name] = bytes.Join([][]byte{one, next, third}, nil)
				logs["cut head "+name] = bytes.Join([][]byte{one[bytes.IndexByte(one[len(one)/3:], '\n')+1+len(one)/3:], next}, nil)
				logs["cut tail "+name] = bytes.Join([][]byte{one[:len(one)/2], []byte("\n"), next}, nil)
				logs["CRLF "+name] = bytes.ReplaceAll(bytes.Join([][]byte{one, next}, nil), []byte("\n"), []byte("\r\n"))
			}
			for name, log := range logs {
				parts, err := SplitLog(t.Context(), section(log), tl, 0, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				var imported []begun
				for _, p := range parts {
					imported = append(imported, begun{p.Offset, p.End, p.Snapshot(), p.Feed.Output(), p.Feed.lines()})
				}
				want := followed(tl, log, func(int) bool { return false })
				if n := len(imported); n > 0 && len(want) == n { // to the end of the log, which is still written where it is followed
					imported[n-1].End, imported[n-1].Lines = want[n-1].End, want[n-1].Lines
				}
				if d := cmp.Diff(want, imported, ignoreTimes); d != "" {
					t.Errorf("%s: imported differs from followed:\n%s", name, d)
				}
				for _, every := range []int{1, 7, 40} {
					if len(log)/every > 1500 {
						continue // takes a while
					}
					restarted := followed(tl, log, func(line int) bool { return line%every == every-1 })
					if d := cmp.Diff(want, restarted, ignoreTimes); d != "" {
						t.Errorf("%s: restarted every %d lines differs from followed:\n%s", name, every, d)
					}
				}
			}
		})
	}
}

var ignoreTimes = cmp.Options{cmpopts.IgnoreFields(Snapshot{}, "LastReport", "Lines"), cmpopts.EquateEmpty()}

// TestImportedPartsAreRuns guards that each part of a log with everything that a tool ever printed gives the same
// result alone as within the log.
func TestImportedPartsAreRuns(t *testing.T) {
	for _, tl := range allTools {
		t.Run(tl.Name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "all.log")
			all := bytes.Join(recordings(t, tl), []byte("\n"))
			write(t, log, string(all))
			im := Import{DataDir: t.TempDir(), Log: Log{Path: log, Tool: tl}}
			runs, err := im.Run(t.Context())
			if err != nil || len(runs) < 2 {
				t.Fatalf("%d runs, %v", len(runs), err)
			}
			begin := int64(0)
			for i, r := range runs {
				if r.Part.Offset < begin || r.Part.End < r.Part.Offset {
					t.Fatalf("part %d is from %d to %d, the previous one ends at %d", i, r.Part.Offset, r.Part.End, begin)
				}
				begin = r.Part.End
				snap, err := Read(t.Context(), rundir.At(im.DataDir, r.Meta.ID), tool.Set{tl})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(r.Part.Snapshot(), snap, cmpopts.IgnoreFields(Snapshot{}, "Meta", "LastReport", "Lines"), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("part %d, bytes %d to %d:\n%s", i, r.Part.Offset, r.Part.End, d)
				}
				if snap.Meta.Outcome == "" || snap.Meta.Outcome != r.Meta.Outcome {
					t.Errorf("part %d: outcome %q, want %q", i, snap.Meta.Outcome, r.Meta.Outcome)
				}
			}
		})
	}
}

// TestTitleOfImport guards that runs of stdout.txt in several folders can be distinguished.
func TestTitleOfImport(t *testing.T) {
	for path, want := range map[string]string{"/runs/fast/stdout.txt": "fast/stdout.txt", "/runs/fast.log": "fast.log", "/runs/fast/log": "fast/log", "/log": "/log"} {
		if title := titleOf(path); title != want {
			t.Errorf("%s: %s, want %s", path, title, want)
		}
	}
}

func TestImportTwice(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	text := string(recordings(t, tpccmysql.Tool)[0])
	write(t, log, text)
	im := Import{DataDir: t.TempDir(), Log: Log{Path: log, Tool: tpccmysql.Tool}}
	first, err := im.Run(t.Context())
	if err != nil || len(first) != 1 || first[0].Existing {
		t.Fatalf("imported %+v, %v", first, err)
	}
	again, err := im.Run(t.Context())
	if err != nil || len(again) != 1 || !again[0].Existing || again[0].Meta.ID != first[0].Meta.ID {
		t.Errorf("imported again: %+v, %v", again, err)
	}
	write(t, log, text+"more\n")
	var grown *GrownError
	if _, err := im.Run(t.Context()); !errors.As(err, &grown) || grown.ID != first[0].Meta.ID {
		t.Errorf("a log that has grown: %v", err)
	}
	write(t, log, "x\n"+text)
	if other, err := im.Run(t.Context()); err != nil || len(other) != 1 || other[0].Existing {
		t.Errorf("another log: %+v, %v", other, err)
	}
	write(t, log, "nothing\n")
	if _, err := im.Run(t.Context()); !errors.Is(err, ErrNoRuns) {
		t.Errorf("a log without runs: %v", err)
	}
	left, err := os.ReadDir(rundir.Root(im.DataDir))
	if err != nil || len(left) != 2 {
		t.Errorf("in the runs folder: %v, %v", left, err)
	}
}

func section(log []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(log), 0, int64(len(log)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzSplitLog guards that the parts of any log are within it and in order.
func FuzzSplitLog(f *testing.F) {
	f.Add("[ 1s ] thds: 4 tps: 10.00 qps: 10.00 (r/w/o: 0.00/10.00/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00\n")
	f.Add("2026-11-21 02:14:03\nsysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 4\n")
	f.Add("[2026-99-21 02:14:03:1] [ 1s ] thds: 1\x00\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		parts, err := SplitLog(t.Context(), section([]byte(text)), sysbench.Tool, 0, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		end := int64(0)
		for _, p := range parts {
			if p.Offset < end || p.End < p.Offset || p.End > int64(len(text)) {
				t.Fatalf("part from %d to %d of %d, the previous one ends at %d", p.Offset, p.End, len(text), end)
			}
			end = p.End
		}
	})
}

// watchedLog is a log that checks the counted lines of a run at each read.
type watchedLog struct {
	*bytes.Reader
	part *Part
	most uint64
}

func (l *watchedLog) ReadAt(p []byte, offset int64) (int, error) {
	l.look()
	return l.Reader.ReadAt(p, offset)
}

func (l *watchedLog) look() (reported uint64) {
	if l.part != nil {
		reported = l.part.Snapshot().Lines.Reported
		l.most = max(l.most, reported)
	}
	return reported
}

// TestLinesNeverFall guards that no line is counted for a run if it belongs to another run at the end: a scrape would
// see the counter fall.
func TestLinesNeverFall(t *testing.T) {
	for _, tl := range allTools {
		for i, text := range recordings(t, tl) {
			log := &watchedLog{Reader: bytes.NewReader(text)}
			s := NewSplitter(t.Context(), tl, log, 0, 0)
			s.OnBegin = func(p *Part, _ *tool.Report, _ time.Time, _ bool) { log.part, log.most = p, 0 }
			s.OnEnd = func(p *Part, _ time.Time) {
				// A run whose reports are empty ends without a line.
				if got := log.look(); p == log.part && got > 0 && got < log.most {
					t.Errorf("%s, recording %d: %d lines after %d", tl.Name, i, got, log.most)
				}
			}
			for _, line := range lines(text) {
				s.Line(line, time.Time{}, false)
			}
			s.Close(time.Time{})
		}
	}
}
