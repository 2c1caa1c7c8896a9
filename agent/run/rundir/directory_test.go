package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCreateClaimsWholeDirectory(t *testing.T) {
	data := t.TempDir()
	dir, claim, err := Create(data, Meta{ID: "one", Timing: Timing{StartedAt: time.Unix(1, 0).UTC()}})
	if err != nil {
		t.Fatal(err)
	}
	if !dir.Running(&Meta{}) {
		t.Error("a new run counts as dead before its tool is started")
	}
	for _, name := range []string{StdoutFile, StderrFile} {
		info, err := os.Stat(dir.Path(name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, info, err)
		}
	}
	claim.Release()
	if dir.Running(&Meta{}) {
		t.Error("a run without claim, lock and process counts as alive")
	}
}

func TestCreateTwice(t *testing.T) {
	data := t.TempDir()
	var mu sync.Mutex
	var wg sync.WaitGroup
	made, refused := 0, 0
	for range 20 {
		wg.Go(func() {
			_, claim, err := Create(data, Meta{ID: "same"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				claim.Release()
				made++
			case errors.Is(err, ErrExists):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made != 1 || refused != 19 {
		t.Errorf("%d made, %d refused", made, refused)
	}
	entries, err := os.ReadDir(Root(data))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Two processes that each change their part of run.json must not undo each other.
func TestUpdatesDoNotGetLost(t *testing.T) {
	dir, claim, err := Create(t.TempDir(), Meta{ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := dir.Update(func(m *Meta) { m.Threads++ }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	m, err := dir.Load()
	if err != nil || m.Threads != 20 {
		t.Errorf("got %d updates, %v", m.Threads, err)
	}
}

func TestDamagedMetaIsSaid(t *testing.T) {
	dir, claim, err := Create(t.TempDir(), Meta{ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	if err := os.WriteFile(dir.Path(MetaFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Load(); err == nil || !strings.Contains(err.Error(), "damaged run.json") {
		t.Errorf("got %v", err)
	}
}

func TestIDs(t *testing.T) {
	start := time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)
	for want, got := range map[string]string{
		"20261121T021403Z-oltp_read_write-t16": NewID(start, "oltp_read_write", 16, 1),
		"20261121T021403Z":                     NewID(start, "", 0, 1),
		"20261121T021403Z-a_b_c-2":             NewID(start, "../a/b c", 0, 2),
	} {
		if got != want || CheckID(got) != nil {
			t.Errorf("got %s (%v), want %s", got, CheckID(got), want)
		}
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", "-x", "a b", "ä", strings.Repeat("x", 101)} {
		if CheckID(bad) == nil {
			t.Errorf("%q is taken as an id", bad)
		}
	}
}

// A user finds the agent of the machine if that shares its runs folder.
func TestDefaultDataDir(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root's is always the same")
	}
	t.Setenv("BENCHWATCH_DATA_DIR", "")
	t.Setenv("XDG_DATA_HOME", "/share")
	defer func(before string) { systemDataDir = before }(systemDataDir)
	systemDataDir = t.TempDir()
	lock, err := ClaimAgent(systemDataDir, AgentInfo{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	if got := DefaultDataDir(); got != "/share/benchwatch" {
		t.Errorf("an agent that does not share: %s", got)
	}
	if err := os.Chmod(Root(systemDataDir), 0o777|os.ModeSetgid|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if got := DefaultDataDir(); got != systemDataDir {
		t.Errorf("an agent that shares: %s", got)
	}
	lock.Close()
	if got := DefaultDataDir(); got != "/share/benchwatch" {
		t.Errorf("no agent: %s", got)
	}
}

func TestOpenRecordFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "other"), link); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenRecord(link); err == nil {
		f.Close()
		t.Error("opened a symbolic link")
	}
}

func TestCreateFillsOnce(t *testing.T) {
	dataDir := t.TempDir()
	meta := Meta{Timing: Timing{StartedAt: time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)}, Title: "oltp"}
	for range 3 {
		filled := 0
		_, claim, err := CreateWith(dataDir, meta, func(Directory) error { filled++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		claim.Release()
		if filled != 1 {
			t.Errorf("filled %d times, want once whatever ids are taken", filled)
		}
	}
}

// TestRunsFolderIsNoForeignLink: a link in the place of the runs folder counts only if this
// user or root made it.
func TestRunsFolderIsNoForeignLink(t *testing.T) {
	data, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, Root(data)); err != nil {
		t.Fatal(err)
	}
	if _, err := List(data); err != nil {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give the link away")
	}
	if err := os.Lchown(Root(data), 47603, 47603); err != nil {
		t.Fatal(err)
	}
	if _, err := List(data); !errors.Is(err, ErrForeign) {
		t.Errorf("listed: %v", err)
	}
	if _, _, err := Create(data, Meta{ID: "r", Timing: Timing{StartedAt: time.Now()}}); !errors.Is(err, ErrForeign) {
		t.Errorf("created: %v", err)
	}
}
