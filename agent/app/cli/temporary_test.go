package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestTemporaryFolders guards that the folder of a killed replay is deleted by the next one,
// but none that is in use, another user's or named otherwise.
func TestTemporaryFolders(t *testing.T) {
	temp := t.TempDir()
	replay := func(args ...string) *exec.Cmd {
		cmd := exec.Command("benchwatch", append([]string{"replay", "--web.listen-address=127.0.0.1:0", "--data-dir=" + t.TempDir()}, args...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	folders := func() []string {
		found, err := filepath.Glob(filepath.Join(temp, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	serving := func() (*exec.Cmd, string) {
		before := folders()
		cmd := replay("--speed=0.01")
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
			for _, path := range folders() {
				if runs, err := os.ReadDir(filepath.Join(path, "recorded", "runs")); !slices.Contains(before, path) && err == nil && len(runs) > 0 {
					return cmd, path
				}
			}
		}
		t.Fatal("the replay has no folder")
		return nil, ""
	}
	killed, abandoned := serving()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	_, used := serving()
	if _, err := os.Stat(abandoned); !os.IsNotExist(err) {
		t.Errorf("the folder of the killed replay: %v", err)
	}
	kept := []string{used}
	for _, name := range []string{"benchwatch-replay-notes", "benchwatch-replay-", "benchwatch-export-123", "benchwatch-replay-12/target"} {
		path := filepath.Join(temp, name)
		if filepath.Dir(name) != "." {
			path = filepath.Join(t.TempDir(), "target")
			if err := os.Symlink(path, filepath.Join(temp, filepath.Dir(name))); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, filepath.Join(temp, filepath.Dir(name)))
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, path)
	}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(temp, "benchwatch-replay-77")
		if err := os.Mkdir(foreign, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, foreign)
	}
	if err := replay("--speed=100", "--linger=0s").Wait(); err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range folders() {
		if !slices.Contains(kept, path) {
			t.Errorf("%s is left", path)
		}
	}
}
