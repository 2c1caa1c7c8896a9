package web

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// A generator links to its own run, which one that was imported from a log does not have.
func TestGenerators(t *testing.T) {
	members := []rundir.Member{{Host: "gen1"}, {Log: "/var/results/gen2.log", Outcome: rundir.Succeeded}}
	v := newRunView(&ingest.Snapshot{Meta: rundir.Meta{
		ID:     "g",
		Origin: rundir.Origin{Group: &rundir.Group{Name: "g", Generators: 2, Members: members}},
	}})
	if len(v.Generators) != 2 {
		t.Fatalf("%+v", v.Generators)
	}
	if first := v.Generators[0]; first.Run != "g-g1" || first.Log != "" {
		t.Errorf("%+v", first)
	}
	if second := v.Generators[1]; second.Run != "" || second.Log != "gen2.log" || second.Result != rundir.Succeeded {
		t.Errorf("%+v", second)
	}
}
