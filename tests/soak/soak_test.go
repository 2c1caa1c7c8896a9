//go:build soak

// Package soak runs an agent for a long time under more load than it is made for, and draws its use of resources over
// time. `make soak` runs it.
//
// SOAK_TIME is how long it runs (20m). Runs come and go at a multiple of their true speed,
// among them one of 86,400 intervals, a day at one a second. 10,000 runs have ended before;
// 200 targets are sampled, 50 of them dead; scrapers and pages are attached.
package soak

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/playback"
	"github.com/benchwatch/benchwatch/internal/servers"
)

const (
	endedRuns   = 10_000
	liveTargets = 150
	deadTargets = 50
	liveRuns    = 8
	day         = 86_400 // intervals
)

// soak is the agent and its environment.
type soak struct {
	t       *testing.T
	dir     string
	agent   *agents.Agent
	watch   *agents.Watch
	program string // that replays

	mu       sync.Mutex
	finished int
	replayed time.Duration // by the tools' own clocks
}

func TestSoak(t *testing.T) {
	limit, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK_TIME"), "20m"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := servers.Repository()
	if err != nil {
		t.Fatal(err)
	}
	recordings, err := playback.Recordings()
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{t: t, dir: t.TempDir()}
	s.must(os.Chmod(s.dir, 0o711)) // the servers' own user passes through
	s.must(os.Chmod(filepath.Dir(s.dir), 0o711))
	binary := filepath.Join(s.dir, "benchwatch")
	s.must(agents.Build(binary, "."))
	s.program = filepath.Join(s.dir, "replay")
	s.must(playback.Build(s.program))

	s.agent = agents.New(t, binary, s.targets()+"runs: {drain_timeout: 5s}\n")
	s.fill(smallest(recordings))
	s.agent.Again(t)
	s.watch = agents.NewWatch(t, s.agent, 500*time.Millisecond, "live0", "live1", "live2")
	fmt.Printf("SOAK_TIME=%s: %d ended runs, %d targets and %d dead ones, %d runs at a time\n", limit, endedRuns, liveTargets, deadTargets, liveRuns)

	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	var load sync.WaitGroup
	load.Go(func() {
		s.run("day", playback.Play{Recording: playback.Recording{Tool: "sysbench"}, Lines: day, Takes: limit * 9 / 10}, limit)
	})
	for worker := range liveRuns - 1 {
		load.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for n := 0; ctx.Err() == nil; n++ {
				play := playback.Play{Recording: recordings[random.IntN(len(recordings))], Seed: random.Uint64(), Takes: time.Duration(2+random.IntN(8)) * time.Second}
				s.run(fmt.Sprintf("w%d-%d", worker, n), play, time.Minute)
			}
		})
	}
	for range 5 {
		load.Go(func() { s.page(ctx) })
	}
	load.Go(func() { s.browse(ctx) })
	rows := s.record(ctx)
	load.Wait()
	s.settled(rows)
	out := filepath.Join(root, "build", "soak")
	s.must(os.MkdirAll(out, 0o755))
	s.must(writeCSV(filepath.Join(out, "soak.csv"), rows))
	title := fmt.Sprintf("%s: %d runs, %s of benchmarks replayed, a day of one interval a second among them", limit, s.finished, s.replayed.Round(time.Minute))
	s.must(os.WriteFile(filepath.Join(out, "soak.svg"), []byte(draw(title, rows)), 0o644))
	stats := s.watch.Stats()
	fmt.Printf("%s\nscrapes %d, slowest %v, oldest sample %v\n%s\n%s\n", title, stats.Scrapes, stats.Slowest.Round(time.Millisecond), stats.OldestSample.Round(time.Millisecond), summary(rows), out)
}

func (s *soak) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// targets starts three servers and names each fifty times.
func (s *soak) targets() string {
	const each = liveTargets / 3
	g, err := servers.Start(s.t.Context(), filepath.Join(s.dir, "servers"), servers.MariaDB, servers.Options{Servers: 3, Attached: true})
	s.must(err)
	s.t.Cleanup(func() { s.must(g.Stop(context.Background())) })
	_, err = g.Query(s.t.Context(), 1, "ALTER USER monitor@127.0.0.1 WITH MAX_USER_CONNECTIONS 0")
	s.must(err)
	var b strings.Builder
	b.WriteString("targets:\n")
	for i := range 3 * each {
		fmt.Fprintf(&b, "  - {name: live%d, engine: mysql, cluster: live, address: '%s', user: monitor, password_file: %s/monitor.password}\n", i, g.Address(i%3+1), g.Dir)
	}
	for i, address := range agents.Dead(s.t, deadTargets) {
		fmt.Fprintf(&b, "  - {name: dead%d, engine: %s, address: '%s'}\n", i, []string{"mysql", "mongodb"}[i%2], address)
	}
	return b.String()
}

func smallest(all []playback.Recording) playback.Recording {
	size := func(r playback.Recording) int64 {
		info, err := os.Stat(r.Stdout)
		if err != nil || info.Size() < 1000 { // with some intervals
			return math.MaxInt64
		}
		return info.Size()
	}
	return slices.MinFunc(all, func(a, b playback.Recording) int { return cmp.Compare(size(a), size(b)) })
}

// fill makes the directories of runs that have ended, all with the output of a recording. The first one is made by the
// program's own code. The others are copies, without the protection against a power failure.
func (s *soak) fill(r playback.Recording) {
	output, err := os.ReadFile(r.Stdout)
	s.must(err)
	end := time.Now().UTC().Add(-time.Hour)
	const first = "old00000"
	meta := rundir.Meta{
		ID: first, Title: "ended",
		Benchmark: rundir.Benchmark{Tool: r.Tool},
		Timing:    rundir.Timing{StartedAt: end.Add(-time.Minute)},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	}
	dir, claim, err := rundir.CreateWith(s.agent.DataDir, meta, func(d rundir.Directory) error {
		return os.WriteFile(d.Path(rundir.StdoutFile), output, 0o600)
	})
	s.must(err)
	claim.Release()
	text, err := os.ReadFile(dir.Path(rundir.MetaFile))
	s.must(err)
	for n := range endedRuns - 1 {
		id := fmt.Sprintf("old%05d", n+1)
		other := rundir.At(s.agent.DataDir, id)
		s.must(os.Mkdir(string(other), 0o755))
		s.must(os.WriteFile(other.Path(rundir.StdoutFile), output, 0o600))
		s.must(os.WriteFile(other.Path(rundir.StderrFile), nil, 0o600))
		s.must(os.WriteFile(other.Path(rundir.MetaFile), bytes.Replace(text, []byte(first), []byte(id), 1), 0o644))
	}
}

// run starts a run and waits until it is closed.
func (s *soak) run(id string, play playback.Play, limit time.Duration) {
	cmd := s.agent.Command([]string{"--run-id=" + id, "--tool=" + play.Tool, "--linger=0s", "--targets=live0,live1", "--web.listen-address=127.0.0.1:0"}, s.program)
	play.Set(cmd)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := servers.StartAttached(cmd); err != nil {
		s.t.Error(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			s.t.Errorf("run %s: %v", id, err)
		}
	case <-time.After(limit + time.Minute):
		s.t.Errorf("run %s has not ended", id)
		_ = cmd.Process.Kill()
		<-ended
	}
	dir := rundir.At(s.agent.DataDir, id)
	meta, err := dir.Load()
	if err != nil || !meta.Closed() {
		s.t.Errorf("run %s is not closed: %v", id, err)
		return
	}
	snap, err := ingest.Read(context.Background(), dir, registry.Tools)
	if err != nil {
		s.t.Error(err)
		return
	}
	if play.Lines > 0 && snap.Totals["transaction"] != float64(10*play.Lines) {
		s.t.Errorf("run %s: %g transactions", id, snap.Totals["transaction"])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished++
	if snap.Summary != nil && snap.Summary.ElapsedSeconds.Known {
		s.replayed += time.Duration(snap.Summary.ElapsedSeconds.Value * float64(time.Second))
	}
}

// page is a live page that stays open.
func (s *soak) page(ctx context.Context) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.agent.Address+"/api/events", nil)
		if err != nil {
			s.t.Error(err)
			return
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			if ctx.Err() == nil {
				s.t.Error(err)
			}
			return
		}
		_, _ = io.Copy(io.Discard, res.Body) // until the end, or until the agent gives it up
		res.Body.Close()
	}
}

// browse loads pages of runs, the longest among them, and scrapes as a second Prometheus.
func (s *soak) browse(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, path := range []string{"/", "/api/runs", "/api/agent", "/api/runs/day/history", "/metrics"} {
			_, _ = agents.Get("http://" + s.agent.Address + path) // the Watch decides whether the agent answers
		}
	}
}

// row is the agent's use of resources at a moment.
type row struct {
	at time.Duration
	agents.Footprint
	cpu  float64 // of one core, since the row before
	live float64 // runs
}

// record takes a row every two seconds until ctx is done.
func (s *soak) record(ctx context.Context) (rows []row) {
	began, before, beforeAt := time.Now(), 0.0, time.Time{}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return rows
		case <-tick.C:
		}
		text, err := agents.Get("http://" + s.agent.Address + "/metrics")
		if err != nil { // the Watch decides whether that is a fault
			continue
		}
		e, err := agents.Parse(text)
		s.must(err)
		r := row{at: time.Since(began), Footprint: e.Footprint(s.t), live: float64(len(e["benchwatch_run_active"].GetMetric()))}
		if !beforeAt.IsZero() {
			r.cpu = (r.CPUSeconds - before) / time.Since(beforeAt).Seconds()
			rows = append(rows, r)
		}
		before, beforeAt = r.CPUSeconds, time.Now()
	}
}

// settled asserts that the agent's use of resources does not grow, and checks what the Watch has seen.
func (s *soak) settled(rows []row) {
	for _, kind := range []string{agents.FallenCounter, agents.FailedScrape, agents.OldSample} {
		if all := s.watch.Faults(kind); len(all) > 0 {
			s.t.Errorf("%s: %d times\n%s", kind, len(all), strings.Join(all[:min(10, len(all))], "\n"))
		}
	}
	if len(rows) < 30 {
		s.t.Fatalf("%d rows: SOAK_TIME is too short", len(rows))
	}
	early, late := rows[len(rows)/6:len(rows)/2], rows[len(rows)/2:]
	for _, what := range columns {
		if what.growth == 0 {
			continue
		}
		a, b := median(early, what.of), median(late, what.of)
		if b > a+what.growth {
			s.t.Errorf("%s grows: %.1f, later %.1f", what.name, a, b)
		}
	}
}

// column is a drawn value. growth is the largest factor by which it may grow later; 0: any.
type column struct {
	name   string
	of     func(row) float64
	growth float64
}

var columns = []column{
	{"resident memory, MiB", func(r row) float64 { return r.MiB }, 24},
	{"descriptors", func(r row) float64 { return r.Descriptors }, 20},
	{"goroutines", func(r row) float64 { return r.Goroutines }, 40},
	{"CPU, cores", func(r row) float64 { return r.cpu }, 0},
	{"live runs", func(r row) float64 { return r.live }, 0},
}

func median(rows []row, of func(row) float64) float64 {
	var all []float64
	for _, r := range rows {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func summary(rows []row) string {
	var b strings.Builder
	for _, c := range columns {
		least, most := c.of(rows[0]), c.of(rows[0])
		for _, r := range rows {
			least, most = min(least, c.of(r)), max(most, c.of(r))
		}
		fmt.Fprintf(&b, "%-22s first half %.2f, second half %.2f (median), %.2f to %.2f\n", c.name,
			median(rows[:len(rows)/2], c.of), median(rows[len(rows)/2:], c.of), least, most)
	}
	return b.String()
}

func writeCSV(file string, rows []row) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := csv.NewWriter(f)
	head := []string{"seconds"}
	for _, c := range columns {
		head = append(head, c.name)
	}
	_ = w.Write(head) // errors stay until Flush
	for _, r := range rows {
		line := []string{strconv.FormatFloat(r.at.Seconds(), 'f', 0, 64)}
		for _, c := range columns {
			line = append(line, strconv.FormatFloat(c.of(r), 'f', 3, 64))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
}

// draw returns one chart above the other, as SVG.
func draw(title string, rows []row) string {
	const width, height, left, top = 900, 130, 60, 30
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12"><rect width="100%%" height="100%%" fill="white"/><text x="10" y="18">%s</text>`,
		width+left+20, top+len(columns)*(height+30), title)
	last := rows[len(rows)-1].at.Seconds()
	for i, c := range columns {
		y, most := top+i*(height+30), 0.0
		for _, r := range rows {
			most = max(most, c.of(r))
		}
		most = max(most, 1e-9) * 1.1
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text><text x="5" y="%d">%.3g</text><text x="5" y="%d">0</text><rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#ccc"/><polyline fill="none" stroke="#36c" points="`,
			left, y+14, c.name, y+30, most, y+20+height-10, left, y+20, width, height-10)
		for _, r := range rows {
			fmt.Fprintf(&b, "%.1f,%.1f ", left+width*r.at.Seconds()/last, float64(y+20)+float64(height-10)*(1-c.of(r)/most))
		}
		b.WriteString(`"/>`)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text></svg>`, left+width-60, top+len(columns)*(height+30)-5, rows[len(rows)-1].at.Round(time.Second))
	return b.String()
}
