package imports

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// lay copies recorded dumps of a MariaDB 10.11 around a run of sysbench, each under a name.
func lay(t *testing.T, names map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, recorded := range names {
		data, err := os.ReadFile(filepath.Join("testdata", "status", recorded))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func beside(path string, alone bool) (*Server, error) {
	folder, err := List(filepath.Dir(path), registry.Tools)
	if err != nil {
		return nil, err
	}
	return folder.Server(filepath.Base(path), alone)
}

// All three forms of the output give the same counters. Their difference is the run's 1279 transactions.
func TestBeside(t *testing.T) {
	for _, names := range []map[string]string{
		{"run-8.status.before.txt": "before.tsv", "run-8.status.after.txt": "after.tsv", "run-8.variables.txt": "variables.tsv"},
		{"run-8_global_status_start.tsv": "before.vertical", "run-8_global_status_end.tsv": "after.table", "mysql-variables-run-8.log": "variables.tsv"},
		{"status.1": "before.tsv", "status.2": "after.table", "variables.log": "variables.tsv"},
		{"mysqladmin_extended-status_pre.out": "before.vertical", "mysqladmin_extended-status_post.out": "after.tsv", "vars": "variables.tsv"},
	} {
		folder := lay(t, names)
		s, err := beside(filepath.Join(folder, "run-8.log"), true)
		if err != nil || s == nil || s.Before == nil {
			t.Errorf("%v: %+v, %v", names, s, err)
			continue
		}
		if len(s.Paths) != 3 || s.Name != "vm" || s.Flavour != "mariadb" || s.Settings["innodb_buffer_pool_size"] != "134217728" {
			t.Errorf("%v: %+v", names, s)
		}
		before, _ := s.Before.Get(engine.CommitsTotal)
		after, _ := s.After.Get(engine.CommitsTotal)
		if after-before != 1279 {
			t.Errorf("%v: %v to %v commits", names, before, after)
		}
		if _, known := s.After.Get(engine.ThreadsRunning); known {
			t.Errorf("%v: a value of an instant after the run is used", names)
		}
	}
}

// Variables of several logs have the first words of their names. The longest such name is
// used, and never a status, which is of no single run.
func TestBesideSeveralLogs(t *testing.T) {
	folder := lay(t, map[string]string{
		"Tier12G.vars.txt": "variables.tsv", "Tier12G.status.txt": "before.tsv", "Tier12G_RO.vars.txt": "run.log",
		"Tier12.vars.txt": "variables.tsv", "vars.txt": "variables.tsv",
	})
	for name, want := range map[string]string{
		"Tier12G_RW_16th.sysbench.txt": "Tier12G.vars.txt", "Tier2G_RW_16th.sysbench.txt": "", "Tier12G_RO_16th.sysbench.txt": "",
	} {
		s, err := beside(filepath.Join(folder, name), false)
		switch {
		case err != nil || (s != nil) != (want != ""):
			t.Errorf("%s: %+v, %v", name, s, err)
		case s != nil && (len(s.Paths) != 1 || filepath.Base(s.Paths[0]) != want || s.Settings["max_connections"] == "" || s.Before != nil || s.Problem != ""):
			t.Errorf("%s: %+v", name, s)
		}
	}
	own := filepath.Join(folder, "Tier12G_RW_16th.vars.txt")
	if err := os.WriteFile(own, []byte("version\t8.0.1\nmax_connections\t7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := beside(filepath.Join(folder, "Tier12G_RW_16th.sysbench.txt"), false); err != nil || s == nil || len(s.Paths) != 1 || s.Paths[0] != own {
		t.Errorf("the log's own variables are not preferred: %+v, %v", s, err)
	}
}

// Counters that can't be compared are left out, with the reason.
func TestBesideProblems(t *testing.T) {
	for _, c := range []struct {
		names   map[string]string
		problem string
	}{
		{map[string]string{"status.before": "after.tsv", "status.after": "before.tsv"}, "the uptime"},
		{map[string]string{"status": "after.tsv"}, "there is only one status"},
		{map[string]string{"variables": "variables.tsv"}, ""},
	} {
		s, err := beside(filepath.Join(lay(t, c.names), "run.log"), true)
		if err != nil || s == nil || s.Before != nil || !strings.HasPrefix(s.Problem, c.problem) || c.problem == "" && s.Problem != "" {
			t.Errorf("%v: %+v, %v", c.names, s, err)
		}
	}
	folder := lay(t, map[string]string{"other.status.before": "before.tsv", "status": "run.log", "run.variables": "run.log"})
	if s, err := beside(filepath.Join(folder, "run.log"), false); err != nil || s != nil {
		t.Errorf("%+v, %v", s, err)
	}
	for name, want := range map[string]bool{"other.status.before": true, "status": false, "run.variables": false, "none": false} {
		if got := IsBeside(filepath.Join(folder, name)); got != want {
			t.Errorf("%s is a dump: %v", name, got)
		}
	}
}

// Whatever a file with such a name contains, it does no harm.
func FuzzRead(f *testing.F) {
	f.Add("Variable_name\tValue\nUptime\t1\nQuestions\t2\n")
	f.Add("| version | 8 |\n| max_connections | 1 |\n")
	f.Add("Variable_name: Uptime\n        Value: 1\nVariable_name: Uptime")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "status.before")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := beside(filepath.Join(filepath.Dir(path), "run.log"), true)
		if err == nil && s != nil && len(s.Paths) == 0 {
			t.Error("something of no file")
		}
	})
}

// Only regular files are opened: a pipe would wait for a writer.
func TestPipeIsNoDump(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.status.before")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if IsBeside(path) {
		t.Error("a pipe is a dump")
	}
	if s, err := beside(filepath.Join(filepath.Dir(path), "run.log"), true); s != nil || err != nil {
		t.Errorf("%+v %v", s, err)
	}
}
