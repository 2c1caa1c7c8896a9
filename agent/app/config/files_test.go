package config

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// around contains what a section needs in addition to a key that names a file.
var around = map[string]map[string]any{
	"targets[]": {"name": "db1", "engine": "mysql", "address": "127.0.0.1:1", "user": "u"},
	"peers[]":   {"url": "https://127.0.0.1:1"},
	"grafana":   {"url": "http://127.0.0.1:1"},
	"archive":   {"url": "s3://bucket/prefix"},
}

// withFile returns a configuration in which a key names a file.
func withFile(t *testing.T, key, file string) string {
	t.Helper()
	parts := strings.Split(key, ".")
	last := parts[len(parts)-1]
	var value any = map[string]any{last: file}
	switch last {
	case "cert_file":
		value.(map[string]any)["key_file"] = file
	case "key_file":
		value.(map[string]any)["cert_file"] = file
	}
	for i := len(parts) - 2; i >= 0; i-- {
		inner := value.(map[string]any)
		maps.Copy(inner, around[strings.Join(parts[:i+1], ".")])
		if key == "peers[].password_file" {
			inner["user"] = "u"
		}
		name, isList := strings.CutSuffix(parts[i], "[]")
		if value = any(inner); isList {
			value = []any{inner}
		}
		value = map[string]any{name: value}
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "benchwatch.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesThatHang guards that any key that names a file, including future ones, may name a FIFO
// without a writer or an endless device. The configuration is ready within the two seconds in which
// the agent must end, and the error contains the line and the key.
func TestFilesThatHang(t *testing.T) {
	keys := 0
	for _, k := range Keys() {
		if k.Kind != kindFile {
			continue
		}
		keys++
		for _, kind := range []string{"fifo", "/dev/zero"} {
			t.Run(k.Path+" "+filepath.Base(kind), func(t *testing.T) {
				t.Parallel()
				file := kind
				if kind == "fifo" {
					file = fifo(t)
				}
				path := withFile(t, k.Path, file)
				c, err := Load(path)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				done := make(chan []error, 1)
				go func() {
					log := slog.New(slog.DiscardHandler)
					c.EngineTargets(log)
					c.PeerConfigs(log)
					done <- c.UnreadableFiles()
				}()
				var errs []error
				select {
				case errs = <-done:
				case <-time.After(time.Minute):
					t.Fatal("still waiting for the file")
				}
				t.Logf("%s", time.Since(began).Round(time.Millisecond))
				if len(errs) == 0 {
					t.Fatal("no error")
				}
				text, _ := os.ReadFile(path)
				name := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
				line := 0
				for i, l := range strings.Split(string(text), "\n") {
					if strings.Contains(l, name+":") {
						line = i + 1
					}
				}
				want := fmt.Sprintf("%s:%d: %s: read %s: ", path, line, strings.ReplaceAll(k.Path, "[]", "[0]"), file)
				if file == "/dev/zero" { // named by other keys as well; a busy machine needs longer to read that much
					want = "read /dev/zero: "
				}
				if !slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), want) }) && !strings.HasPrefix(name, "cert") {
					t.Errorf("errors %q, want %s", errs, want)
				}
			})
		}
	}
	if keys < 10 {
		t.Errorf("only %d keys name files", keys)
	}
}

// TestFileFromPipe guards that a FIFO that delivers in time, as from a process substitution, works
// like a file for every reader.
func TestFileFromPipe(t *testing.T) {
	file := fifo(t)
	c, err := Load(withFile(t, "targets[].password_file", file))
	if err != nil {
		t.Fatal(err)
	}
	go os.WriteFile(file, []byte("geheim\n"), 0)
	for range 2 {
		targets := c.EngineTargets(slog.New(slog.DiscardHandler))
		if len(targets) != 1 || string(targets[0].Password) != "geheim" {
			t.Fatalf("targets %+v", targets)
		}
	}
	if errs := c.UnreadableFiles(); len(errs) > 0 {
		t.Error(errs)
	}
}

func fifo(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestNotUTF8 guards that a file in the encoding of Windows editors is refused instead of being
// misread.
func TestNotUTF8(t *testing.T) {
	file := filepath.Join(t.TempDir(), "benchwatch.yml")
	for _, text := range []string{"\xff\xfed\x00a\x00t\x00a\x00", "\xfe\xff\x00d\x00a", "data_dir: \xe4"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); err == nil || !strings.HasSuffix(err.Error(), ":1: expected text in UTF-8, which this file is not") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
