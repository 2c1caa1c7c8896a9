//go:build chaos

package chaos

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/playback"
)

// kills: agent and wrappers are killed, stopped and continued at any byte of several
// tools' outputs, while Grafana fails.
func kills(l *lab) {
	l.start(options{})
	l.grafana.fail(l, 0.4)
	for range 6 {
		l.run(l.between(5*time.Second, 14*time.Second), nil)
		l.disturb()
	}
	l.survive()
	l.check()
}

// disturb kills, stops or continues the agent or a wrapper.
func (l *lab) disturb() {
	r := l.runs[l.rand.IntN(len(l.runs))]
	switch p := l.rand.Float64(); {
	case p < 0.6:
		l.kill()
	case p < 0.7:
		l.freeze(l.between(50*time.Millisecond, time.Second), nil)
	case p < 0.75:
		l.terminate()
	case p < 0.85:
		if !r.killed {
			r.killed = true
			r.wrapper.Kill(l.t)
			total.add("wrappers killed", 1)
		}
	case p < 0.9:
		r.wrapper.Signal(l.t, syscall.SIGSTOP)
		l.pause(50*time.Millisecond, 500*time.Millisecond)
		r.wrapper.Signal(l.t, syscall.SIGCONT)
		total.add("wrappers stopped and continued", 1)
	case p < 0.95:
		l.mark(r)
	default:
		l.alert(r)
	}
}

// survive continues until all tools have printed everything, compares the live counters
// with the outputs, and lets the tools end, also under fire.
func (l *lab) survive() {
	l.allPrinted(l.disturb)
	for _, r := range l.runs {
		l.counted(r)
	}
	for _, r := range l.runs {
		l.release(r)
		if l.chance(0.3) {
			l.kill()
		}
	}
	for _, r := range l.runs {
		if !r.killed {
			r.wrapper.Status(l.t, l.limit(90*time.Second))
		}
	}
}

// markers: marks and alerts come while Grafana fails in every way and the agent is killed.
func markers(l *lab) {
	l.start(options{})
	l.grafana.fail(l, 0.35)
	for range 2 {
		l.run(5*time.Second, nil)
	}
	for i := range 90 {
		r := l.runs[l.rand.IntN(2)]
		if i%3 == 0 {
			l.alert(r)
		} else {
			l.mark(r)
		}
		if l.chance(0.2) {
			l.kill()
		}
		if l.chance(0.05) {
			l.terminate()
		}
		l.pause(0, 150*time.Millisecond)
	}
	l.allPrinted(nil)
	l.survive()
	l.check()
}

// descriptors: the agent may open few files, and others take all of them for a while.
func descriptors(l *lab) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		l.t.Skip(err)
	}
	l.start(options{})
	l.watch.Disturb(true, func() {
		l.agent.Kill(l.t)
		l.agent.Within = []string{"prlimit", "--nofile=48:48"}
		l.agent.Again(l.t)
	})
	first := l.run(6*time.Second, nil)
	var held []net.Conn
	l.watch.Disturb(false, func() { // no scrape while there is no descriptor
		for range 100 {
			held = append(held, l.half(""))
		}
		l.run(2*time.Second, nil)
		l.release(first) // also a run's end needs one
		l.pause(3*time.Second, 8*time.Second)
		for _, c := range held {
			c.Close()
		}
		time.Sleep(2 * time.Second) // the connections that waited are accepted, and end
	})
	total.add("times without descriptors", 1)
	l.allPrinted(nil)
	for _, r := range l.runs[1:] {
		l.counted(r)
		l.release(r)
	}
	for _, r := range l.runs {
		r.wrapper.Status(l.t, l.limit(90*time.Second))
	}
	l.check()
}

// clients: hundreds of clients read slowly or never and send partial requests, and pages are attached.
func clients(l *lab) {
	l.start(options{})
	l.run(8*time.Second, nil)
	for range 3 {
		stop := l.attack(200)
		var pages []func()
		for range 20 {
			pages = append(pages, l.page())
		}
		var scrapers sync.WaitGroup
		for range 3 {
			scrapers.Go(func() {
				for range 10 {
					_, _ = agents.Get("http://" + l.agent.Address + "/metrics") // the Watch counts
				}
			})
		}
		l.pause(time.Second, 3*time.Second)
		scrapers.Wait()
		stop()
		for _, leave := range pages {
			leave()
		}
	}
	l.allPrinted(nil)
	l.survive()
	l.check()
}

// databasesFail: a server is stopped, killed, gone, and replaced by something else.
func databasesFail(l *lab) {
	g := databases(l.t)
	if g == nil {
		l.t.Skip("MariaDB is not installed")
	}
	l.start(options{})
	l.watch.Stop()
	l.paced = l.paced[:1]
	l.watch = agents.NewWatch(l.t, l.agent, 100*time.Millisecond, l.paced...)
	l.run(10*time.Second, nil)
	ctx := l.t.Context()
	l.must(g.Pause(2))
	l.pause(2*time.Second, 6*time.Second)
	l.must(g.Resume(2))
	l.must(g.Kill(2))
	l.pause(time.Second, 3*time.Second)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<16)) })}
	listener, err := net.Listen("tcp", g.Address(2))
	l.must(err)
	go func() { _ = web.Serve(listener) }()
	l.pause(2*time.Second, 4*time.Second)
	l.must(web.Close())
	l.babble(g.Address(2))
	l.must(g.Rejoin(ctx, 2))
	l.until(30*time.Second, "the server is sampled again", func() error {
		v, err := l.agent.Scrape(l.t).Value("benchwatch_db_up", "target", "live2")
		if err == nil && v != 1 {
			err = errors.New("it is down")
		}
		return err
	})
	// Clients that are not the agent's, and no connection left for it.
	_, err = g.Query(ctx, 2, "ALTER USER monitor@127.0.0.1 ACCOUNT LOCK; KILL USER monitor@127.0.0.1")
	l.must(err)
	l.pause(2*time.Second, 4*time.Second)
	_, err = g.Query(ctx, 2, "ALTER USER monitor@127.0.0.1 ACCOUNT UNLOCK")
	l.must(err)
	total.add("failures of database servers", 6)
	l.allPrinted(nil)
	l.survive()
	l.check()
}

// babble answers at an address with random bytes for some seconds.
func (l *lab) babble(address string) {
	listener, err := net.Listen("tcp", address)
	l.must(err)
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(l.rand.UintN(256))
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(noise) // the agent may hang up
			conn.Close()
		}
	})
	l.pause(2*time.Second, 4*time.Second)
	listener.Close()
	serving.Wait()
}

// realPrometheus: the increase of a run's counter in a real Prometheus over many restarts equals the log.
func realPrometheus(l *lab) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		l.t.Skip(err)
	}
	l.start(options{})
	p := agents.StartPrometheus(l.t, l.agent)
	const lines = 50_000
	r := l.run(25*time.Second, &playback.Play{Recording: playback.Recording{Tool: "sysbench"}, Lines: lines})
	for range 30 {
		l.pause(100*time.Millisecond, 900*time.Millisecond)
		l.kill()
	}
	l.until(time.Minute, "all lines printed", func() error {
		if v, _ := l.watch.Counter("benchwatch_run_operations_total op=transaction run=" + r.id); v < 10*lines {
			return fmt.Errorf("%g of %d", v, 10*lines)
		}
		return nil
	})
	l.counted(r)
	series := fmt.Sprintf(`benchwatch_run_operations_total{run=%q,op="transaction"}`, r.id)
	l.query(p, series, 10*lines, 0)
	l.query(p, "resets("+series+"[10m])", 0, 0)
	// Prometheus extrapolates by half a scrape interval at either end.
	l.query(p, "increase("+series+"[10m]) + min_over_time("+series+"[10m])", 10*lines, 0.05)
	l.release(r)
	r.wrapper.Status(l.t, l.limit(60*time.Second))
	l.query(p, fmt.Sprintf(`benchwatch_run_summary_operations_total{run=%q,op="transaction"}`, r.id), 10*lines, 0)
	total.add("runs whose increase in a real Prometheus equals the log", 1)
	l.check()
}

// query waits until an expression has a value, give or take a share of it.
func (l *lab) query(p agents.Prometheus, expression string, want, tolerance float64) {
	l.t.Helper()
	l.until(20*time.Second, expression, func() error {
		v, err := p.Query(expression)
		if err == nil && (len(v) != 1 || math.Abs(v[0]-want) > tolerance*want) {
			err = fmt.Errorf("have %v, want %g", v, want)
		}
		return err
	})
}

// tenMillionLines: an output that takes longer to read again than Prometheus waits.
func tenMillionLines(l *lab) {
	l.start(options{idle: true})
	lines := 10_000_000
	if time.Until(l.deadline) < 3*time.Minute {
		lines /= 10 // what can be read twice in its time
	}
	r := l.run(0, &playback.Play{Recording: playback.Recording{Tool: "sysbench"}, Lines: lines})
	l.pause(2*time.Second, 5*time.Second)
	l.terminate() // while it reads
	l.pause(time.Second, 3*time.Second)
	l.kill()
	series := fmt.Sprintf("benchwatch_run_operations_total op=transaction run=%s", r.id)
	l.works(l.agent.Process, 5*time.Minute, "all lines read", func() error {
		if v, _ := l.watch.Counter(series); v != float64(10*lines) {
			return fmt.Errorf("%g of %d", v, 10*lines)
		}
		return nil
	})
	total.most("resident memory with ten million lines, MiB", int(l.agent.Scrape(l.t).Footprint(l.t).MiB))
	l.kill() // the most is to be read again
	l.pause(time.Second, 3*time.Second)
	l.terminate()
	l.works(l.agent.Process, 5*time.Minute, "all lines read again", func() error {
		v, err := l.agent.Scrape(l.t).Value("benchwatch_run_operations_total", "run", r.id, "op", "transaction")
		if err == nil && v != float64(10*lines) {
			l.t.Fatalf("shown with %g", v)
		}
		return err
	})
	l.release(r)
	l.works(r.wrapper, 5*time.Minute, "the run's report", func() error {
		if !exited(r.wrapper) {
			return errors.New("the wrapper runs")
		}
		return nil
	})
	l.closed()
	l.countersNeverFall()
	l.scrapesAreFast()
	l.footprintIsFlat()
	l.markersOnce()
	l.terminate()
	total.most("lines of the longest run", lines)
}

// memoryLimit: the agent may use 64 MiB and a report of a long run 128 MiB, by a control group.
func memoryLimit(l *lab) {
	l.start(options{})
	l.watch.Disturb(true, func() {
		l.agent.Kill(l.t)
		l.agent.Within = l.limited(64 << 20)
		l.agent.Again(l.t)
	})
	const lines = 1_000_000
	r := l.run(0, &playback.Play{Recording: playback.Recording{Tool: "sysbench"}, Lines: lines})
	l.run(5*time.Second, nil)
	l.until(2*time.Minute, "all lines read", func() error {
		v, err := l.agent.Scrape(l.t).Value("benchwatch_run_operations_total", "run", r.id, "op", "transaction")
		if err == nil && v != 10*lines {
			err = fmt.Errorf("%g of %d", v, 10*lines)
		}
		return err
	})
	l.allPrinted(nil)
	for _, r := range l.runs {
		l.release(r)
	}
	for _, r := range l.runs {
		r.wrapper.Status(l.t, l.limit(90*time.Second))
	}
	l.closed()
	within := l.limited(128 << 20)
	cmd := exec.Command(within[0], append(within[1:], env.binary, "report", "--data-dir="+l.agent.DataDir, r.id)...)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
		l.t.Errorf("report: %v: %.2000s", err, out)
	}
	total.add("lines with 64 MiB", lines)
	l.terminate()
}

// upgrades: the program is replaced by other builds while agent and wrappers of the previous build run, and the agent
// is restarted or killed.
func upgrades(l *lab) {
	builds := filepath.Join(env.dir, "builds")
	const most = 3
	began := time.Now()
	for n := 1; n <= most; n++ {
		if path := fmt.Sprintf("%s/%d", builds, n); !fileExists(path) {
			l.must(agents.Build(path, ".", fmt.Sprintf("-ldflags=-X github.com/prometheus/common/version.Version=0.0.%d", n)))
		}
	}
	l.deadline = l.deadline.Add(time.Since(began)) // other builds may hold up these
	program := filepath.Join(l.dir, "benchwatch")
	install := func(n int) { // as a package manager does
		l.must(os.Link(fmt.Sprintf("%s/%d", builds, n), program+".new"))
		l.must(os.Rename(program+".new", program))
	}
	runs := func(n int) {
		version := fmt.Sprintf("0.0.%d", n)
		if v, err := l.agent.Scrape(l.t).Value("benchwatch_build_info", "version", version); err != nil || v != 1 {
			l.t.Errorf("the agent is not %s: %v", version, err)
		}
	}
	install(1)
	l.start(options{binary: program})
	runs(1)
	l.grafana.fail(l, 0.2)
	for n := 2; n <= most; n++ {
		l.run(l.between(8*time.Second, 14*time.Second), nil)
		l.mark(l.runs[l.rand.IntN(len(l.runs))])
		l.pause(500*time.Millisecond, 3*time.Second)
		install(n)
		l.run(l.between(4*time.Second, 8*time.Second), nil) // its wrapper is newer than the agent
		l.alert(l.runs[l.rand.IntN(len(l.runs))])
		if l.chance(0.3) {
			l.kill()
		} else {
			l.terminate()
		}
		runs(n)
		total.add("upgrades during runs", 1)
	}
	l.allPrinted(nil)
	for _, r := range l.runs {
		l.counted(r)
		l.release(r)
	}
	for _, r := range l.runs {
		r.wrapper.Status(l.t, l.limit(90*time.Second))
	}
	l.check()
}

// limited returns a command that runs another one with a limit of its memory. It skips the
// test where this process can't set one.
func (l *lab) limited(bytes int) []string {
	name := fmt.Sprintf("benchwatch-chaos-%d-%d", os.Getpid(), bytes)
	for _, g := range []struct{ dir, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(g.dir, name)
		if os.Mkdir(dir, 0o755) != nil && !dirExists(dir) {
			continue
		}
		l.t.Cleanup(func() { _ = os.Remove(dir) }) // not while a process is in it
		if os.WriteFile(filepath.Join(dir, g.limit), []byte(strconv.Itoa(bytes)), 0o644) == nil {
			return []string{"sh", "-c", "echo $$ >" + filepath.Join(dir, "cgroup.procs") + ` && exec "$@"`, "sh"}
		}
	}
	l.t.Skip("no control group can be made")
	return nil
}

func fileExists(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func dirExists(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// diskFull: the disk of the runs is full for a while.
func diskFull(l *lab) {
	disk := filepath.Join(l.dir, "disk")
	l.must(os.Mkdir(disk, 0o755))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		l.t.Skipf("can't mount a small disk: %v", err)
	}
	l.t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	l.start(options{data: filepath.Join(disk, "data")})
	l.grafana.fail(l, 0.2)
	for range 2 {
		l.run(8*time.Second, nil).full = true
	}
	l.pause(500*time.Millisecond, 3*time.Second)
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	l.must(err)
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		l.t.Fatalf("filling the disk: %v", err)
	}
	total.add("times with a full disk", 1)
	l.pause(time.Second, 4*time.Second)
	if l.chance(0.5) {
		l.kill()
	}
	if l.chance(0.5) { // the tools end on a full disk
		l.allPrinted(nil)
		for _, r := range l.runs {
			l.release(r)
		}
		l.pause(time.Second, 2*time.Second)
	}
	l.must(os.Remove(filler))
	l.must(f.Close())
	l.allPrinted(nil)
	for _, r := range l.runs {
		l.release(r)
		r.wrapper.Status(l.t, l.limit(90*time.Second))
	}
	l.check()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
