package retention

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("RETENTION_CHILD"); dir != "" {
		os.Exit(child(dir))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// child applies a rule to a data directory as `runs rm` does, until it is killed.
func child(dir string) int {
	var rule Rule
	if err := json.Unmarshal([]byte(os.Getenv("RETENTION_RULE")), &rule); err != nil {
		return 2
	}
	o := Options{DataDir: dir, Rule: rule, Now: testNow}
	if url := os.Getenv("RETENTION_ARCHIVE"); url != "" {
		var err error
		if o.Archive, err = archive.Open(archive.Options{URL: url, Timeout: time.Minute}); err != nil {
			return 3
		}
	}
	fmt.Println("ready")
	_, err := rundir.FinishRemovals(dir)
	if err == nil {
		var p *Plan
		if p, err = New(context.Background(), o); err == nil {
			err = p.Remove(context.Background(), func(Run) {})
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

var testNow = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// stand is a data directory with runs of the last two years, some of which must never be removed.
type stand struct {
	dir     string
	archive string // empty: none
	never   map[string]string
	all     []string // the newest last
}

// newStand makes a data directory with n runs.
func newStand(t *testing.T, random *rand.Rand, n int) *stand {
	t.Helper()
	return newStandIn(t, t.TempDir(), random, n)
}

func newStandIn(t *testing.T, dir string, random *rand.Rand, n int) *stand {
	t.Helper()
	s := &stand{dir: dir, never: map[string]string{}}
	members := 0
	for i := range n {
		closed := testNow.Add(-time.Duration(n-i) * 9 * time.Hour)
		meta := rundir.Meta{
			Process: rundir.Process{Generator: "host"},
			Timing:  rundir.Timing{StartedAt: closed.Add(-time.Minute)},
			Closing: rundir.Closing{ClosedAt: &closed},
			End:     rundir.End{EndedAt: &closed, Outcome: rundir.Succeeded},
			Labels:  map[string]string{"team": []string{"a", "b"}[i%2]},
		}
		meta.ID = rundir.NewID(meta.StartedAt, "oltp", 16, 1)
		why := ""
		switch random.IntN(40) {
		case 0:
			meta.ClosedAt, meta.EndedAt, meta.Outcome, why = nil, nil, "", "live"
		case 1:
			meta.Labels[KeepLabel], why = "yes", "labelled keep"
		case 2:
			meta.Labels[BaselineLabel], why = "release", "a baseline"
		case 3:
			meta.Labels[KeepLabel] = "no"
		case 4:
			members++
			meta.Group, why = &rundir.Group{Name: "group", Generators: 1000, Generator: members}, "part of a live group"
			meta.ID = rundir.GeneratorID("group", members)
		}
		writeRun(t, s.dir, &meta, 1+random.IntN(8))
		s.all = append(s.all, meta.ID)
		if why != "" {
			s.never[meta.ID] = why
		}
	}
	writeRun(t, s.dir, &rundir.Meta{
		ID:      "group",
		Process: rundir.Process{Generator: "host"},
		Timing:  rundir.Timing{StartedAt: testNow.AddDate(-3, 0, 0)},
		Origin:  rundir.Origin{Group: &rundir.Group{Name: "group", Generators: 1000}},
	}, 1)
	s.never["group"] = "live"
	return s
}

func writeRun(t *testing.T, dataDir string, m *rundir.Meta, blocks int) {
	t.Helper()
	dir := rundir.At(dataDir, m.ID)
	must(t, os.MkdirAll(string(dir), 0o755))
	data, err := json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(dir.Path(rundir.MetaFile), data, 0o644))
	must(t, os.WriteFile(dir.Path(rundir.StdoutFile), make([]byte, blocks<<12), 0o600))
}

// foreign adds what is no run: nothing of it may be touched.
func (s *stand) foreign(t *testing.T) (check func()) {
	t.Helper()
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	must(t, os.WriteFile(precious, []byte("x"), 0o644))
	root := rundir.Root(s.dir)
	old := filepath.Join(outside, "20200101T000000Z-old")
	must(t, os.Mkdir(old, 0o755))
	must(t, os.WriteFile(filepath.Join(old, rundir.MetaFile),
		[]byte(`{"id":"20200101T000000Z-old","started_at":"2020-01-01T00:00:00Z","closed_at":"2020-01-01T00:01:00Z"}`), 0o644))
	must(t, os.Symlink(old, filepath.Join(root, "20200101T000000Z-old")))
	must(t, os.Symlink(outside, filepath.Join(root, ".removed-link")))
	must(t, os.Mkdir(filepath.Join(root, "notes"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "notes", "a.txt"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(root, "damaged"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "damaged", rundir.MetaFile), []byte(`{"id":"dam`), 0o644))
	must(t, os.Symlink(outside, filepath.Join(root, s.all[0], "link")))
	return func() {
		t.Helper()
		for _, path := range []string{precious, filepath.Join(old, rundir.MetaFile), filepath.Join(root, "20200101T000000Z-old"),
			filepath.Join(root, "notes", "a.txt"), filepath.Join(root, "damaged", rundir.MetaFile)} {
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("%s is gone: %v", path, err)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Three seeds have one limit each; more take half a minute.
var (
	seedsFlag = flag.Int("seeds", 3, "how often TestKilled is repeated")
	runsFlag  = flag.Int("runs", 2000, "how many runs each time")
)

// TestKilled guards that 2,000 runs are removed by age, count and size, whenever the process is killed: what must stay
// stays whole, no run is half removed for long, and in the end exactly the runs beyond the limit are gone.
func TestKilled(t *testing.T) {
	runs := *runsFlag
	for seed := range *seedsFlag {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 41))
			s := newStand(t, random, runs)
			untouched := s.foreign(t)
			rule := []Rule{{MaxAge: 90 * 24 * time.Hour}, {MaxCount: 100 + random.IntN(100)}, {MaxSize: int64(2+random.IntN(4)) << 20}}[seed%3]
			want := s.rest(t, rule)
			kills := 0
			for kills < 15 && !s.apply(t, rule, time.Duration(random.IntN(60_000))*time.Microsecond) {
				kills++
				s.checkWhole(t)
			}
			s.apply(t, rule, 0)
			s.checkWhole(t)
			ids, err := rundir.List(s.dir)
			must(t, err)
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == "damaged" || id == "notes" })
			if !slices.Equal(ids, want) {
				t.Errorf("%d runs are left, want %d:\n%s\n%s", len(ids), len(want), ids, want)
			}
			if left, _ := filepath.Glob(filepath.Join(rundir.Root(s.dir), ".removed-2*")); len(left) > 0 {
				t.Errorf("half removed: %s", left)
			}
			untouched()
			t.Logf("%+v: %d of %d runs left after %d kills", rule, len(ids), runs, kills)
		})
	}
}

// rest returns the runs that stay, found independently of the package: from the newest one, until a limit is reached.
func (s *stand) rest(t *testing.T, rule Rule) (ids []string) {
	t.Helper()
	size := int64(0)
	for i, id := range slices.Backward(s.all) {
		dir := rundir.At(s.dir, id)
		meta, err := dir.Load()
		must(t, err)
		at := meta.StartedAt
		if meta.Closed() {
			at = *meta.ClosedAt
		}
		size += dir.Size()
		within := (rule.MaxAge == 0 || testNow.Sub(at) <= rule.MaxAge) &&
			(rule.MaxCount == 0 || len(s.all)-1-i < rule.MaxCount) && (rule.MaxSize == 0 || size <= rule.MaxSize)
		if within || s.never[id] != "" {
			ids = append(ids, id)
		}
	}
	return slices.Sorted(slices.Values(append(ids, "group")))
}

// apply applies a rule in another process, and kills it after a while; 0: never. It reports whether the process ended by
// itself.
func (s *stand) apply(t *testing.T, rule Rule, kill time.Duration) bool {
	t.Helper()
	text, err := json.Marshal(rule)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RETENTION_CHILD="+s.dir, "RETENTION_RULE="+string(text), "RETENTION_ARCHIVE="+s.archive)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = out.Read(make([]byte, 6))
	must(t, err)
	if kill > 0 {
		stop := time.AfterFunc(kill, func() { _ = cmd.Process.Kill() })
		defer stop.Stop()
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		t.Fatalf("the rule failed with status %d", exit.ExitCode())
	}
	return err == nil
}

// checkWhole fails if a run is there only in part, or one that must stay is gone.
func (s *stand) checkWhole(t *testing.T) {
	t.Helper()
	ids, err := rundir.List(s.dir)
	must(t, err)
	for _, id := range ids {
		if id == "damaged" || id == "notes" {
			continue
		}
		dir := rundir.At(s.dir, id)
		_, err := dir.Load()
		_, outErr := os.Stat(dir.Path(rundir.StdoutFile))
		if err := errors.Join(err, outErr); err != nil {
			t.Errorf("a half removed run is listed: %v", err)
		}
	}
	for id, why := range s.never {
		if !slices.Contains(ids, id) {
			t.Errorf("%s was removed, although it is %s", id, why)
		}
	}
}

// TestNotUploaded guards that a run which the archive does not have, or has in another state, stays; and that nothing
// is removed if the archive does not answer.
func TestNotUploaded(t *testing.T) {
	s := newStand(t, rand.New(rand.NewPCG(1, 1)), 60)
	folder := t.TempDir()
	store, err := archive.Open(archive.Options{URL: folder, Timeout: time.Minute})
	must(t, err)
	pushed := map[string]bool{}
	for i, id := range s.all {
		if i%3 != 0 && s.never[id] == "" {
			_, err := store.Push(context.Background(), rundir.At(s.dir, id), nil)
			must(t, err)
			pushed[id] = true
		}
	}
	changed := slices.Collect(func(yield func(string) bool) {
		for id := range pushed {
			if !yield(id) {
				return
			}
		}
	})[0]
	must(t, os.WriteFile(rundir.At(s.dir, changed).Path(rundir.MarkersFile), []byte("{}\n"), 0o644))
	delete(pushed, changed)
	o := Options{DataDir: s.dir, Rule: Rule{MaxCount: 1}, Archive: store, Now: testNow}
	plan, err := New(context.Background(), o)
	must(t, err)
	must(t, plan.Remove(context.Background(), func(r Run) {
		if !pushed[r.Meta.ID] {
			t.Errorf("%s was removed without being in the archive", r.Meta.ID)
		}
	}))
	ids, err := rundir.List(s.dir)
	must(t, err)
	for _, id := range s.all[:len(s.all)-1] {
		if there := slices.Contains(ids, id); there == pushed[id] {
			t.Errorf("%s: in the archive %t, still here %t", id, pushed[id], there)
		}
	}

	must(t, os.RemoveAll(folder))
	must(t, os.WriteFile(folder, nil, 0o644)) // no folder: the archive does not answer
	if _, err := New(context.Background(), o); err == nil {
		t.Error("runs are planned for removal although the archive does not answer")
	}
}

// TestChangedSince guards that what was planned is checked again: a run that was labelled, or came anew under the same
// id, stays; one that another process removed is no error.
func TestChangedSince(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		closed := testNow.AddDate(-1, 0, i)
		writeRun(t, dir, &rundir.Meta{
			ID:      "r" + strconv.Itoa(i),
			Process: rundir.Process{Generator: "host"},
			Timing:  rundir.Timing{StartedAt: closed},
			Closing: rundir.Closing{ClosedAt: &closed},
		}, 1)
	}
	plan, err := New(context.Background(), Options{DataDir: dir, Rule: Rule{MaxAge: time.Hour}, Now: testNow})
	must(t, err)
	if plan.Count() != 5 {
		t.Fatalf("%d runs are planned", plan.Count())
	}
	_, err = rundir.At(dir, "r0").Update(func(m *rundir.Meta) { m.Labels = map[string]string{KeepLabel: "yes"} })
	must(t, err)
	must(t, rundir.At(dir, "r1").Remove())
	must(t, rundir.At(dir, "r2").Remove())
	writeRun(t, dir, &rundir.Meta{
		ID:      "r2",
		Process: rundir.Process{Generator: "host"},
		Timing:  rundir.Timing{StartedAt: testNow},
		Closing: rundir.Closing{ClosedAt: &testNow},
	}, 1)
	var removed []string
	must(t, plan.Remove(context.Background(), func(r Run) { removed = append(removed, r.Meta.ID) }))
	if fmt.Sprint(removed) != "[r3 r4]" {
		t.Errorf("removed %s", removed)
	}
}

// TestFromElsewhere guards that the age of an imported run counts from its arrival, and that the newest run stays
// however large it is.
func TestFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	closed := testNow.AddDate(-2, 0, 0)
	writeRun(t, dir, &rundir.Meta{
		ID:      "imported",
		Process: rundir.Process{Generator: "host"},
		Timing:  rundir.Timing{StartedAt: closed},
		Closing: rundir.Closing{ClosedAt: &closed},
		Origin:  rundir.Origin{Import: &rundir.ImportSource{Path: "old.log"}},
	}, 1)
	now := time.Now()
	plan, err := New(context.Background(), Options{DataDir: dir, Rule: Rule{MaxAge: 24 * time.Hour, MaxSize: 1}, Now: now})
	must(t, err)
	if plan.Count() != 0 {
		t.Errorf("planned: %+v", plan.Runs)
	}
	plan, err = New(context.Background(), Options{DataDir: dir, Rule: Rule{MaxAge: 24 * time.Hour}, Now: now.AddDate(0, 0, 2)})
	must(t, err)
	if plan.Count() != 1 {
		t.Errorf("planned: %+v", plan.Runs)
	}
}

// TestClock guards that no age is trusted for a day after the wall clock jumped, by a year or back, during a boot or
// over one, and that it is trusted again at once if the clock is set back.
func TestClock(t *testing.T) {
	wall, boot := testNow, time.Hour
	c := &clock.Clock{Wall: func() time.Time { return wall }, Boot: func() time.Duration { return boot }, ID: "one"}
	pass := func(d time.Duration) { wall, boot = wall.Add(d), boot+d }
	dir := t.TempDir()
	check := func(what string, doubted, asked bool) {
		t.Helper()
		if err := CheckClock(dir, c, asked); errors.Is(err, ErrClock) != doubted || err != nil && !doubted {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("first", false, false)
	pass(10 * time.Minute)
	check("time passes", false, false)
	pass(40 * 24 * time.Hour)
	check("suspended for long", false, false)
	wall = wall.AddDate(1, 0, 0)
	check("a year ahead", true, false)
	pass(time.Hour)
	check("an hour later", true, true)
	wall = wall.AddDate(-1, 0, 0)
	check("set back", false, false)
	wall = wall.AddDate(-1, 0, 0)
	check("a year behind", true, false)
	for range 23 {
		pass(time.Hour)
		check("still", true, false)
	}
	pass(90 * time.Minute)
	check("a day later", false, false)
	c.ID, boot, wall = "two", time.Minute, wall.AddDate(1, 0, 0)
	check("a reboot, with a clock a year ahead", true, false)
	c.ID, boot, wall = "three", time.Minute, wall.AddDate(0, 1, 0)
	must(t, os.Remove(filepath.Join(dir, sightingFile)))
	check("without a last check", false, false)
	c.ID, wall = "four", wall.AddDate(0, 1, 0)
	check("a monthly job, rebooted", false, true)
	must(t, os.WriteFile(filepath.Join(dir, sightingFile), []byte("{dam"), 0o644))
	check("a damaged file", false, false)
}

// TestTwo guards that two processes that apply a rule at the same time, and a reader, don't disturb each other.
func TestTwo(t *testing.T) {
	s := newStand(t, rand.New(rand.NewPCG(7, 7)), 200)
	rule := Rule{MaxCount: 20}
	want := s.rest(t, rule)
	done := make(chan bool)
	for range 2 {
		go func() { done <- s.apply(t, rule, 0) }()
	}
	for ended := 0; ended < 2; {
		select {
		case <-done:
			ended++
		default:
			for _, id := range s.all {
				if _, err := rundir.At(s.dir, id).Load(); err != nil && !errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), "no such file") {
					t.Fatal(err)
				}
			}
		}
	}
	if ids, _ := rundir.List(s.dir); !slices.Equal(ids, want) {
		t.Errorf("left %d, want %d", len(ids), len(want))
	}
}
