package tests

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestInstall installs the module as a user does, `go install MODULE@VERSION`, from a file proxy that holds the files of
// this tree. Go refuses a module that replaces others, or whose files can't be in the archive of a module.
func TestInstall(t *testing.T) {
	this := module.Version{Path: "github.com/benchwatch/benchwatch", Version: "v0.0.1-test"}
	proxy := t.TempDir()
	versions := filepath.Join(proxy, this.Path, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]string{"Version": this.Version})
	if err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(versions, this.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.Create(archive, this, treeFiles(t)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"list": []byte(this.Version + "\n"), this.Version + ".info": info, this.Version + ".mod": goMod,
	} {
		if err := os.WriteFile(filepath.Join(versions, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	elsewhere, cache := t.TempDir(), t.TempDir()
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", cache).Run() }) // modules are read-only
	install := exec.CommandContext(t.Context(), "go", "install", "-ldflags=-s -w", this.Path+"@"+this.Version)
	install.Dir = elsewhere
	// The other modules come from the cache of this module's own builds.
	install.Env = append(os.Environ(), "GOBIN="+elsewhere, "GOFLAGS=-trimpath", "GOMODCACHE="+cache, "GONOSUMDB="+this.Path, "GOGC=400",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")+","+goEnv(t, "GOPROXY"))
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(elsewhere, "benchwatch"), "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), strings.TrimPrefix(this.Version, "v")) {
		t.Errorf("benchwatch --version: %v\n%s", err, out)
	}
}

// treeFiles are the files that git tracks or would track.
func treeFiles(t *testing.T) []zip.File {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal("git ls-files:", err)
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if file := (treeFile{name}); file.exists() {
			files = append(files, file)
		}
	}
	return files
}

// treeFile is a file below the root of the tree, by its name with slashes.
type treeFile struct{ name string }

func (f treeFile) Path() string                 { return f.name }
func (f treeFile) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join("..", f.name)) }
func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join("..", f.name)) }
func (f treeFile) exists() bool                 { _, err := f.Lstat(); return err == nil }

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal("go env:", err)
	}
	return strings.TrimSpace(string(out))
}
