package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// In a shared folder another user may put anything where a file is expected.
func TestOpenOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Mkfifo(path("pipe"), 0o600), os.Symlink("file", path("link")), os.Mkdir(path("folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*os.File, error){"Open": Open, "OpenRecord": OpenRecord} {
		for _, kind := range []string{"pipe", "link", "folder"} {
			if f, err := open(path(kind)); err == nil {
				f.Close()
				t.Errorf("%s opens a %s", name, kind)
			}
		}
		f, err := open(path("file"))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if _, err := Open(path("missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
