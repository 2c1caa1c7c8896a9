package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each bad file is named after what is wrong in it; its first line is a
// comment with the message that a user must see.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no bad files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(data), "\n")
			want := file + strings.ReplaceAll(strings.TrimPrefix(first, "# "), "TOOLS", Default().ToolSet().Names())
			if _, err = Load(file); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestGoodFile(t *testing.T) {
	c, err := Load("testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	if c.SampleInterval != 2*time.Second || c.Runs.MaxKept != 10 || c.Runs.MaxLive != 64 {
		t.Errorf("got %+v", c)
	}
	if want := filepath.Join("testdata", "data"); c.DataDir != want {
		t.Errorf("data_dir %q, want it beside the file: %q", c.DataDir, want)
	}
	if len(c.Targets) != 2 || c.Targets[1].Cluster != "pair" {
		t.Errorf("targets %+v", c.Targets)
	}
	prepared, err := c.Targets[0].prepare()
	if err != nil {
		t.Fatal(err)
	}
	if string(prepared.Password) != "s3cret" {
		t.Error("the password file's line end is part of the password")
	}
}

func TestEmptyFileIsDefault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.yml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.SampleInterval != time.Second {
		t.Errorf("sample interval %s", c.SampleInterval)
	}
}

// The example in the documentation is one that works.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(doc), "```yaml\n")
	example, _, end := strings.Cut(example, "```")
	if !ok || !end {
		t.Fatal("no example found")
	}
	path := filepath.Join(t.TempDir(), "benchwatch.yml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Targets) != 2 || len(c.Logs) != 1 || c.Grafana.URL == "" || c.DataDir != "/var/lib/benchwatch" {
		t.Errorf("got %+v", c)
	}
}
