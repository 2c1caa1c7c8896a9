package review

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestMachineLimits guards what is reported about a machine whose limits are below the tool's needs, and that
// sufficient limits and other machines' limits are not reported.
func TestMachineLimits(t *testing.T) {
	of := func(role rundir.HostRole, facts map[string]string) string {
		h := &record.History{Hosts: []*record.Host{{
			Server:  &record.Server{ServerFacts: &record.ServerFacts{Target: "vm"}},
			Machine: rundir.Machine{Host: "vm", Roles: []rundir.HostRole{role}},
		}}}
		h.Settings = record.SettingsHistory{{ServerSettings: record.ServerSettings{Target: record.MachineSettings + "vm", Settings: facts}}}
		j := &judge{h: h, row: &Row{Threads: 200}}
		j.machine()
		var lines []string
		for _, f := range j.findings {
			if f.Level != Warning {
				t.Errorf("%+v", f)
			}
			lines = append(lines, f.Text)
		}
		return strings.Join(lines, "\n")
	}
	low := map[string]string{host.OpenFiles: "200", host.Processes: "100", host.PortRange: "40000 40099", host.Governor: "powersave"}
	got := of(rundir.GeneratorHost, low)
	for _, want := range []string{"open 200 files (ulimit -n), too few for 200 connections", "100 threads (ulimit -u)", "had 100 ports", "governor of vm was powersave"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := of(rundir.ServerHost, low); strings.Count(got, "\n") > 0 || !strings.Contains(got, "governor") {
		t.Errorf("of a server: %s", got)
	}
	enough := map[string]string{host.OpenFiles: "1024", host.Processes: "unlimited", host.PortRange: "32768 60999", host.Governor: "performance"}
	if got := of(rundir.GeneratorHost, enough); got != "" {
		t.Error(got)
	}
}

// A machine whose roles were not recorded has none, which is not null.
func TestMachineWithoutRoles(t *testing.T) {
	data, err := json.Marshal(Machine{Machine: rundir.Machine{Host: "vm"}})
	if err != nil || !strings.Contains(string(data), `"roles":[]`) {
		t.Errorf("%s, %v", data, err)
	}
}
