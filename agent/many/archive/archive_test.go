package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const output = `sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)

Running the test with following options:
Number of threads: 16

Threads started!

[ 1s ] thds: 16 tps: 21532.38 qps: 430647.57 (r/w/o: 301453.30/86129.51/43064.76) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00
SQL statistics:
    queries performed:
        read:                            301453
        write:                           86129
        other:                           43064
        total:                           430646
    transactions:                        21532  (21532.00 per sec.)
    queries:                             430646 (430646.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          1.0001s
    total number of events:              21532

Latency (ms):
         min:                                    0.50
         avg:                                    0.74
         max:                                    5.00
         95th percentile:                        1.04
         sum:                                15999.00
`

// newRun creates a closed run.
func newRun(t testing.TB, dataDir, id, generator string, change ...func(*rundir.Meta)) rundir.Directory {
	t.Helper()
	start := time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)
	end := start.Add(time.Second)
	meta := rundir.Meta{
		ID: id, Title: "a title", Labels: map[string]string{"disk": "nvme"},
		Benchmark: rundir.Benchmark{Tool: "sysbench", ToolVersion: "1.0.20", Workload: "oltp_read_write", Threads: 16},
		Process:   rundir.Process{Generator: generator},
		Timing:    rundir.Timing{StartedAt: start},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	}
	for _, c := range change {
		c(&meta)
	}
	dir, claim, err := rundir.CreateWith(dataDir, meta, func(d rundir.Directory) error {
		return errors.Join(
			os.WriteFile(d.Path(rundir.StdoutFile), []byte(output), 0o600),
			os.WriteFile(d.Path(rundir.MarkersFile), []byte("{}\n"), 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	return dir
}

// big gives a run output that needs several parts.
func big(t testing.TB, dir rundir.Directory) {
	t.Helper()
	r := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 2*partSize+12345)
	_, _ = r.Read(noise)
	if err := os.WriteFile(dir.Path(rundir.StatusFile), noise, 0o644); err != nil {
		t.Fatal(err)
	}
}

func newArchive(t testing.TB, url string) *Archive {
	t.Helper()
	a, err := Open(Options{URL: url, CacheDir: t.TempDir(), Tools: registry.Tools})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func list(t testing.TB, a *Archive) []*Index {
	t.Helper()
	all, err := a.List(t.Context(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func push(t testing.TB, a *Archive, dir rundir.Directory) Pushed {
	t.Helper()
	p, err := a.Push(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func same(t testing.TB, one, two rundir.Directory) {
	t.Helper()
	names, err := filesOf(one)
	if err != nil {
		t.Fatal(err)
	}
	if others, _ := filesOf(two); !slices.Equal(names, others) {
		t.Errorf("%s has %v, %s has %v", one, names, two, others)
	}
	for _, name := range names {
		a, _ := os.ReadFile(one.Path(name))
		b, _ := os.ReadFile(two.Path(name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s of %s and %s differ", name, one, two)
		}
	}
}

func TestPushAndRead(t *testing.T) {
	a := newArchive(t, t.TempDir())
	data := t.TempDir()
	dir := newRun(t, data, "one", "gen1")
	big(t, dir)
	first := push(t, a, dir)
	if first.Existed || first.Objects < 5 {
		t.Errorf("first push: %+v", first)
	}
	if again := push(t, a, dir); !again.Existed || again.Objects != 0 {
		t.Errorf("second push: %+v", again)
	}
	all := list(t, a)
	if len(all) != 1 || all[0].Meta.Labels["disk"] != "nvme" || all[0].Meta.Workload != "oltp_read_write" {
		t.Fatalf("listed %+v", all)
	}
	row := all[0].Row
	if row.Values.Of(tool.Throughput).Value != 21532 || row.Headline() != "p95 1.04 ms" || row.Threads != 16 || row.Result != rundir.Succeeded || row.DurationSeconds != 1.0001 {
		t.Errorf("row %+v, headline %s", row, row.Headline())
	}
	for range 2 { // from the archive, then from the cache
		got, err := a.Run(t.Context(), all[0])
		if err != nil {
			t.Fatal(err)
		}
		same(t, dir, got)
		if info, err := os.Stat(got.Path(rundir.StdoutFile)); err != nil || info.Mode().Perm() != 0o600 {
			t.Error("others can read the output", info.Mode(), err)
		}
	}
	other := t.TempDir()
	pulled, existed, err := a.Pull(t.Context(), all[0], other)
	if err != nil || existed {
		t.Fatal(existed, err)
	}
	same(t, dir, pulled)
	if _, existed, err := a.Pull(t.Context(), all[0], other); err != nil || !existed {
		t.Error(existed, err)
	}
	if _, ok := a.noted(pulled); !ok {
		t.Error("an agent would upload a run that was pulled")
	}
	if err := os.WriteFile(pulled.Path(rundir.MarkersFile), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Pull(t.Context(), all[0], other); !errors.Is(err, rundir.ErrExists) {
		t.Error("another run was replaced:", err)
	}
}

// TestKnownRunIsNotRead guards that an uploaded run that has not changed costs nothing, and that
// the archive decides, not the note.
func TestKnownRunIsNotRead(t *testing.T) {
	root := t.TempDir()
	a := newArchive(t, root)
	dir := newRun(t, t.TempDir(), "one", "gen1")
	push(t, a, dir)
	known, err := a.Known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir.Path(rundir.StdoutFile), 0); err != nil { // root can read it nevertheless
		t.Fatal(err)
	}
	if p, err := a.Push(t.Context(), dir, known); err != nil || !p.Existed || p.ID != "one" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := a.Push(t.Context(), dir, map[string]bool{}); err != nil || p.Existed {
		t.Errorf("a run that is gone from the archive: %+v, %v", p, err)
	}
}

func TestOpenRunIsRefused(t *testing.T) {
	a := newArchive(t, t.TempDir())
	dir := newRun(t, t.TempDir(), "one", "gen1", func(m *rundir.Meta) { m.ClosedAt = nil })
	if _, err := a.Push(t.Context(), dir, nil); !errors.Is(err, ErrOpen) {
		t.Error(err)
	}
}

// TestPulledRunNamesNoLog guards that a pulled run does not read the log file of the machine that
// uploaded it.
func TestPulledRunNamesNoLog(t *testing.T) {
	a := newArchive(t, t.TempDir())
	dir := newRun(t, t.TempDir(), "one", "gen1", func(m *rundir.Meta) { m.Log = &rundir.LogSource{Path: "/etc/shadow"} })
	if !dir.MayFollowLog() {
		t.Error("the log of an own run is not followed")
	}
	push(t, a, dir)
	pulled, _, err := a.Pull(t.Context(), list(t, a)[0], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if pulled.MayFollowLog() {
		t.Error("a file of this machine is read that a run from the archive names")
	}
}

// TestImpossibleIndex guards that an index of an open run, or of more than a run can contain,
// counts as damaged even with a correct checksum.
func TestImpossibleIndex(t *testing.T) {
	meta := rundir.Meta{ID: "one", Timing: rundir.Timing{StartedAt: time.Now()}, Closing: rundir.Closing{ClosedAt: new(time.Time)}}
	sum := strings.Repeat("a", 64)
	many := func(n int, f File) (all []File) {
		for range n {
			all = append(all, f)
		}
		return all
	}
	for name, tt := range map[string]struct {
		meta  rundir.Meta
		files []File
	}{
		"open":          {rundir.Meta{ID: "one"}, nil},
		"60,000 files":  {meta, many(60_000, File{Name: "x", SHA256: sum})},
		"20 GiB":        {meta, many(5, File{Name: "x", SHA256: sum, Size: 4 << 30, Parts: manyParts(1024, Part{SHA256: sum, Size: partSize, Stored: 9})})},
		"60,000 pieces": {meta, many(1, File{Name: "x", SHA256: sum, Size: 60_000, Parts: manyParts(60_000, Part{SHA256: sum, Size: 1, Stored: 9})})},
	} {
		run, err := json.Marshal(tt.meta)
		if err != nil {
			t.Fatal(err)
		}
		data, err := encodeIndex(run, &review.Row{}, tt.files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeIndex(Entry{ID: "one"}, data); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func manyParts(n int, p Part) (all []Part) {
	for range n {
		all = append(all, p)
	}
	return all
}

// TestWrongFileOfRightParts guards that the checksum of a file is checked in addition to the
// checksums of its parts.
func TestWrongFileOfRightParts(t *testing.T) {
	root := t.TempDir()
	a := newArchive(t, root)
	dir := newRun(t, t.TempDir(), "one", "gen1")
	big(t, dir)
	push(t, a, dir)
	x := list(t, a)[0]
	files := slices.Clone(x.Files)
	for i := range files {
		if f := &files[i]; len(f.Parts) > 1 { // the same parts in another order
			f.Parts = slices.Clone(f.Parts)
			f.Parts[0], f.Parts[1] = f.Parts[1], f.Parts[0]
		}
	}
	run, err := os.ReadFile(dir.Path(rundir.MetaFile))
	if err != nil {
		t.Fatal(err)
	}
	data, err := encodeIndex(run, &x.Row, files)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, x.object()), data, 0o644); err != nil {
		t.Fatal(err)
	}
	b := newArchive(t, root)
	x = list(t, b)[0]
	if _, err := b.Run(t.Context(), x); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "does not match its checksum") {
		t.Errorf("read: %v", err)
	}
	data2 := t.TempDir()
	if _, _, err := b.Pull(t.Context(), x, data2); !errors.Is(err, ErrDamaged) {
		t.Errorf("pulled: %v", err)
	}
	if ids, err := rundir.List(data2); err != nil || len(ids) != 0 {
		t.Errorf("%v %v", ids, err)
	}
}

// TestSameIDFromTwoMachines guards that runs with the same id do not hide each other.
func TestSameIDFromTwoMachines(t *testing.T) {
	root := t.TempDir()
	a := newArchive(t, root)
	one, two := newRun(t, t.TempDir(), "one", "gen1"), newRun(t, t.TempDir(), "one", "gen2")
	push(t, a, one)
	push(t, newArchive(t, root), two)
	all := list(t, a)
	if len(all) != 2 {
		t.Fatalf("%d runs", len(all))
	}
	entries, _ := a.Entries(t.Context())
	if _, err := Find(entries, "one"); err == nil || !strings.Contains(err.Error(), "2 machines have a run one") {
		t.Error(err)
	}
	for _, x := range all {
		if e, err := Find(entries, x.Name()); err != nil || e != x.Entry {
			t.Error(e, err)
		}
		want := one
		if x.Meta.Generator == "gen2" {
			want = two
		}
		got, err := a.Run(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, got)
	}
}

// TestLaterMarker guards that a run with a later marker is listed once, in its new version.
func TestLaterMarker(t *testing.T) {
	root := t.TempDir()
	a := newArchive(t, root)
	dir := newRun(t, t.TempDir(), "one", "gen1")
	push(t, a, dir)
	past := time.Now().Add(-48 * time.Hour)
	_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, _ error) error { return os.Chtimes(path, past, past) })
	if err := os.WriteFile(dir.Path(rundir.MarkersFile), []byte("{}\n{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if p := push(t, a, dir); p.Existed || p.Objects != 1 {
		t.Errorf("the new version: %+v", p)
	}
	all := list(t, a)
	if len(all) != 1 {
		t.Fatalf("%d runs", len(all))
	}
	got, err := a.Run(t.Context(), all[0])
	if err != nil {
		t.Fatal(err)
	}
	same(t, dir, got)
}

// TestDamage guards that a damaged run is reported in one line and does not affect others, and that
// a damaged cache is repaired.
func TestDamage(t *testing.T) {
	root := t.TempDir()
	a := newArchive(t, root)
	data := t.TempDir()
	good, bad, worse := newRun(t, data, "good", "gen1"), newRun(t, data, "bad", "gen1"), newRun(t, data, "worse", "gen1")
	for _, dir := range []rundir.Directory{good, bad, worse} {
		push(t, a, dir)
	}
	for _, x := range list(t, a) {
		switch x.ID {
		case "bad":
			p := x.Files[0].Parts[0]
			damage(t, filepath.Join(root, p.object(x.Entry)))
		case "worse":
			damage(t, filepath.Join(root, x.object()))
		}
	}
	a = newArchive(t, root) // without a cache
	var problems []string
	all, err := a.List(t.Context(), func(err error) { problems = append(problems, err.Error()) })
	if err != nil || len(all) != 2 || len(problems) != 1 || !strings.HasPrefix(problems[0], "run worse is damaged in the archive: its index ") {
		t.Fatalf("%d runs, %v, %v", len(all), problems, err)
	}
	for _, x := range all {
		dir, err := a.Run(t.Context(), x)
		if x.ID == "bad" {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		damage(t, dir.Path(rundir.StdoutFile))
		if dir, err = a.Run(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		same(t, good, dir)
	}
	cached, _ := filepath.Glob(filepath.Join(a.CacheDir, "*", "index", "*.json"))
	if len(cached) != 2 {
		t.Fatal(cached)
	}
	for _, path := range cached {
		damage(t, path)
	}
	if all, err := a.List(t.Context(), func(error) {}); err != nil || len(all) != 2 {
		t.Error("a damaged cache hides runs:", len(all), err)
	}
	// A removed or damaged run, or a damaged index, is uploaded again.
	for _, x := range all {
		if x.ID == "bad" {
			if err := errors.Join(os.RemoveAll(filepath.Join(root, x.folder())), os.Remove(filepath.Join(root, x.object()))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, dir := range []rundir.Directory{bad, worse} {
		push(t, a, dir)
	}
	a = newArchive(t, root)
	if all = list(t, a); len(all) != 3 {
		t.Errorf("%d runs", len(all))
	}
	for _, x := range all {
		if _, err := a.Run(t.Context(), x); err != nil {
			t.Error("not repaired:", err)
		}
	}
}

// damage changes a byte in the middle without changing the time of the file.
func damage(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		t.Fatal("nothing to damage", err)
	}
	info, _ := os.Stat(path)
	data[len(data)/2] ^= 0x15
	if err := errors.Join(os.WriteFile(path, data, 0o644), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

var errTorn = errors.New("killed")

// tear makes a bucket fail after a number of writes and reads, as if the process had been killed.
func tear(b bucket, writes, reads int) bucket {
	torn := b
	torn.put = func(ctx context.Context, name string, data []byte) error {
		if writes--; writes < 0 {
			return errTorn
		}
		return b.put(ctx, name, data)
	}
	torn.get = func(ctx context.Context, name string, limit int64) ([]byte, error) {
		if reads--; reads < 0 {
			return nil, errTorn
		}
		return b.get(ctx, name, limit)
	}
	return torn
}

// TestInterrupted guards that an upload that ends after any object leaves nothing visible, and that
// the next one only uploads the rest.
func TestInterrupted(t *testing.T) {
	root := t.TempDir()
	dir := newRun(t, t.TempDir(), "one", "gen1")
	big(t, dir)
	objects := 0
	for stopped := true; stopped; {
		a := newArchive(t, root)
		a.bucket = tear(a.bucket, 1, 100)
		p, err := a.Push(t.Context(), dir, nil)
		stopped = err != nil
		objects += p.Objects
		switch {
		case stopped && !errors.Is(err, errTorn):
			t.Fatal(err)
		case stopped && len(list(t, a)) > 0:
			t.Fatal("a half run is visible")
		case objects > 20:
			t.Fatal("uploads begin again and again")
		}
	}
	a := newArchive(t, root)
	all := list(t, a)
	if len(all) != 1 {
		t.Fatalf("%d runs", len(all))
	}
	needed := map[string]bool{}
	for _, f := range all[0].Files {
		for _, p := range f.Parts {
			needed[p.object(all[0].Entry)] = true
		}
	}
	if objects != len(needed) {
		t.Errorf("%d objects uploaded, %d needed", objects, len(needed))
	}
	got, err := a.Run(t.Context(), all[0])
	if err != nil {
		t.Fatal(err)
	}
	same(t, dir, got)
}

func TestInterruptedRead(t *testing.T) {
	root := t.TempDir()
	dir := newRun(t, t.TempDir(), "one", "gen1")
	big(t, dir)
	a := newArchive(t, root)
	push(t, a, dir)
	x := list(t, a)[0]
	plain := a.bucket
	reads := 0
	for {
		a.bucket = tear(plain, 0, 1)
		got, err := a.Run(t.Context(), x)
		reads++
		if err == nil {
			same(t, dir, got)
			break
		}
		if !errors.Is(err, errTorn) || reads > 20 {
			t.Fatal(reads, err)
		}
	}
	if reads < 4 {
		t.Errorf("only %d reads were interrupted", reads)
	}
}

// TestTwoWriters guards that nothing is lost if two processes upload the same runs at once.
func TestTwoWriters(t *testing.T) {
	root := t.TempDir()
	data := t.TempDir()
	var dirs []rundir.Directory
	for i := range 20 {
		dirs = append(dirs, newRun(t, data, fmt.Sprintf("run%d", i), "gen1"))
	}
	var writers sync.WaitGroup
	for n := range 2 {
		a := newArchive(t, root)
		a.Plain = n == 1 // even if their objects differ
		writers.Go(func() {
			for _, dir := range dirs {
				if _, err := a.Push(t.Context(), dir, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	a := newArchive(t, root)
	all := list(t, a)
	if len(all) != len(dirs) {
		t.Fatalf("%d runs", len(all))
	}
	for _, x := range all {
		got, err := a.Run(t.Context(), x)
		if err != nil {
			t.Error(err)
			continue
		}
		same(t, rundir.At(data, x.ID), got)
	}
}

func TestOmittedOutput(t *testing.T) {
	a := newArchive(t, t.TempDir())
	a.OmitOutput = true
	push(t, a, newRun(t, t.TempDir(), "one", "gen1"))
	x := list(t, a)[0]
	if !x.Omits() || x.Row.Values.Of(tool.Throughput).Value != 21532 {
		t.Errorf("%+v", x)
	}
	dir, err := a.Run(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir.Path(rundir.StdoutFile)); err == nil {
		t.Error("the output was uploaded")
	}
}

func TestMissingFolder(t *testing.T) {
	a := newArchive(t, filepath.Join(t.TempDir(), "missing"))
	_, err := a.Entries(t.Context())
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the folder does not exist") {
		t.Error(err)
	}
	if _, err := a.Push(t.Context(), newRun(t, t.TempDir(), "one", "g"), nil); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

func TestCheckURL(t *testing.T) {
	for url, want := range map[string]string{
		"s3://bucket/a/b":                 "",
		"s3://bucket?endpoint=http://h:1": "",
		"gs://bucket":                     "",
		"file:///folder":                  "",
		"/folder":                         "",
		"s3://key:secret@bucket":          "contains a user or password; credentials come from the environment or from credentials_file",
		"s3://bucket?secret_key=x":        "has an unknown option secret_key: s3:// has endpoint and region",
		"s3:///prefix":                    "has no name of a bucket: expected s3://bucket/prefix",
		"http://bucket":                   "expected s3://bucket/prefix, gs://bucket/prefix or an absolute path",
		"relative":                        "expected s3://bucket/prefix, gs://bucket/prefix or an absolute path",
		"azure://container/p":             "expected s3://bucket/prefix, gs://bucket/prefix or an absolute path",
		"s3://b?endpoint=http://k:s@h":    "has an endpoint that is no http:// or https:// address",
	} {
		err := CheckURL(url)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestUploader(t *testing.T) {
	root := filepath.Join(t.TempDir(), "later")
	data := t.TempDir()
	newRun(t, data, "one", "gen1")
	newRun(t, data, "open", "gen1", func(m *rundir.Meta) { m.ClosedAt = nil })
	a := newArchive(t, root)
	var mu sync.Mutex
	busy := true
	u := NewUploader(UploaderOptions{
		DataDir: data, Log: slog.New(slog.DiscardHandler), Open: func() (*Archive, error) { return a, nil },
		Busy: func() bool { mu.Lock(); defer mu.Unlock(); return busy },
	})
	u.poll, u.longest = time.Millisecond, 2*time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { u.Run(ctx) })
	defer done.Wait()
	defer stop()
	until := func(what string, ok func(Stats) bool) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(20 * time.Second); !ok(u.Stats()); <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain for %s: %+v", what, u.Stats())
			}
		}
	}
	until("the pending run", func(s Stats) bool { return s.Pending == 1 })
	if s := u.Stats(); s.Failures > 0 || s.Uploaded > 0 {
		t.Errorf("disturbed a run: %+v", s)
	}
	mu.Lock()
	busy = false
	mu.Unlock()
	until("a failure", func(s Stats) bool { return s.Failing && s.Failures > 2 })
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	until("the upload", func(s Stats) bool { return s.Uploaded == 1 && s.Pending == 0 && !s.Failing && !s.LastSuccess.IsZero() })
	if all := list(t, newArchive(t, root)); len(all) != 1 || all[0].ID != "one" {
		t.Errorf("%+v", all)
	}
	newRun(t, data, "two", "gen1")
	until("the next run", func(s Stats) bool { return s.Uploaded == 2 })
}
