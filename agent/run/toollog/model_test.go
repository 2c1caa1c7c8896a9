package toollog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const banner = `sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Report intermediate results every 1 second(s)

Threads started!

`

func intervalLine(second int, tps float64) string {
	return fmt.Sprintf("[ %ds ] thds: 4 tps: %.2f qps: %.2f (r/w/o: 0.00/%.2f/0.00) lat (ms,95%%): 1.04 err/s: 0.00 reconn/s: 0.00\n", second, tps, tps, tps)
}

var elapsed = regexp.MustCompile(`(?m)\[ (\d+)s \] thds: 4 .*reconn/s: 0.00$`)

// modelled is a tool, a folder with its log and a follower, all in one goroutine: any operations on the files may
// happen between two checks. Each takes a second of a clock that only the files' times show.
type modelled struct {
	t      *testing.T
	rand   *rand.Rand
	dir    string
	path   string
	tool   *os.File
	half   string // of a line that the tool has begun
	now    time.Time
	readAt time.Time // when the agent read something last
	n      int       // lines written
	more   int       // rotated names
	long   int       // lines written at a time, as a multiple

	set      *Set
	log      *follower
	silent   bool               // no process has the log open
	runs     []rundir.Directory // in the order of their begin
	parts    bool               // the run may be in several parts
	happened map[string]int     // transitions
	gaps     int                // transitions in which lines may be missing
	blind    bool               // the agent can't see which files are open
	lossy    bool               // an operation may have removed what was not read
	holes    bool               // the tool writes without O_APPEND
	steps    int                // that the agent does in a look; 0: as many as it takes
	hasty    bool               // the log is rotated as soon as the agent enters it
	history  []string
}

func (m *modelled) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%v\n%s", err, strings.Join(m.history, "\n"))
	}
}

// touch gives a file that was written the time of the model.
func (m *modelled) touch(file *os.File) {
	m.now = m.now.Add(time.Second)
	tv := unix.NsecToTimeval(m.now.UnixNano())
	m.must(unix.Futimes(int(file.Fd()), []unix.Timeval{tv, tv}))
}

func (m *modelled) open() {
	var err error
	how := os.O_CREATE | os.O_WRONLY
	if !m.holes {
		how |= os.O_APPEND
	}
	m.tool, err = os.OpenFile(m.path, how, 0o644)
	m.must(err)
	_, err = m.tool.Seek(0, io.SeekEnd)
	m.must(err)
}

func (m *modelled) write(text string) {
	_, err := m.tool.WriteString(text)
	m.must(err)
	m.touch(m.tool)
}

func (m *modelled) endLine() {
	if m.half != "" {
		m.write(m.half)
		m.half = ""
	}
}

func (m *modelled) reopen() {
	m.endLine()
	if m.removed() {
		m.look() // what was never read of a removed file is unknown
	}
	m.must(m.tool.Close())
	m.open()
}

// rotated are the names beside the log, oldest first.
func (m *modelled) rotated() []string {
	files, err := follow.Rotated(m.path)
	m.must(err)
	var names []string
	for _, f := range files {
		if !f.Compressed {
			names = append(names, f.Path)
		}
	}
	return m.oldestFirst(names)
}

func (m *modelled) oldestFirst(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		x, _ := os.Stat(a)
		y, _ := os.Stat(b)
		return x.ModTime().Compare(y.ModTime())
	})
	return names
}

// free makes room for a rotated file and returns its name.
func (m *modelled) free() string {
	if m.rand.IntN(2) == 0 {
		m.more++
		return fmt.Sprintf("%s-202611%03d", m.path, m.more)
	}
	for i := 60; i > 0; i-- {
		if err := os.Rename(fmt.Sprint(m.path, ".", i), fmt.Sprint(m.path, ".", i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.must(err)
		}
	}
	return m.path + ".1"
}

func (m *modelled) copyTo(name string) []byte {
	text, err := os.ReadFile(m.path)
	m.must(err)
	m.must(os.WriteFile(name, text, 0o644))
	m.now = m.now.Add(time.Second)
	m.must(os.Chtimes(name, m.now, m.now))
	return text
}

func (m *modelled) copyTruncate() {
	if m.exists() {
		m.endLine()
		m.copyTo(m.free())
		m.must(os.Truncate(m.path, 0))
	}
}

// removed reports whether the file that the tool writes has no name.
func (m *modelled) removed() bool {
	var open unix.Stat_t
	m.must(unix.Fstat(int(m.tool.Fd()), &open))
	return open.Nlink == 0
}

func (m *modelled) exists() bool {
	_, err := os.Stat(m.path)
	return err == nil
}

// operations are what may happen, each as often as it is listed.
var operations = []struct {
	name string
	loss bool // only where lines may be lost
	do   func(*modelled)
}{
	{"append", false, (*modelled).append},
	{"append", false, (*modelled).append},
	{"append", false, (*modelled).append},
	{"look", false, (*modelled).look},
	{"look", false, (*modelled).look},
	{"rename, the tool reopens", false, func(m *modelled) {
		if m.exists() {
			m.must(os.Rename(m.path, m.free()))
		}
		m.reopen()
	}},
	{"rename", false, func(m *modelled) {
		if m.exists() {
			m.must(os.Rename(m.path, m.free()))
		}
	}},
	{"reopen", false, (*modelled).reopen},
	{"copytruncate", false, (*modelled).copyTruncate},
	{"replaced by a copy, the tool reopens", false, func(m *modelled) {
		if m.exists() {
			m.reopen()
			m.copyTo(m.path + "+")
			m.must(os.Rename(m.path+"+", m.path))
			m.reopen()
		}
	}},
	{"written again in place", false, func(m *modelled) {
		if m.exists() {
			m.reopen()
			text := m.copyTo(filepath.Join(m.dir, "other"))
			m.must(os.Truncate(m.path, 0))
			_, err := m.tool.Seek(0, io.SeekStart)
			m.must(err)
			for len(text) > 0 {
				n := 1 + m.rand.IntN(len(text))
				m.write(string(text[:n]))
				text = text[n:]
				if m.rand.IntN(3) == 0 {
					m.look()
				}
			}
		}
	}},
	{"the agent is killed", false, func(m *modelled) {
		// Without a log its run is over. Only the agent that has a file without a name open can
		// read what is written to it.
		if !m.lossy || m.exists() && !m.removed() {
			m.start()
		}
	}},
	{"the agent is killed as it reads", false, func(m *modelled) {
		if !m.lossy || m.exists() && !m.removed() {
			m.steps = 1 + m.rand.IntN(4)
			m.look()
			m.steps = 0
			m.start()
		}
	}},
	{"renamed and back", false, func(m *modelled) {
		if m.exists() && !m.removed() {
			name := m.free()
			m.must(os.Rename(m.path, name))
			m.append()
			m.look()
			m.must(os.Rename(name, m.path))
		}
	}},
	{"a rotated file gets the name back", false, func(m *modelled) {
		if name := m.writtenUnderAnotherName(); name != "" && !m.exists() {
			m.must(os.Rename(name, m.path))
		}
	}},
	{"a rotated file is emptied", true, func(m *modelled) {
		names := m.rotated()
		if name := m.writtenUnderAnotherName(); name != "" {
			names = append(names, name)
		}
		m.endLine()
		if m.look(); len(names) > 0 {
			m.must(os.Truncate(names[len(names)-1], 0))
		}
	}},
	{"nothing comes for long", true, func(m *modelled) {
		m.waitForLong()
		m.parts = true
	}},
	{"replaced by a copy, the tool keeps the old file", true, func(m *modelled) {
		if info, err := os.Stat(m.path); err == nil && info.Size() > 0 {
			m.endLine()
			m.look()
			m.copyTo(m.path + "+")
			m.must(os.Rename(m.path+"+", m.path))
		}
	}},
	{"truncated", true, func(m *modelled) {
		if info, err := os.Stat(m.path); err == nil && info.Size() > 0 {
			m.look() // the content of a file that was never read is unknown
			m.append()
			m.endLine()
			m.must(os.Truncate(m.path, 0))
		}
	}},
	{"cut", true, func(m *modelled) {
		if info, err := os.Stat(m.path); err == nil && info.Size() > 500 { // of less no whole report may be left
			m.endLine()
			m.look()
			m.must(os.Truncate(m.path, info.Size()-m.rand.Int64N(100)))
			m.write("\n")
		}
	}},
	{"the oldest is removed", true, func(m *modelled) {
		packed, err := filepath.Glob(m.path + "*.gz")
		m.must(err)
		if names := m.oldestFirst(append(packed, m.rotated()...)); len(names) > 0 {
			m.must(os.Remove(names[0]))
		}
	}},
	{"one is compressed", true, func(m *modelled) {
		names := m.rotated()
		if len(names) == 0 {
			return
		}
		name := names[m.rand.IntN(len(names))]
		info, err := os.Stat(name)
		m.must(err)
		m.must(os.Remove(name))
		m.more++
		packed := fmt.Sprintf("%s-202611%03d.gz", m.path, m.more)
		m.must(os.WriteFile(packed, nil, 0o644))
		m.must(os.Chtimes(packed, info.ModTime(), info.ModTime()))
	}},
}

// writtenUnderAnotherName returns the rotated file that the tool still writes; empty without one.
func (m *modelled) writtenUnderAnotherName() string {
	mine, err := m.tool.Stat()
	m.must(err)
	for _, name := range m.rotated() {
		if info, err := os.Stat(name); err == nil && os.SameFile(mine, info) {
			return name
		}
	}
	return ""
}

func (m *modelled) append() {
	m.endLine()
	for range 1 + m.rand.IntN(3*m.long) {
		m.n++
		line := intervalLine(m.n, float64(m.n))
		if m.rand.IntN(5) == 0 {
			// Another file that begins with all that was read is taken for the same.
			cut := len("[ 100s ]") + m.rand.IntN(len(line)-8)
			m.write(line[:cut])
			m.half = line[cut:]
			return
		}
		m.write(line)
	}
}

// start starts a follower after the previous one was killed.
func (m *modelled) start() {
	if m.log != nil {
		m.log.close()
	}
	m.set = New(m.t.Context(), Options{
		DataDir: filepath.Join(m.dir, "data"), Logger: slog.New(m), Tracker: m,
		Recent: 10_000 * time.Hour, Settled: 10_000 * time.Hour,
		Tools: func() tool.Set { return tool.Set{sysbench.Tool} },
	}, func(do func()) { do() })
	m.set.usageOf = m.usageOf
	for _, dir := range m.runs {
		m.must(os.Chtimes(dir.Path(rundir.StdoutFile), m.readAt, m.readAt))
		meta, err := dir.Load()
		m.must(err)
		m.set.Add(&meta)
	}
	m.log = nil
	m.find(true)
}

// find makes the set follow the log.
func (m *modelled) find(existing bool) {
	f := m.set.newFollower(m.path, Log{Glob: m.path, Tool: "sysbench"}, sysbench.Tool)
	info, err := os.Stat(m.path)
	f.skipOld = existing && err == nil && info.Size() > 0
	m.set.add(f, inode{})
	m.must(f.runs.open(m.t.Context()))
	m.log = f
}

func (m *modelled) usageOf(file *os.File) follow.Usage {
	mine, err := m.tool.Stat()
	m.must(err)
	theirs, err := file.Stat()
	m.must(err)
	switch {
	case m.blind:
		return follow.Unknown
	case os.SameFile(mine, theirs) && !m.silent:
		return follow.Written
	}
	return follow.Unused
}

// look makes the follower read everything that it finds.
func (m *modelled) look() {
	if m.log == nil {
		m.find(false)
	}
	end := m.log.runs.copy.end
	defer func() {
		if m.log.runs.copy.end != end {
			m.readAt = m.now
		}
	}()
	for idle, steps := 0, 0; idle < 2 && (m.steps == 0 || steps < m.steps); steps++ {
		f := m.log
		f.checked, f.usageAt = time.Time{}, time.Time{}
		before := f.open
		found, err := f.step(m.t.Context())
		m.must(err)
		if idle++; found {
			idle = 0
		}
		if f.state == ended {
			m.set.followers = map[string]*follower{}
			f.close()
			m.find(false)
		}
		if m.hasty && f.open != before && f.state == following {
			m.copyTruncate()
		}
	}
}

// waitForLong makes the follower see that nothing comes and no process writes the log.
func (m *modelled) waitForLong() {
	m.endLine()
	m.look()
	m.silent = true
	m.log.lastRead = time.Now().Add(-20_000 * time.Hour)
	m.look()
	m.silent = false
	m.reopen()
}

// Track and Ended implement Tracker.
func (m *modelled) Track(dir rundir.Directory, _ rundir.Meta, _ *ingest.Feed) Run {
	if !slices.Contains(m.runs, dir) {
		m.runs = append(m.runs, dir)
	}
	return marks{dir, m.t}
}

func (m *modelled) Ended() {}

// marks is a run that records its markers.
type marks struct {
	dir rundir.Directory
	t   *testing.T
}

func (m marks) ReportInterval() time.Duration { return time.Second }

func (m marks) Mark(text string) {
	if err := marker.Append(m.dir, marker.Marker{Kind: marker.Point, Run: m.dir.ID(), Text: text, Start: time.Now()}); err != nil {
		m.t.Error(err)
	}
}

func (m marks) Fault(what string, err error) { m.t.Errorf("%s: %v", what, err) }

// Enabled, Handle, WithAttrs and WithGroup implement slog.Handler: the model notes which transitions happen.
func (m *modelled) Enabled(context.Context, slog.Level) bool { return true }

func (m *modelled) Handle(_ context.Context, r slog.Record) error {
	var t transition
	var missing gap
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case gap:
			missing = v
		case event:
			t.on = v
		case state:
			if a.Key == "state" {
				t.from = v
			}
		}
		return true
	})
	if r.Message == "the log's files changed" {
		m.history = append(m.history, fmt.Sprintf("  %v: %v", t.from, t.on))
		m.happened[fmt.Sprint(t.from, ": ", t.on)]++
		if missing != "" {
			m.gaps++
			m.happened[string(missing)]++
		}
	}
	return nil
}

func (m *modelled) WithAttrs([]slog.Attr) slog.Handler { return m }

func (m *modelled) WithGroup(string) slog.Handler { return m }

// check compares the copies with what was written.
func (m *modelled) check() {
	m.t.Helper()
	m.endLine()
	m.look()
	if m.blind && m.log.state == renamed { // as long as the old file may still be written, it is read
		m.log.lastRead = time.Now().Add(-20_000 * time.Hour)
		m.look()
	}
	var numbers []int
	gaps := 0
	for _, dir := range m.runs {
		text, err := os.ReadFile(dir.Path(rundir.StdoutFile))
		m.must(err)
		for _, found := range elapsed.FindAllSubmatch(text, -1) {
			n, err := strconv.Atoi(string(found[1]))
			m.must(err)
			if string(found[0])+"\n" == intervalLine(n, float64(n)) { // a whole line, not one that was cut and joined
				numbers = append(numbers, n)
			}
		}
		marks, err := marker.Read(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			m.must(err)
		}
		gaps += len(marks)
	}
	if m.parts { // between two of them no run records a gap
		gaps = m.gaps
	}
	lost := m.n - len(numbers)
	ordered := slices.IsSortedFunc(numbers, func(a, b int) int { return a - b }) && len(slices.Compact(slices.Clone(numbers))) == len(numbers)
	if !ordered || len(m.runs) > 1 && !m.parts || lost > 0 && gaps == 0 || !m.lossy && (lost > 0 || gaps > 0) {
		m.t.Fatalf("%d runs, %d of %d lines, %d gaps: %v\n%s", len(m.runs), len(numbers), m.n, gaps, numbers, strings.Join(m.history, "\n"))
	}
}

// newModel returns a model whose tool has begun a run that the agent has found.
func newModel(t *testing.T, seed uint64) *modelled {
	t.Helper()
	dir := t.TempDir()
	m := &modelled{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), dir: dir, path: filepath.Join(dir, "l", "a.log"), long: 1,
		now: time.Now().Add(-24 * time.Hour), happened: map[string]int{},
	}
	m.must(os.Mkdir(filepath.Dir(m.path), 0o755))
	m.open()
	t.Cleanup(func() {
		m.tool.Close()
		m.log.close()
	})
	m.start()
	m.write(banner)
	m.append()
	m.endLine()
	m.look()
	return m
}

// TestModel guards that whatever happens to a log between two checks, each line is read at most once and in order,
// and lines are only lost at recorded gaps. It also guards that all of the table of transitions is needed.
func TestModel(t *testing.T) {
	seeds, first := 100, 1
	for name, n := range map[string]*int{"MODEL_SEEDS": &seeds, "MODEL_SEED": &first} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *n, err = strconv.Atoi(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	happened := map[string]int{}
	for _, kind := range []string{"whole", "without O_APPEND", "blind", "lossy"} {
		t.Run(kind, func(t *testing.T) {
			for i := range seeds {
				seed := uint64(first + i)
				ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					m := newModel(t, seed)
					m.lossy, m.holes, m.blind = kind == "lossy", kind == "without O_APPEND", kind == "blind"
					if m.holes { // of more than a file's head
						m.long = 8
					}
					m.live()
					for name, n := range m.happened {
						happened[name] += n
					}
				})
				if !ok {
					t.Fatalf("again: MODEL_SEED=%d MODEL_SEEDS=1 go test ./agent/run/toollog -run 'TestModel/%s'", seed, kind)
				}
			}
		})
	}
	t.Run("an older file returns", func(t *testing.T) {
		m := newModel(t, 1)
		m.lossy = true
		old, err := os.ReadFile(m.path)
		m.must(err)
		m.append()
		m.endLine()
		m.must(os.Rename(m.path, m.path+".1"))
		m.start()
		m.look() // the agent has read the last lines under another name
		m.must(os.WriteFile(m.path, old, 0o644))
		m.reopen()
		m.look()
		m.append()
		m.check()
		for name, n := range m.happened {
			happened[name] += n
		}
	})
	for _, row := range transitions {
		isTrivial := row.on == unchanged || row.on == appended || row.on == incomplete
		if name := fmt.Sprint(row.from, ": ", row.on); !isTrivial && happened[name] == 0 && seeds >= 100 {
			t.Errorf("never happened: %s", name)
		}
	}
	for _, missing := range gaps {
		if happened[string(missing)] == 0 && seeds >= 100 {
			t.Errorf("never happened: %s", missing)
		}
	}
	t.Log(happened)
}

// live does random operations, and compares what was read with what was written.
func (m *modelled) live() {
	for range 10 + m.rand.IntN(60) {
		op := operations[m.rand.IntN(len(operations))]
		if op.loss && !m.lossy {
			continue
		}
		m.history = append(m.history, fmt.Sprintf("%s (%d lines)", op.name, m.n))
		op.do(m)
	}
	m.history = append(m.history, "the end")
	m.reopen() // a gap is known when something follows it
	m.append()
	if !m.lossy && m.rand.IntN(2) == 0 { // the last lines are in copies, and no agent ran meanwhile
		m.look()
		m.copyTruncate()
		m.append()
		m.steps = 1 + m.rand.IntN(4)
		m.look()
		m.steps = 0
		m.copyTruncate()
		m.start()
	}
	m.check()
}

// TestTransitions guards that a state has one transition for an event, and that the docs name each reason for a gap.
func TestTransitions(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range gaps {
		if !strings.Contains(string(docs), "| "+string(missing)+" |") {
			t.Errorf("docs/reliability.md does not name the gap %q", missing)
		}
	}
	for i, row := range transitions {
		if first, ok := after(row.from, row.on); !ok || first != row {
			t.Errorf("row %d, %v: %v, is there twice", i, row.from, row.on)
		}
	}
}

// TestRotatedBeforeItIsRead guards that lines of a file which is copied and truncated between the decision to read
// it and the first read of it are read from the copy.
func TestRotatedBeforeItIsRead(t *testing.T) {
	m := newModel(t, 1)
	for range 3 {
		m.copyTruncate()
		m.append()
		m.hasty = true
		m.look()
		m.hasty = false
		m.look()
	}
	m.append()
	m.check()
}

// TestRewrittenBeforeItIsEntered guards that reading does not continue in a file that was truncated and rewritten,
// after a hole, between the decision to continue in it and the first read.
func TestRewrittenBeforeItIsEntered(t *testing.T) {
	m := newModel(t, 1)
	m.copyTo(m.path + "+")
	m.must(os.Rename(m.path+"+", m.path))
	m.reopen()
	m.log.usageAt = time.Time{}
	m.log.state = renamed
	on, next, err := m.log.observe(t.Context())
	m.must(err)
	if on != nextFound || next.relation != continues {
		t.Fatalf("%v, %+v", on, next)
	}
	m.append()
	m.endLine()
	info, err := os.Stat(m.path)
	m.must(err)
	m.copyTruncate() // the tool does not append, so it leaves a hole
	m.must(m.tool.Close())
	m.tool, err = os.OpenFile(m.path, os.O_WRONLY, 0o644)
	m.must(err)
	_, err = m.tool.Seek(info.Size()+200, io.SeekStart)
	m.must(err)
	m.append()
	m.endLine()
	if err := m.log.enter(t.Context(), next); !errors.Is(err, follow.ErrRewritten) {
		t.Fatal(err)
	}
	next.file.Close()
	m.look()
	m.append()
	m.check()
}

// TestRotatedBeforeItIsEntered guards that a file that is copied, truncated and written again between the decision to
// enter it and the first read of it is read from the copy.
func TestRotatedBeforeItIsEntered(t *testing.T) {
	m := newModel(t, 1)
	m.must(os.Rename(m.path, m.free()))
	m.reopen()
	m.append()
	m.log.usageAt = time.Time{}
	m.log.state = renamed
	on, next, err := m.log.observe(t.Context())
	m.must(err)
	if on != nextFound || next.relation != different {
		t.Fatalf("%v, %+v", on, next)
	}
	m.copyTruncate()
	m.append()
	m.endLine()
	if err := m.log.enter(t.Context(), next); !errors.Is(err, follow.ErrRewritten) {
		t.Fatal(err)
	}
	next.file.Close()
	m.look()
	m.append()
	m.check()
}

// TestRelation guards how a file is recognised.
func TestRelation(t *testing.T) {
	text := strings.Repeat("a line\n", 2000)
	read := []byte(text[:10_000])
	p := passage{head: read[:rundir.HeadSize], tail: read[9000:], end: 10_000}
	for file, want := range map[string]relation{
		text[:10_000]: continues, text: continues, text[:5000]: beginning, text[:10]: beginning, "": beginning,
		text[:5000] + "x": beginning, // the file may still get what was read: only its first and last bytes count
		"b" + text[1:]:    different, text[:9999] + "x" + text[10_000:]: altered, text[:2000] + "x" + text[2001:]: altered, "a lone": different,
	} {
		if got := p.relate(strings.NewReader(file), int64(len(file)), func(n int64) bool { return n >= 1000 }); got != want {
			t.Errorf("%d bytes, %.20q: %d, want %d", len(file), file, got, want)
		}
	}
}
