package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
)

// Each bad file is named after its mistake. Its first line is a comment with the message that the
// user must see.
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
			registered := strings.NewReplacer("TOOLS", Default().ToolSet().Names(), "ENGINES", strings.Join(engines.Names(), ", "))
			want := file + registered.Replace(strings.TrimPrefix(first, "# "))
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
	if a := c.Archive; a.URL != "s3://bucket/team?endpoint=http://127.0.0.1:9000" || !a.Upload || !a.Output || a.Compression != "zstd" {
		t.Errorf("archive %+v", a)
	}
	if p := c.Peers; len(p) != 1 || p[0].name() != "gen1:9838" || p[0].Output || p[0].Metrics || p[0].MaxAge != "24h" || p[0].TLS == nil {
		t.Errorf("peers %+v", p)
	}
	again, err := Load("testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Peers[0].identity() != again.Peers[0].identity() {
		t.Error("a peer changes by a reload of the same file")
	}
	for _, change := range []func(*Peer){
		func(p *Peer) { p.MaxAge = "2h" }, func(p *Peer) { p.Metrics = true }, func(p *Peer) { p.PasswordFile = "other" },
		func(p *Peer) { p.TLS = nil }, func(p *Peer) { p.TLS = &TLS{}; p.TLS.ServerName = "other" },
	} {
		changed := c.Peers[0]
		if change(&changed); changed.identity() == again.Peers[0].identity() {
			t.Errorf("not a change: %+v", changed)
		}
	}
	prepared, err := c.Targets[0].prepare()
	if err != nil {
		t.Fatal(err)
	}
	if string(prepared.Password) != "s3cret" {
		t.Error("the line end of the password file is part of the password")
	}
}

func TestMergedKeys(t *testing.T) {
	c, err := Load("testdata/good.yml")
	if err != nil {
		t.Fatal(err)
	}
	two := c.Targets[1]
	if two.Name != "two" || two.Address != "127.0.0.1:3307" || two.User != "monitor" || two.Engine != "mysql" {
		t.Errorf("got %+v", two)
	}
	if two.PasswordFile != "" {
		t.Errorf("a key without a value did not hide the merged one: %q", two.PasswordFile)
	}
	if want := filepath.Join("testdata", "ca.pem"); two.TLS == nil || two.TLS.CAFile != want {
		t.Errorf("tls %+v, want ca_file %s", two.TLS, want)
	}
}

func TestFileWithoutKeysIsDefault(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "runs:\n"} {
		c := Default()
		if err := decode([]byte(text), "benchwatch.yml", c); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(Default(), c, cmp.AllowUnexported(Config{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := Load("testdata/missing.yml"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var mistake *Error
	if _, err := Load("testdata/bad/key_twice.yml"); !errors.As(err, &mistake) || mistake.Line != 4 || mistake.Key != "runs.max_live" {
		t.Error(err)
	}
}

// Aliases of aliases must not turn a small file into a large one.
func TestAliasesAreBounded(t *testing.T) {
	text := "logs:\n- labels: &a0 {x: y}\n  path: /a\n"
	for i := range 9 {
		text += fmt.Sprintf("- path: /a\n  labels: &a%d {<<: [%s]}\n", i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	if err := decode([]byte(text), "benchwatch.yml", Default()); err == nil || !strings.Contains(err.Error(), "too many aliases") {
		t.Error(err)
	}
}

func TestNeedRestart(t *testing.T) {
	before, after := Default(), Default()
	after.Runs.MaxKept++
	after.Targets = []Target{{Name: "a"}}
	if keys := before.NeedRestart(after); keys != nil {
		t.Errorf("got %v", keys)
	}
	after.DataDir, after.SampleInterval = "/elsewhere", time.Minute
	if keys := before.NeedRestart(after); !slices.Equal(keys, []string{"data_dir", "sample_interval"}) {
		t.Errorf("got %v", keys)
	}
}

// Every exported field of a section has a key, and no two have the same.
func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Path] || k.Kind == "" {
			t.Errorf("%s is declared twice, or has no kind", k.Path)
		}
		seen[k.Path] = true
	}
	for _, s := range []any{Config{}, Runs{}, Log{}, Target{}, TLS{}, Host{}, Proxy{}, Tool{}, Grafana{}, Prometheus{}, Archive{}, Peer{}} {
		for f := range reflect.TypeOf(s).Fields() {
			if f.IsExported() && f.Tag.Get("yaml") == "" {
				t.Errorf("%T.%s has no key", s, f.Name)
			}
		}
	}
}

// Any file is either read, or refused with one of its lines.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "testdata/good.yml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := decode(data, "benchwatch.yml", Default())
		var mistake *Error
		if err != nil && (!errors.As(err, &mistake) || mistake.Problem == "") {
			t.Fatalf("%T %v", err, err)
		}
		if mistake != nil && (mistake.Line < 1 || mistake.Line > 1+bytes.Count(data, []byte("\n"))+bytes.Count(data, []byte("\r"))) {
			t.Errorf("line %d of %q", mistake.Line, data)
		}
	})
}

func ExampleLoad() {
	_, err := Load("testdata/bad/number_as_text.yml")
	fmt.Println(err)
	// Output:
	// testdata/bad/number_as_text.yml:3: runs.max_live: expected a whole number, found "many"
}

// The example in the documentation works.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(string(doc), "```yaml\n")
	example, _, end := strings.Cut(example, "```")
	if !ok || !end {
		t.Fatal("no example found")
	}
	path := filepath.Join(t.TempDir(), "benchwatch.yml")
	example = regexp.MustCompile(`(\w+_file): \S+?([,}\n])`).ReplaceAllString(example, "$1: "+path+"$2") // an existing file
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
