package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is an agent's data directory, served to peers. Its address stays the same while it is
// away.
type machine struct {
	t       *testing.T
	dataDir string
	address string
	output  bool
	// fault, if set, is called before each answer. It may answer itself.
	fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]

	server *http.Server
	served sync.WaitGroup
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dataDir: t.TempDir(), output: true, address: "127.0.0.1:0"}
	m.up()
	t.Cleanup(m.down)
	return m
}

// snapshots returns the runs like an agent's watcher.
func (m *machine) snapshots() []ingest.Snapshot {
	ids, err := rundir.List(m.dataDir)
	if err != nil {
		m.t.Error(err)
	}
	var all []ingest.Snapshot
	for _, id := range ids {
		if meta, err := rundir.At(m.dataDir, id).Load(); err == nil {
			all = append(all, ingest.Snapshot{Meta: meta})
		}
	}
	return all
}

func (m *machine) up() {
	m.t.Helper()
	l, err := net.Listen("tcp", m.address)
	if err != nil {
		m.t.Fatal(err)
	}
	m.address = l.Addr().String()
	mux := http.NewServeMux()
	s := &Server{DataDir: m.dataDir, Runs: m.snapshots, Output: func() bool { return m.output }}
	s.Register(mux)
	m.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := m.fault.Load(); f != nil && (*f)(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	server := m.server
	m.served.Go(func() { _ = server.Serve(l) }) // ends with down
}

func (m *machine) down() {
	m.server.Close()
	m.served.Wait()
}

// fails lets f decide about each answer; nil: no faults.
func (m *machine) fails(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		m.fault.Store(nil)
		return
	}
	m.fault.Store(&f)
}

func (m *machine) config() Config {
	return Config{Name: m.address, URL: "http://" + m.address, Output: true, MaxAge: time.Hour}
}

// record begins a run.
func (m *machine) record(id string) rundir.Directory {
	m.t.Helper()
	dir, claim, err := rundir.Create(m.dataDir, rundir.Meta{
		ID: id, Title: "run " + id,
		Benchmark: rundir.Benchmark{Tool: "sysbench", Threads: 4, ReportIntervalSeconds: 1},
		Process:   rundir.Process{Generator: "host-of-" + filepath.Base(filepath.Dir(m.dataDir)), PID: 1 + rand.IntN(1000), PIDStartTicks: 1 + rand.Uint64N(1e9), BootID: "boot"},
		Timing:    rundir.Timing{StartedAt: time.Now().Add(-time.Minute).UTC()},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	claim.Release()
	return dir
}

func appendTo(t *testing.T, dir rundir.Directory, name, text string) {
	t.Helper()
	f, err := os.OpenFile(dir.Path(name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func closeRun(t *testing.T, dir rundir.Directory) {
	t.Helper()
	if _, err := dir.Update(func(m *rundir.Meta) {
		now, code := time.Now().UTC(), 0
		m.EndedAt, m.ClosedAt, m.ExitCode, m.Outcome = &now, &now, &code, rundir.Succeeded
	}); err != nil {
		t.Fatal(err)
	}
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// gather mirrors peers into a data directory until the returned function is called.
func gather(t *testing.T, dataDir string, configs ...Config) (s *Set, log *buffer, stop func()) {
	t.Helper()
	log = &buffer{}
	s = NewSet(dataDir, slog.New(slog.NewTextHandler(log, nil)))
	s.poll = 10 * time.Millisecond
	s.Update(configs)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	t.Cleanup(stop)
	return s, log, stop
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	patience := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-patience:
			t.Fatal("waited in vain for " + what)
		}
	}
}

func closedCopy(dir rundir.Directory) func() bool {
	return func() bool {
		meta, err := dir.Load()
		return err == nil && meta.Closed()
	}
}

// equalFiles checks that a copy has the same bytes as the run.
func equalFiles(t *testing.T, from, to rundir.Directory, names ...string) {
	t.Helper()
	for _, name := range names {
		want, err := os.ReadFile(from.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(to.Path(name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, not the %d of the run: %v", name, len(got), len(want), err)
		}
	}
}

// A run is copied with its markers while it is written, and the copy ends with the run. A run that
// had ended before appears when complete.
func TestMirror(t *testing.T) {
	m, to := newMachine(t), t.TempDir()
	ended := m.record("ended")
	appendTo(t, ended, rundir.StdoutFile, strings.Repeat("a line\n", 300_000)) // several parts
	closeRun(t, ended)
	old := m.record("old")
	closeRun(t, old)
	if _, err := old.Update(func(m *rundir.Meta) { at := time.Now().Add(-2 * time.Hour); m.ClosedAt = &at }); err != nil {
		t.Fatal(err)
	}
	live := m.record("live")
	appendTo(t, live, rundir.StdoutFile, "one\ntwo\nhalf")
	s, log, _ := gather(t, to, m.config())
	copied := rundir.At(to, "live")
	text := func() string { data, _ := os.ReadFile(copied.Path(rundir.StdoutFile)); return string(data) }
	until(t, "the first lines", func() bool { return text() == "one\ntwo\n" })
	until(t, "the ended run", closedCopy(rundir.At(to, "ended")))
	equalFiles(t, ended, rundir.At(to, "ended"), rundir.StdoutFile)
	appendTo(t, live, rundir.StdoutFile, " a line\n")
	appendTo(t, live, rundir.MarkersFile, "{}\n")
	until(t, "the third line", func() bool { return text() == "one\ntwo\nhalf a line\n" })
	appendTo(t, live, rundir.StdoutFile, "no end")
	closeRun(t, live)
	until(t, "the end", closedCopy(copied))
	equalFiles(t, live, copied, rundir.StdoutFile, rundir.MarkersFile)
	meta, err := copied.Load()
	if err != nil || !meta.IsCopy() || meta.Mirror.Host != m.address || !meta.Mirror.Scraped || meta.Outcome != rundir.Succeeded || meta.ToolAlive() {
		t.Errorf("%+v %v", meta.Mirror, err)
	}
	// Data after the end is copied as well.
	appendTo(t, live, rundir.MarkersFile, "{}\n")
	if _, err := os.Lstat(string(rundir.At(to, "old"))); err == nil {
		t.Error("a run was copied that had ended too long ago")
	}
	until(t, "the statistics", func() bool { st := s.Stats()[0]; return st.Up && st.Live == 0 && !st.LastSuccess.IsZero() })
	if st := s.Stats()[0]; st.Bytes < 2_000_000 || st.Errors != 0 || strings.Contains(log.String(), "ERROR") {
		t.Errorf("%+v\n%s", st, log)
	}
}

// Ended runs are copied even if there has been no run here yet.
func TestOnlyEndedRuns(t *testing.T) {
	m, to := newMachine(t), t.TempDir()
	run := m.record("run")
	appendTo(t, run, rundir.StdoutFile, "a line\n")
	closeRun(t, run)
	_, log, _ := gather(t, to, m.config())
	copied := rundir.At(to, "run")
	until(t, "the copy", func() bool { return closedCopy(copied)() || strings.Contains(log.String(), "ERROR") })
	equalFiles(t, run, copied, rundir.StdoutFile)
	if strings.Contains(log.String(), "ERROR") {
		t.Error(log)
	}
}

// Connections cut at random bytes and agents stopped at random times lose and duplicate nothing.
func TestMirrorIsResumed(t *testing.T) {
	m, to := newMachine(t), t.TempDir()
	run := m.record("run")
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer close(done)
		for i := range 3000 {
			line := fmt.Sprintf("[ %ds ] thds: 4 tps: %d %s\n", i, rand.IntN(1e6), strings.Repeat("x", rand.IntN(2000)))
			for len(line) > 0 { // in pieces, as from a tool's buffer
				n := 1 + rand.IntN(len(line))
				appendTo(t, run, rundir.StdoutFile, line[:n])
				line = line[n:]
			}
			appendTo(t, run, rundir.StatusFile, fmt.Sprintf("{\"line\":%d}\n", i))
		}
	})
	m.fails(func(w http.ResponseWriter, r *http.Request) bool {
		if rand.IntN(4) > 0 || strings.HasSuffix(r.URL.Path, listPath) {
			return false
		}
		// The answer is cut at a random byte: its header announces more.
		recorder := httptest.NewRecorder()
		(&Server{DataDir: m.dataDir, Output: func() bool { return true }, answers: make(chan struct{}, 1)}).serveAs(recorder, r)
		maps.Copy(w.Header(), recorder.Header())
		body := recorder.Body.Bytes()
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+1))
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(body[:rand.IntN(len(body)+1)])
		panic(http.ErrAbortHandler)
	})
	kills := 0
	for writing := true; writing; kills++ {
		_, _, stop := gather(t, to, m.config())
		select {
		case <-done:
			writing = false
		case <-time.After(time.Duration(20+rand.IntN(200)) * time.Millisecond):
		}
		stop()
		m.down() // the address refuses connections
		m.up()
	}
	writer.Wait()
	m.fails(nil)
	closeRun(t, run)
	_, log, _ := gather(t, to, m.config())
	until(t, "the end", closedCopy(rundir.At(to, "run")))
	equalFiles(t, run, rundir.At(to, "run"), rundir.StdoutFile, rundir.StatusFile)
	if strings.Contains(log.String(), "ERROR") || kills < 2 {
		t.Errorf("%d kills\n%s", kills, log)
	}
	t.Logf("%d kills", kills)
}

// serveAs answers a request for a file.
func (s *Server) serveAs(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	s.Register(mux)
	mux.ServeHTTP(w, r)
}

// A peer that hangs does not delay the others.
func TestHangingPeer(t *testing.T) {
	bad, good, to := newMachine(t), newMachine(t), t.TempDir()
	bad.record("hangs")
	run := good.record("runs")
	release := make(chan struct{})
	defer close(release)
	bad.fails(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/hangs") {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return true
		}
		return false
	})
	s, _, _ := gather(t, to, bad.config(), good.config())
	for i := range 5 {
		line := fmt.Sprintf("line %d\n", i)
		appendTo(t, run, rundir.StdoutFile, line)
		until(t, line, func() bool {
			data, _ := os.ReadFile(rundir.At(to, "runs").Path(rundir.StdoutFile))
			return strings.HasSuffix(string(data), line)
		})
	}
	for _, st := range s.Stats() {
		if up := st.Name == good.address; st.Up != up {
			t.Errorf("%+v", st)
		}
	}
}

// Peers in a circle copy each run once, and never get their own runs back.
func TestCircle(t *testing.T) {
	machines := []*machine{newMachine(t), newMachine(t), newMachine(t)}
	var runs []rundir.Directory
	for i, m := range machines {
		runs = append(runs, m.record(fmt.Sprintf("run%d", i)))
		appendTo(t, runs[i], rundir.StdoutFile, fmt.Sprintf("of %d\n", i))
	}
	var logs []*buffer
	for i, m := range machines {
		others := []Config{machines[(i+1)%3].config(), machines[(i+2)%3].config(), m.config()} // including itself
		_, log, _ := gather(t, m.dataDir, others...)
		logs = append(logs, log)
	}
	for i, run := range runs {
		closeRun(t, run)
		for j, m := range machines {
			if i != j {
				until(t, "the copy", closedCopy(rundir.At(m.dataDir, run.ID())))
				equalFiles(t, run, rundir.At(m.dataDir, run.ID()), rundir.StdoutFile)
			}
		}
		if meta, err := run.Load(); err != nil || meta.Mirror != nil {
			t.Errorf("a run became a copy of itself: %+v %v", meta.Mirror, err)
		}
	}
	for _, log := range logs {
		if text := log.String(); strings.Contains(text, "ERROR") {
			t.Error(text)
		}
	}
}

// A run on two peers is copied once. When the peer from which it is copied is away, the other one
// continues.
func TestTwoPeersOneRun(t *testing.T) {
	a, b, to := newMachine(t), newMachine(t), t.TempDir()
	run := a.record("run")
	if err := os.Remove(rundir.Root(b.dataDir)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.Symlink(rundir.Root(a.dataDir), rundir.Root(b.dataDir)); err != nil { // one data directory, two agents
		t.Fatal(err)
	}
	appendTo(t, run, rundir.StdoutFile, "one\n")
	s, log, _ := gather(t, to, a.config(), b.config())
	copied := rundir.At(to, "run")
	text := func() string { data, _ := os.ReadFile(copied.Path(rundir.StdoutFile)); return string(data) }
	until(t, "the first line", func() bool { return text() == "one\n" })
	meta, err := copied.Load()
	if err != nil {
		t.Fatal(err)
	}
	first := a
	if meta.Mirror.Host == b.address {
		first = b
	}
	first.down()
	until(t, "the first one is away", func() bool { // an answer may be on its way
		return slices.ContainsFunc(s.Stats(), func(one Stats) bool { return one.Name == first.address && !one.Up })
	})
	appendTo(t, run, rundir.StdoutFile, "two\n")
	until(t, "the second line, by the other one", func() bool { return text() == "one\ntwo\n" })
	first.up()
	appendTo(t, run, rundir.StdoutFile, "three\n")
	closeRun(t, run)
	until(t, "the end", closedCopy(copied))
	until(t, "both peers", func() bool { return s.Stats()[0].Up && s.Stats()[1].Up })
	equalFiles(t, run, copied, rundir.StdoutFile)
	if text := log.String(); strings.Count(text, "continued from another peer") != 1 || strings.Contains(text, "run is not mirrored") {
		t.Error(text)
	}
}

// A different run with the same id is not mixed with the local one: one line is logged.
func TestConflict(t *testing.T) {
	a, b, to := newMachine(t), newMachine(t), t.TempDir()
	one, two := a.record("run"), b.record("run")
	appendTo(t, one, rundir.StdoutFile, "of a\n")
	appendTo(t, two, rundir.StdoutFile, "of b\n")
	other := b.record("other")
	here := &machine{t: t, dataDir: to}
	own := here.record("other")
	s, log, _ := gather(t, to, a.config(), b.config())
	until(t, "the conflicts", func() bool { return strings.Count(log.String(), "is another run of the same id") == 2 })
	until(t, "the statistics", func() bool {
		n := 0
		for _, st := range s.Stats() {
			n += st.Refused
		}
		return n == 2
	})
	meta, err := own.Load()
	if err != nil || meta.Mirror != nil || meta.PID == 0 {
		t.Errorf("%+v %v", meta, err)
	}
	copied, err := rundir.At(to, "run").Load()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{a.address: "of a\n", b.address: "of b\n"}[copied.Mirror.Host]
	until(t, "the lines of "+copied.Mirror.Host, func() bool { // the conflict is known before the lines arrive
		data, _ := os.ReadFile(rundir.At(to, "run").Path(rundir.StdoutFile))
		return string(data) == want
	})
	appendTo(t, other, rundir.StdoutFile, "more\n")
	if n := strings.Count(log.String(), "run is not mirrored"); n != 2 {
		t.Errorf("%d lines\n%s", n, log)
	}
}

// A replaced or truncated file ends the copy of its run, and no other copy.
func TestReplacedFile(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", []byte("another file that is longer than the previous one\n"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"cut":                      func(path string) error { return os.Truncate(path, 3) },
		"replaced, then a restart": nil,
	} {
		t.Run(name, func(t *testing.T) {
			m, to := newMachine(t), t.TempDir()
			run := m.record("run")
			appendTo(t, run, rundir.StdoutFile, "the first line\n")
			_, log, stop := gather(t, to, m.config())
			copied := rundir.At(to, "run")
			until(t, "the line", func() bool { data, _ := os.ReadFile(copied.Path(rundir.StdoutFile)); return len(data) > 0 })
			if change == nil {
				stop()
				if err := os.WriteFile(run.Path(rundir.StdoutFile), []byte("the worst line\nand one more\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				_, log, _ = gather(t, to, m.config())
			} else if err := change(run.Path(rundir.StdoutFile)); err != nil {
				t.Fatal(err)
			}
			other := m.record("other")
			appendTo(t, other, rundir.StdoutFile, "x\n")
			until(t, "the error", func() bool { return strings.Contains(log.String(), "stdout.log: was replaced there") })
			until(t, "the other run", func() bool {
				data, _ := os.ReadFile(rundir.At(to, "other").Path(rundir.StdoutFile))
				return string(data) == "x\n"
			})
			if data, _ := os.ReadFile(copied.Path(rundir.StdoutFile)); string(data) != "the first line\n" {
				t.Errorf("%q", data)
			}
		})
	}
}

// A run that the peer removes while it is in progress ends here, as lost.
func TestRemovedThere(t *testing.T) {
	m, to := newMachine(t), t.TempDir()
	run := m.record("run")
	gather(t, to, m.config())
	until(t, "the copy", func() bool { _, err := rundir.At(to, "run").Load(); return err == nil })
	if err := run.Remove(); err != nil {
		t.Fatal(err)
	}
	until(t, "its end", closedCopy(rundir.At(to, "run")))
	if meta, err := rundir.At(to, "run").Load(); err != nil || meta.Outcome != rundir.Lost || !strings.Contains(meta.Reason, "was removed there") {
		t.Errorf("%s %s %v", meta.Outcome, meta.Reason, err)
	}
}

// TestAwayIsNotRemoved guards that the copy waits while the peer's runs folder is missing (such as
// a file system that is not mounted), or a run has no run.json.
func TestAwayIsNotRemoved(t *testing.T) {
	for name, path := range map[string]func(there rundir.Directory) string{
		"runs folder": func(there rundir.Directory) string { return filepath.Dir(string(there)) },
		"run.json":    func(there rundir.Directory) string { return there.Path(rundir.MetaFile) },
	} {
		t.Run(name, func(t *testing.T) {
			from, dataDir := newMachine(t), t.TempDir()
			there, copied := from.record("a"), rundir.At(dataDir, "a")
			_, log, stop := gather(t, dataDir, from.config())
			until(t, "the copy", func() bool { _, err := copied.Load(); return err == nil })
			away := path(there)
			if err := os.Rename(away, away+".away"); err != nil {
				t.Fatal(err)
			}
			until(t, "the complaint", func() bool { return strings.Contains(log.String(), "run is not mirrored") })
			if err := os.Rename(away+".away", away); err != nil {
				t.Fatal(err)
			}
			appendTo(t, there, rundir.StdoutFile, "the end\n")
			closeRun(t, there)
			until(t, "the end of the copy", closedCopy(copied))
			stop()
			equalFiles(t, there, copied, rundir.StdoutFile)
			if meta, err := copied.Load(); err != nil || meta.Outcome != rundir.Succeeded {
				t.Errorf("%v, %s: %s\n%s", err, meta.Outcome, meta.Reason, log)
			}
		})
	}
}

// Without authentication an agent serves no output; the copy then has everything else.
func TestWithoutOutput(t *testing.T) {
	m, to := newMachine(t), t.TempDir()
	m.output = false
	run := m.record("run")
	appendTo(t, run, rundir.StdoutFile, "password=hunter2\n")
	appendTo(t, run, rundir.StatusFile, "{}\n")
	resp, err := http.Get("http://" + m.address + listPath + "/run?have=" + url.QueryEscape(`{"files":{"stdout.log":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusForbidden || strings.Contains(string(body), "hunter2") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	s, log, stop := gather(t, to, m.config())
	until(t, "the error", func() bool { return strings.Contains(log.String(), "it serves no output of tools") })
	if s.Stats()[0].Up {
		t.Error("the peer counts as up")
	}
	stop()
	c := m.config()
	c.Output = false
	gather(t, to, c)
	closeRun(t, run)
	copied := rundir.At(to, "run")
	until(t, "the end", closedCopy(copied))
	equalFiles(t, run, copied, rundir.StatusFile)
	if data, err := os.ReadFile(copied.Path(rundir.StdoutFile)); err != nil || len(data) > 0 {
		t.Errorf("%q %v", data, err)
	}
	if meta, err := copied.Load(); err != nil || !meta.Mirror.NoOutput {
		t.Errorf("%+v %v", meta.Mirror, err)
	}
}

// Only files of a run are served, and no path leads out of its folder.
func TestServesOnlyFilesOfRuns(t *testing.T) {
	m := newMachine(t)
	dir := m.record("run")
	secret := filepath.Join(m.dataDir, "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, dir.Path(rundir.StatusFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(string(dir), string(rundir.At(m.dataDir, "linked"))); err != nil {
		t.Fatal(err)
	}
	copied := m.record("copied")
	if _, err := copied.Update(func(meta *rundir.Meta) { meta.Mirror = &rundir.Mirror{Host: "x", Peer: true} }); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		`run?have={"files":{"status.jsonl":{}}}`, `run?have={"files":{".meta.lock":{}}}`, `run?have={"files":{"../../secret":{}}}`, `run?have={"files":{"secret":{}}}`,
		`run?have={"files":{"stdout.log":{"size":-5}},"meta":"x"`, "run?have=x",
		"run/stdout.log", "..%2f..%2fsecret", "%2e%2e", "linked", "copied", `copied?have={"files":{"stdout.log":{}}}`, "run/", "none",
	} {
		path, query, _ := strings.Cut(path, "?have=")
		resp, err := http.Get("http://" + m.address + listPath + "/" + path + "?have=" + url.QueryEscape(query))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode < 400 || strings.Contains(string(body), "hunter2") {
			t.Errorf("%s %s: %d %s", path, query, resp.StatusCode, body)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// TestUpdate guards that only peers with a changed configuration restart, and removed ones end.
func TestUpdate(t *testing.T) {
	a, b, c := newMachine(t), newMachine(t), newMachine(t)
	configs := []Config{a.config(), b.config(), c.config()}
	to := t.TempDir()
	s, _, _ := gather(t, to, configs...)
	until(t, "all peers", func() bool {
		return len(s.Stats()) == 3 && !slices.ContainsFunc(s.Stats(), func(st Stats) bool { return !st.Up })
	})
	copiers := func() map[string]any {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := map[string]any{}
		for name, p := range s.running {
			all[name] = p.copier
		}
		return all
	}
	before := copiers()
	configs = []Config{a.config(), b.config()}
	configs[1].Identity = "another max_age"
	s.Update(configs)
	after := copiers()
	if len(after) != 2 || after[a.address] != before[a.address] || after[b.address] == before[b.address] {
		t.Errorf("before %v, after %v", before, after)
	}
	configs[0].TLS = &tls.Config{RootCAs: x509.NewCertPool()} // a changed ca_file
	s.Update(configs)
	if copiers()[a.address] == after[a.address] {
		t.Error("a peer with another certificate continues")
	}
	run := a.record("run")
	appendTo(t, run, rundir.StdoutFile, "a line\n")
	closeRun(t, run)
	until(t, "a copy", closedCopy(rundir.At(to, "run")))
}

// TestMaliciousPeer guards that a malicious peer reaches no files except its own copies, names no
// program or file of this machine, and uses limited memory and disk.
func TestMaliciousPeer(t *testing.T) {
	meta := func(change func(*rundir.Meta)) string {
		m := rundir.Meta{ID: "evil", Benchmark: rundir.Benchmark{Tool: "sysbench"}, Timing: rundir.Timing{StartedAt: time.Now().UTC()}}
		if change != nil {
			change(&m)
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	oneRun := func(id string) string {
		return fmt.Sprintf(`{"format":2,"version":"1","output":true,"runs":[{"id":%q,"changed":1,"sizes":{"stdout.log":5}}]}`, id)
	}
	news := func(n mirror.News) string {
		if n.Meta == nil {
			n.Meta = json.RawMessage(meta(nil))
		}
		data, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	part := func(name, data string) mirror.Parts { return mirror.Parts{{Name: name, Data: []byte(data)}} }
	for name, c := range map[string]struct {
		list, news string
		log        string // expected log text; empty: no message
	}{
		"path in an id":          {list: oneRun("../../escape"), log: "the list of runs is damaged"},
		"hidden id":              {list: oneRun(".meta"), log: "the list of runs is damaged"},
		"no list":                {list: "<html>", log: "does not come from an agent"},
		"other format":           {list: `{"format":99,"version":"\u001b[31m9"}`, log: "do not understand each other"},
		"endless list":           {list: strings.Repeat(" ", mirror.LongestAnswer+2), log: "more than"},
		"more runs than are":     {list: `{"format":2,"output":true,"runs":[` + strings.Repeat("{},", 1e6) + "{}]}", log: "more than"},
		"meta of another run":    {list: oneRun("evil"), news: news(mirror.News{Meta: json.RawMessage(meta(func(m *rundir.Meta) { m.ID = "else" }))}), log: "says it is run"},
		"no JSON":                {list: oneRun("evil"), news: "{", log: "does not come from an agent"},
		"no meta":                {list: oneRun("evil"), news: "{}", log: "run.json is missing"},
		"endless answer":         {list: oneRun("evil"), news: strings.Repeat(" ", mirror.LongestAnswer+2), log: "more than"},
		"more than asked for":    {list: oneRun("evil"), news: news(mirror.News{Files: part(rundir.StdoutFile, strings.Repeat("x\n", mirror.PartSize))}), log: "more than was asked for"},
		"more without any":       {list: oneRun("evil"), news: news(mirror.News{More: true}), log: "sends none of it"},
		"a file elsewhere":       {list: oneRun("evil"), news: news(mirror.News{Files: part("../../../escape", "hello\n")}), log: "unexpected file"},
		"a file that is no copy": {list: oneRun("evil"), news: news(mirror.News{Files: part(".connection.json", "hello\n")}), log: "unexpected file"},
		"twice the same file":    {list: oneRun("evil"), news: news(mirror.News{Files: append(part(rundir.StdoutFile, "hello\n"), part(rundir.StdoutFile, "hello\n")...)})},
		"replaced":               {list: oneRun("evil"), news: news(mirror.News{Replaced: rundir.StdoutFile}), log: "was replaced there"},
		"elsewhere":              {list: oneRun("evil"), log: "302"},
		"programs and log file": {list: oneRun("evil"), news: news(mirror.News{Files: part(rundir.StdoutFile, "hello\n"), Meta: json.RawMessage(meta(func(m *rundir.Meta) {
			m.Log = &rundir.LogSource{Path: "/etc/passwd"}
			m.Group = &rundir.Group{Name: "evil", Generators: 1, Wrapper: rundir.ThisProcess(os.Getpid())}
			m.PID, m.BootID = os.Getpid(), rundir.ThisProcess(os.Getpid()).BootID
			m.PIDStartTicks = rundir.ThisProcess(os.Getpid()).StartTicks
			m.Mirror = &rundir.Mirror{Host: "other"}
		}))})},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			to := filepath.Join(root, "data")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == listPath:
					fmt.Fprint(w, c.list)
				case c.news == "":
					http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
				default:
					fmt.Fprint(w, c.news)
				}
			}))
			defer server.Close()
			_, log, stop := gather(t, to, Config{Name: "evil", URL: server.URL, Output: true, MaxAge: time.Hour})
			if c.log != "" {
				until(t, "the line about it", func() bool { return strings.Contains(log.String(), c.log) })
			} else {
				until(t, "the copy", func() bool {
					data, _ := os.ReadFile(rundir.At(to, "evil").Path(rundir.StdoutFile))
					return string(data) == "hello\n"
				})
			}
			stop()
			if strings.Contains(log.String(), "\x1b") {
				t.Error("the log has control characters")
			}
			entries, err := os.ReadDir(root)
			if err != nil || len(entries) > 1 {
				t.Errorf("%v %v", entries, err)
			}
			if got, err := rundir.At(to, "evil").Load(); err == nil {
				if got.Log != nil || !got.IsCopy() || got.Mirror.Host != "evil" || got.Group != nil && got.Group.Wrapper != nil || got.ToolAlive() {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}
