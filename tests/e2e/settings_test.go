//go:build e2e

package e2e

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/tests/e2e/galera"
)

// The settings that the servers had when a run began are in its directory, as are changes
// during the run, and the report shows both.
func TestSettings(t *testing.T) {
	const id = "settings"
	const name = "innodb_lock_wait_timeout"
	a := startAgent(t, env.Targets())
	before := sql(t, 1, "SELECT @@GLOBAL."+name)[0]
	t.Cleanup(func() { sql(t, 1, "SET GLOBAL "+name+"="+before) })
	sql(t, 1, "SET GLOBAL "+name+"=41")
	wrapper := a.Run(t, id, env.Load(60)...)
	dir := rundir.At(a.DataDir, id)
	recorded := func() record.SettingsHistory { // of servers, not of machines
		t.Helper()
		all, err := record.ReadSettings(dir)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(s record.TargetSettings) bool { return strings.HasPrefix(s.Target, record.MachineSettings) })
	}
	agents.Wait(t, 30*time.Second, "settings of all nodes", func() error {
		if len(recorded()) < galera.Nodes {
			return errors.New("there are fewer")
		}
		return nil
	})
	for _, s := range recorded() {
		want := before
		if s.Target == "n1" {
			want = "41"
		}
		if s.Settings[name] != want || s.Settings["gcache.size"] != "134217728" || s.Settings["wsrep_slave_threads"] == "" || s.Version == "" {
			t.Errorf("%s: %v", s.Target, s)
		}
	}
	sql(t, 1, "SET GLOBAL "+name+"=42")
	agents.Wait(t, 30*time.Second, "the change", func() error {
		for _, s := range recorded() {
			if len(s.Changes) == 1 && s.Target == "n1" && s.Changes[0].Before == "41" && s.Changes[0].After == "42" {
				return nil
			}
		}
		return errors.New("not recorded")
	})
	wrapper.Signal(t, syscall.SIGINT)
	wrapper.Status(t, 60*time.Second)

	out, err := exec.Command(env.Binary, "report", id, "--data-dir="+a.DataDir, "--format=markdown").CombinedOutput()
	if err != nil {
		t.Fatalf("report: %v\n%s", err, out)
	}
	for _, want := range []string{"n1: " + name + " was changed from 41 to 42", "| " + name + " | 41 | " + before + " |"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}
