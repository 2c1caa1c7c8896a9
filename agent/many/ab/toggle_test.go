package ab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The seconds that carry over are found, whatever the arms differ by; without any it is the second of
// the switch.
func TestCarryOverSeconds(t *testing.T) {
	for _, c := range []struct {
		seconds int
		dip     float64
	}{{0, 0}, {2, -0.3}, {5, -0.2}, {4, 0.15}} {
		right := 0
		for seed := range uint64(50) {
			random := rand.New(rand.NewPCG(seed, 1))
			var intervals []interval
			var segments []segment
			for block := range 40 {
				from := float64(block * 20)
				segments = append(segments, segment{from: from, to: from + 20, isSwitched: block%2 == 1})
				for s := range 20 {
					v := 1000 + 100*float64(block/2%2)
					if block%2 == 1 && s < c.seconds {
						v *= 1 + c.dip
					}
					intervals = append(intervals, interval{from + float64(s), from + float64(s) + 1, v * (1 + 0.03*random.NormFloat64())})
				}
			}
			seconds, share := carryOver(segments, intervals, 20)
			if want := math.Max(1, float64(c.seconds)); seconds == want {
				right++
				if c.dip != 0 && math.Abs(share-c.dip) > 0.05 {
					t.Errorf("%d s by %.2f: found %.2f", c.seconds, c.dip, share)
				}
			}
		}
		if right < 42 {
			t.Errorf("%d s by %.2f: found in %d of 50", c.seconds, c.dip, right)
		}
	}
}

func TestToggleCheck(t *testing.T) {
	for _, c := range []struct {
		text, values, want string
		every              float64
	}{
		{"SET GLOBAL x={v}", "1,2", "", 20},
		{"SET GLOBAL wsrep_provider_options='gcs.fc_limit={v}'", "16,100", "", 20},
		{"SET GLOBAL x=1", "1,2", "no {v}", 20},
		{"SET x={v}", "1,2", "can be restored", 20},
		{"ALTER SYSTEM SET max_wal_size = '{v}'", "1GB,2GB", "", 20},
		{"ALTER TABLE t SET (fillfactor = {v})", "50,100", "can be restored", 20},
		{"SET GLOBAL x={v}", "1", "needs two values", 20},
		{"SET GLOBAL x={v}", "1,1", "twice", 20},
		{"SET GLOBAL x={v}", "1,2;drop", "characters", 20},
		{"SET GLOBAL x={v}", "1,2", "at least 3s", 1},
	} {
		toggle := &Toggle{Text: c.text, EverySeconds: c.every}
		err := toggle.Check(strings.Split(c.values, ","))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %s: %v", c.text, c.values, err)
		}
	}
}

// Requests and commands switch; an answer other than success is an error.
func TestChange(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if strings.Contains(r.URL.String(), "bad") {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(func() { server.Close(); http.DefaultClient.CloseIdleConnections() })
	file := filepath.Join(t.TempDir(), "setting")
	for text, want := range map[string]string{
		"POST " + server.URL + "/set?x=1": "", "POST " + server.URL + "/bad": "403 Forbidden",
		"echo 2 >" + file: "", "echo no >&2; exit 3": "no (exit status 3)",
	} {
		c := change{Text: text}
		if err := c.run(t.Context(), nil); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "2\n" || len(asked) != 2 {
		t.Errorf("%q, %v, %v", content, err, asked)
	}
}

// A promise to restore is kept by the next process, unless the first one lives; what fails is tried
// again.
func TestRestoreLeft(t *testing.T) {
	dataDir, file := t.TempDir(), filepath.Join(t.TempDir(), "setting")
	restore := []change{{Text: "test -e " + file + ".up && echo own >" + file}}
	var notices []string
	left := func() error {
		return RestoreLeft(t.Context(), dataDir, func(Server) (engine.Target, error) { return engine.Target{}, errors.New("unused") },
			func(format string, args ...any) { notices = append(notices, fmt.Sprintf(format, args...)) })
	}
	if err := left(); err != nil || len(notices) > 0 {
		t.Errorf("nothing is left: %v, %v", err, notices)
	}
	j, err := openJournal(dataDir, "x", restore)
	if err != nil {
		t.Fatal(err)
	}
	if err := left(); err != nil || len(notices) > 0 {
		t.Errorf("its process lives: %v, %v", err, notices)
	}
	j.lock.Close() // as its death does
	if err := left(); err == nil || len(notices) > 0 {
		t.Errorf("it can't be restored: %v, %v", err, notices)
	}
	if err := os.WriteFile(file+".up", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := left(); err != nil || len(notices) != 1 || !strings.Contains(notices[0], "that a killed comparison left") {
		t.Errorf("%v, %v", err, notices)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "own\n" {
		t.Errorf("%q, %v", content, err)
	}
	if err := left(); err != nil || len(notices) != 1 {
		t.Errorf("restored twice: %v, %v", err, notices)
	}
	if err := apply(context.Background(), []change{{Text: "exit 1"}, {Text: "rm " + file}}, nil); err == nil {
		t.Error("a failure is not reported")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a failure keeps the next change from being carried out")
	}
}

// Only what a process of this user wrote in this place is carried out: nothing that another user may
// have written, and no copy.
func TestForeignJournal(t *testing.T) {
	done := filepath.Join(t.TempDir(), "done")
	for name, spoil := range map[string]func(dataDir, folder, file string) error{
		"none":                   func(_, _, _ string) error { return nil },
		"writable by the group":  func(_, _, file string) error { return os.Chmod(file, 0o620) },
		"folder of the group":    func(_, folder, _ string) error { return os.Chmod(folder, 0o770) },
		"linked from elsewhere":  func(dataDir, _, file string) error { return os.Link(file, filepath.Join(dataDir, "link")) },
		"a symbolic link":        func(dataDir, _, file string) error { return relink(file, filepath.Join(dataDir, "file")) },
		"folder a symbolic link": func(dataDir, folder, _ string) error { return relink(folder, filepath.Join(dataDir, "folder")) },
		"folder of another user": func(_, folder, _ string) error { return os.Chown(folder, 1, -1) },
		"file of another user":   func(_, _, file string) error { return os.Chown(file, 1, -1) },
		"a copy of the directory": func(_, folder, _ string) error {
			return errors.Join(os.Rename(folder, folder+"x"), os.CopyFS(folder, os.DirFS(folder+"x")), os.Chmod(folder, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "another user") && os.Geteuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			dataDir := t.TempDir()
			j, err := openJournal(dataDir, "x", []change{{Text: "touch " + done}})
			if err != nil {
				t.Fatal(err)
			}
			j.lock.Close()
			if err := spoil(dataDir, journals(dataDir), j.path); err != nil {
				t.Fatal(err)
			}
			err = RestoreLeft(t.Context(), dataDir, nil, func(string, ...any) {})
			_, missing := os.Stat(done)
			if name == "none" {
				if err != nil || os.Remove(done) != nil {
					t.Errorf("not restored: %v", err)
				}
				return
			}
			if missing == nil {
				t.Error("it was carried out")
			}
			if err == nil && name != "folder of another user" {
				t.Error("nothing is reported")
			}
		})
	}
}

// relink moves a file and leaves a symbolic link in its place.
func relink(path, to string) error { return errors.Join(os.Rename(path, to), os.Symlink(to, path)) }

// Each value is tried before anything runs; afterwards the setting is as before, and so it is if a
// value is refused.
func TestTry(t *testing.T) {
	dataDir, file := t.TempDir(), filepath.Join(t.TempDir(), "setting")
	toggle := &Toggle{Text: "test {v} != 3 && echo {v} >>" + file, Restore: "1"}
	for values, want := range map[string]string{"1,2": "1 1 2 1", "1,3": "1 1 1"} {
		_ = os.Remove(file) // of the other values
		err := toggle.Try(t.Context(), dataDir, strings.Split(values, ","), nil)
		content, _ := os.ReadFile(file)
		if (err == nil) != (values == "1,2") || strings.Join(strings.Fields(string(content)), " ") != want {
			t.Errorf("%s: %v, set %q", values, err, content)
		}
	}
	toggle.Restore = "3"
	if err := toggle.Try(t.Context(), dataDir, []string{"1", "2"}, nil); err == nil {
		t.Error("what can't be restored is switched")
	}
	if left, err := os.ReadDir(journals(dataDir)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}
