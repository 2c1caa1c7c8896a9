package live

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

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
	looked time.Time // when the agent looked last
	n      int       // lines written
	more   int       // rotated names
	long   int       // lines written at a time, as a multiple

	watcher *Watcher
	log     *logFile
	blind   bool // the agent can't see which files are open
	lossy   bool // an operation may have removed what was not read
	holes   bool // the tool writes without O_APPEND
	// beforeBegin happens after the log was located and before it is read.
	beforeBegin func()

	steps   int  // that the agent does in a look; 0: as many as it takes
	hasty   bool // the log is rotated as soon as the agent enters it
	history []string
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
	names, _ := follow.Rotated(m.path)
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

func (m *modelled) append() {
	m.endLine()
	for range 1 + m.rand.IntN(3*m.long) {
		m.n++
		line := intervalLine(m.n, float64(m.n))
		if m.rand.IntN(5) == 0 {
			cut := 1 + m.rand.IntN(len(line)-1)
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
	w := NewWatcher(Options{
		DataDir: filepath.Join(m.dir, "data"), Logger: slog.New(slog.DiscardHandler),
		Tools:  func() tool.Set { return tool.Set{sysbench.Tool} },
		Limits: func() Limits { return Limits{MaxLive: 64, MaxKept: 64} },
	})
	w.recent, w.settled = 10_000*time.Hour, 10_000*time.Hour
	ids, err := rundir.List(w.opts.DataDir)
	m.must(err)
	for _, id := range ids {
		m.must(os.Chtimes(rundir.At(w.opts.DataDir, id).Path(rundir.StdoutFile), m.looked, m.looked))
	}
	var none sync.WaitGroup
	w.scan(m.t.Context(), &none)
	m.watcher, m.log = w, nil
	m.find(true)
}

// find makes the watcher follow the log, if there is one.
func (m *modelled) find(existing bool) {
	f := m.watcher.newLogFile(m.path, Log{Glob: m.path, Tool: "sysbench"})
	f.existing, f.tool = existing, sysbench.Tool
	if err := m.watcher.locate(m.t.Context(), f); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.must(err)
	}
	if f.reader == nil {
		return
	}
	f.spawn, f.start = func(do func()) { do() }, func(*tracker) {}
	f.usageOf = func(file *os.File) follow.Usage {
		mine, err := m.tool.Stat()
		m.must(err)
		theirs, err := file.Stat()
		m.must(err)
		switch {
		case m.blind:
			return follow.Unknown
		case os.SameFile(mine, theirs):
			return follow.Written
		}
		return follow.Unused
	}
	m.watcher.logs.files[f] = f.source
	m.log = f
	if do := m.beforeBegin; do != nil {
		m.beforeBegin = nil
		do()
	}
	m.must(f.begin(m.t.Context()))
}

// look makes the follower read everything that it finds.
func (m *modelled) look() {
	if m.log == nil {
		if m.find(false); m.log == nil {
			return
		}
	}
	f := m.log
	m.looked = m.now
	for idle, steps := 0, 0; idle < 2 && (m.steps == 0 || steps < m.steps); steps++ {
		l, err := follow.Line{}, follow.ErrRewritten
		if f.state != missing {
			l, err = f.reader.Poll(m.t.Context())
		}
		reader := f.reader
		if err != nil {
			f.looked, f.asked = time.Time{}, time.Time{}
			idle++
		}
		over, err := f.take(m.t.Context(), l, err)
		m.must(err)
		if over {
			m.t.Fatalf("over\n%s", strings.Join(m.history, "\n"))
		}
		if f.reader != reader {
			idle = 0
			if m.hasty && f.state == following && f.reader.End() == 0 {
				m.copyTruncate()
			}
		}
	}
}

// check compares the copies with what was written.
func (m *modelled) check() {
	m.t.Helper()
	m.endLine()
	m.look()
	ids, err := rundir.List(filepath.Join(m.dir, "data"))
	m.must(err)
	var numbers []int
	gaps := 0
	for _, id := range ids {
		dir := rundir.At(filepath.Join(m.dir, "data"), id)
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
	lost := m.n - len(numbers)
	ordered := slices.IsSortedFunc(numbers, func(a, b int) int { return a - b }) && len(slices.Compact(slices.Clone(numbers))) == len(numbers)
	if !ordered || len(ids) > 1 || lost > 0 && gaps == 0 || !m.lossy && (lost > 0 || gaps > 0) {
		m.t.Fatalf("%d runs, %d of %d lines, %d gaps: %v\n%s", len(ids), len(numbers), m.n, gaps, numbers, strings.Join(m.history, "\n"))
	}
}

// TestFollowingModel guards that whatever happens to a log between two checks, each line is read at most once and in
// order, and lines are only lost at recorded gaps.
func TestFollowingModel(t *testing.T) {
	seeds := 100
	first, err := strconv.Atoi(cmp.Or(os.Getenv("MODEL_SEED"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(os.Getenv("MODEL_SEEDS")); err == nil {
		seeds = n
	}
	for _, kind := range []string{"whole", "holes", "lossy"} {
		t.Run(kind, func(t *testing.T) {
			lossy := kind == "lossy"
			for i := range seeds {
				seed := uint64(first + i)
				ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					dir := t.TempDir()
					m := &modelled{
						t: t, rand: rand.New(rand.NewPCG(seed, 0)), dir: dir, path: filepath.Join(dir, "l", "a.log"), lossy: lossy, holes: kind == "holes", long: 1,
						now: time.Now().Add(-24 * time.Hour),
					}
					if m.holes { // of more than a file's head
						m.long = 8
					}
					m.must(os.Mkdir(filepath.Dir(m.path), 0o755))
					m.open()
					defer func() {
						m.tool.Close()
						if m.log != nil {
							m.log.close()
						}
					}()
					m.start()
					m.write(banner)
					m.append()
					m.endLine()
					m.look() // the run is found
					for range 10 + m.rand.IntN(60) {
						op := operations[m.rand.IntN(len(operations))]
						if op.loss && !lossy {
							continue
						}
						m.history = append(m.history, fmt.Sprintf("%s (%d lines)", op.name, m.n))
						op.do(m)
					}
					m.reopen() // a gap is known when something follows it
					m.append()
					if !lossy && m.rand.IntN(2) == 0 { // the last lines are in copies, and no agent ran meanwhile
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
				})
				if !ok {
					t.Fatalf("again: MODEL_SEED=%d MODEL_SEEDS=1 go test ./agent/run/live -run TestFollowingModel", seed)
				}
			}
		})
	}
}

// begun returns a model whose log has a few lines that the agent has not read.
func begun(t *testing.T) *modelled {
	t.Helper()
	dir := t.TempDir()
	m := &modelled{t: t, rand: rand.New(rand.NewPCG(1, 0)), dir: dir, path: filepath.Join(dir, "l", "a.log"), long: 1, now: time.Now().Add(-24 * time.Hour)}
	m.must(os.Mkdir(filepath.Dir(m.path), 0o755))
	m.open()
	t.Cleanup(func() {
		m.tool.Close()
		m.log.close()
	})
	m.start()
	m.write(banner)
	m.append()
	return m
}

// TestNamesMoveAsTheAgentStarts guards that lines of copies are read if the names of the files moved while an agent
// that was killed searched for what it had read, and if it had read a few lines of a copy after it was made.
func TestNamesMoveAsTheAgentStarts(t *testing.T) {
	m := begun(t)
	m.look()
	m.copyTruncate()
	m.append()
	m.look()
	m.copyTruncate()
	m.append()
	m.copyTruncate()
	m.looked = m.now.Add(time.Second)
	away := filepath.Join(m.dir, "away")
	m.must(os.Mkdir(away, 0o755))
	move := func(from, to string) {
		names, err := os.ReadDir(from)
		m.must(err)
		for _, name := range names {
			if name.Name() != "a.log" {
				m.must(os.Rename(filepath.Join(from, name.Name()), filepath.Join(to, name.Name())))
			}
		}
	}
	move(filepath.Dir(m.path), away)
	m.beforeBegin = func() { move(away, filepath.Dir(m.path)) }
	m.start()
	m.check()
}

// TestRotatedBeforeItIsRead guards that lines of a file which is copied and truncated between
// the decision to read it and the first read of it are read from the copy.
func TestRotatedBeforeItIsRead(t *testing.T) {
	m := begun(t)
	m.endLine()
	m.look()
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
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			dir := t.TempDir()
			m := &modelled{t: t, rand: rand.New(rand.NewPCG(1, 0)), dir: dir, path: filepath.Join(dir, "l", "a.log"), long: 1, now: time.Now().Add(-24 * time.Hour)}
			m.must(os.Mkdir(filepath.Dir(m.path), 0o755))
			m.open()
			defer func() {
				m.tool.Close()
				m.log.close()
			}()
			m.start()
			m.write(banner)
			m.append()
			m.endLine()
			m.look()
			rewrite := func() { // as copytruncate does to a tool that does not append
				m.append()
				m.endLine()
				info, err := os.Stat(m.path)
				m.must(err)
				m.copyTo(m.free())
				m.must(os.Truncate(m.path, 0))
				m.must(m.tool.Close())
				m.tool, err = os.OpenFile(m.path, os.O_WRONLY, 0o644)
				m.must(err)
				_, err = m.tool.Seek(info.Size()+200, io.SeekStart)
				m.must(err)
				m.append()
				m.endLine()
			}
			if restarted {
				m.beforeBegin = rewrite
				m.start()
			} else {
				m.copyTo(m.path + "+")
				m.must(os.Rename(m.path+"+", m.path))
				m.reopen()
				m.log.asked = time.Time{}
				o, err := m.log.observe(t.Context())
				m.must(err)
				move := decide(&o)
				if move.to == nil || move.to.relation != continues {
					t.Fatalf("%+v", move)
				}
				o.close(move.to.file)
				rewrite()
				m.must(m.log.enter(t.Context(), &move))
			}
			m.look()
			m.append()
			m.check()
		})
	}
}
