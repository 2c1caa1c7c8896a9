package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOpenFiles guards that a file that stays open has its current content, that the files of an ended process have
// none, and that files which are not read any more are closed.
func TestOpenFiles(t *testing.T) {
	before := opened.Load() // by other tests
	var f openFiles
	defer f.Close()
	read := func(path string) string {
		t.Helper()
		data, err := f.read(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", strings.Repeat("a longer second one\n", 2000), ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(path); got != content {
			t.Errorf("%d bytes, want %d", len(got), len(content))
		}
	}

	cat := exec.Command("cat")
	input, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	process := "/proc/" + strconv.Itoa(cat.Process.Pid)
	if names, err := f.names(process + "/task"); err != nil || len(names) != 1 {
		t.Errorf("the process has the threads %q: %v", names, err)
	}
	read(process + "/stat")
	input.Close()
	if err := cat.Wait(); err != nil {
		t.Fatal(err)
	}
	if data, err := f.read(process + "/stat"); err == nil {
		t.Errorf("an ended process has %q", data)
	}
	if names, _ := f.names(process + "/task"); len(names) > 0 {
		t.Errorf("an ended process has the threads %q", names)
	}

	for i := range 2 * int(mostOpen()) {
		other := filepath.Join(filepath.Dir(path), strconv.Itoa(i))
		if err := os.WriteFile(other, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		read(other)
	}
	if opened.Load() != mostOpen() {
		t.Errorf("%d files are open", opened.Load())
	}
	f.closeUnread()
	read(path)
	f.closeUnread()
	if len(f.open) > 1 {
		t.Errorf("%d files stay open, and one was read", len(f.open))
	}
	f.Close()
	if opened.Load() != before {
		t.Errorf("%d files stay open after they were closed, %d before", opened.Load(), before)
	}
}
