//go:build chaos

// Package chaos exposes the built binary to every fault that it must survive and asserts the invariants of
// docs/reliability.md after each scenario. `make chaos` runs it.
//
// CHAOS_TIME is how long it runs (15m), CHAOS_SEED determines the sequence, CHAOS_SCENARIO selects one scenario or
// several with commas; a single one begins with the printed seed.
package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/playback"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// env is shared by all scenarios.
var env struct {
	dir        string // of all that is made
	binary     string
	recordings []playback.Recording
}

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if env.dir, err = os.MkdirTemp("", "benchwatch-chaos."); err != nil {
		return 1, err
	}
	defer os.RemoveAll(env.dir)
	if err := os.Chmod(env.dir, 0o711); err != nil { // the servers' own user passes through
		return 1, err
	}
	env.binary = filepath.Join(env.dir, "benchwatch")
	if err := agents.Build(env.binary, "."); err != nil {
		return 1, err
	}
	if env.recordings, err = playback.Recordings(); err != nil {
		return 1, err
	}
	program := filepath.Join(env.dir, "replay")
	if err := playback.Build(program); err != nil {
		return 1, err
	}
	// The command line has the tool's own name.
	for _, r := range env.recordings {
		if err := os.Symlink(program, filepath.Join(env.dir, r.Tool)); err != nil && !os.IsExist(err) {
			return 1, err
		}
	}
	code = m.Run()
	if database != nil {
		err = database.Stop(context.Background())
	}
	return code, err
}

var database *servers.Group

// databases returns a MariaDB primary with a replica, started when first needed; nil
// where MariaDB is not installed.
func databases(t *testing.T) *servers.Group {
	t.Helper()
	if database != nil {
		return database
	}
	g, err := servers.Start(context.Background(), filepath.Join(env.dir, "servers"), servers.MariaDB, servers.Options{Servers: 2, Attached: true})
	if err != nil {
		t.Logf("without databases: %v", err)
		return nil
	}
	database = g
	return g
}

// scenario is one kind of faults. Often is how often it runs compared with the others.
type scenario struct {
	name  string
	often int
	run   func(*lab)
}

var scenarios = []scenario{
	{"kills", 3, kills},
	{"markers", 2, markers},
	{"rotations", 2, rotations},
	{"disk full", 1, diskFull},
	{"descriptors", 1, descriptors},
	{"clock steps", 1, clockSteps},
	{"clients", 1, clients},
	{"databases", 1, databasesFail},
	{"prometheus", 1, realPrometheus},
	{"memory limit", 1, memoryLimit},
	{"upgrades", 1, upgrades},
	{"ten million lines", 0, tenMillionLines}, // once
}

// tally counts the faults of all scenarios.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what] += n
}

// most keeps the greatest of the values.
func (c *tally) most(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what] = max(c.counts[what], n)
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var names []string
	for name := range c.counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "%s\t%d\n", name, c.counts[name])
	}
	_ = w.Flush() // into memory
	return b.String()
}

var total tally

// schedule decides which scenario is run next and how long it may take.
type schedule struct {
	end   time.Time
	order *rand.Rand
	queue []scenario
	first int                      // how many of the queue have not been run at all
	took  map[string]time.Duration // the last time
}

// newSchedule has each of the scenarios once, in random order.
func newSchedule(seed uint64, limit time.Duration, only []string) *schedule {
	s := &schedule{end: time.Now().Add(limit), order: rand.New(rand.NewPCG(seed, 0)), took: map[string]time.Duration{}}
	for _, c := range scenarios {
		if only[0] == "" || slices.Contains(only, c.name) {
			s.queue = append(s.queue, c)
		}
	}
	s.order.Shuffle(len(s.queue), func(i, j int) { s.queue[i], s.queue[j] = s.queue[j], s.queue[i] })
	s.first = len(s.queue)
	return s
}

// leastTime is the time of a scenario on a busy machine, aloneTime the time of one that is repeated alone.
const (
	leastTime = 45 * time.Second
	aloneTime = 10 * time.Minute
)

// next returns a scenario and when its waiting ends; false when the time is over. The first round runs whatever time is
// left; later, a scenario begins only if it can end in time.
func (s *schedule) next() (scenario, time.Time, bool) {
	if len(s.queue) == 0 {
		for _, c := range scenarios {
			if _, ran := s.took[c.name]; ran {
				for range c.often {
					s.queue = append(s.queue, c)
				}
			}
		}
		s.order.Shuffle(len(s.queue), func(i, j int) { s.queue[i], s.queue[j] = s.queue[j], s.queue[i] })
	}
	left := time.Until(s.end)
	if s.first == 0 {
		s.queue = slices.DeleteFunc(s.queue, func(c scenario) bool { return s.took[c.name] > left })
	}
	if len(s.queue) == 0 {
		return scenario{}, time.Time{}, false
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	share := left
	if s.first > 1 {
		share = 2 * left / time.Duration(s.first)
	}
	s.first = max(0, s.first-1)
	return c, time.Now().Add(max(share, leastTime)), true
}

// TestChaos runs every scenario once in random order, and then others until the time is over. No scenario takes the
// time of the others.
func TestChaos(t *testing.T) {
	limit, err1 := time.ParseDuration(cmp.Or(os.Getenv("CHAOS_TIME"), "15m"))
	seed, err2 := strconv.ParseUint(cmp.Or(os.Getenv("CHAOS_SEED"), strconv.FormatInt(time.Now().UnixNano(), 10)), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	only := strings.Split(os.Getenv("CHAOS_SCENARIO"), ",")
	t.Logf("CHAOS_SEED=%d CHAOS_TIME=%s", seed, limit)
	began := time.Now()
	plan := newSchedule(seed, limit, only)
	if len(plan.queue) == 0 {
		t.Skipf("no such scenario: %q", only)
	}
	alone := len(plan.queue) == 1
	for n := uint64(0); ; n++ {
		s, deadline, ok := plan.next()
		if !ok {
			break
		}
		if alone {
			deadline = time.Now().Add(aloneTime)
		}
		own := seed + n
		started, result := time.Now(), "passed"
		passed := t.Run(s.name, func(t *testing.T) {
			defer func() {
				if t.Skipped() {
					result = "skipped"
				}
			}()
			t.Logf("again: make chaos CHAOS_TIME=1s CHAOS_SCENARIO='%s' CHAOS_SEED=%d", s.name, own)
			s.run(newLab(t, own, deadline))
		})
		if !passed {
			result = "FAILED"
			total.add("scenarios failed", 1)
		}
		total.add("scenarios", 1)
		if result != "skipped" {
			plan.took[s.name] = time.Since(started)
		}
		fmt.Printf("%s  %s, seed %d: %s after %s of %s\n", time.Now().Format(time.TimeOnly), s.name, own, result, time.Since(started).Round(time.Second), deadline.Sub(started).Round(time.Second))
	}
	fmt.Printf("\nCHAOS_SEED=%d, %s of %s\n%s\n", seed, time.Since(began).Round(time.Second), limit, &total)
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := servers.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
