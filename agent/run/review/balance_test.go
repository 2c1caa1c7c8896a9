package review

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry" // declares the measures of the engines
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestBalances guards the shares of servers, without proxies and foreign servers, and the shares of shards, which each
// of two routers reports. A load is left out if one server has no value for it.
func TestBalances(t *testing.T) {
	metrics := measure.Metrics()
	shards := metrics[slices.IndexFunc(metrics, func(m *measure.Metric) bool { return m.Name == "mongodb_shard_operations_total" })]
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	end := start.Add(10 * time.Second)
	dir, claim, err := rundir.Create(t.TempDir(), rundir.Meta{
		ID:      "one",
		Timing:  rundir.Timing{StartedAt: start},
		End:     rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing: rundir.Closing{ClosedAt: &end},
		Placement: rundir.Placement{Servers: &rundir.Servers{Targets: []rundir.Server{
			{Target: "a"}, {Target: "b"}, {Target: "r1"}, {Target: "r2"}, {Target: "proxy", Proxy: true},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	recorder := record.NewRecorder(dir, start)
	for second := range 11 {
		at := start.Add(time.Duration(second) * time.Second)
		f := engine.Frame{Tick: at, Interval: time.Second}
		rates := map[string]float64{"a": 30, "b": 10, "r1": 40, "r2": 5, "proxy": 1000}
		for _, name := range []string{"a", "b", "r1", "r2", "proxy"} {
			rate := rates[name]
			s := &engine.Status{Role: "primary"}
			s.Set(engine.QueriesTotal, rate*float64(second))
			if name == "a" {
				s.Set(engine.BytesTotal, 1000*float64(second), "sent")
			}
			if strings.HasPrefix(name, "r") {
				s.Role = "router"
				for shard, of := range map[string]float64{"s1": 0, "s2": 20, "s3": 100} {
					s.Set(shards, of*float64(second), shard, "db.c", "reads")
				}
			}
			f.Samples = append(f.Samples, engine.Sample{Target: &engine.Target{Name: name, Engine: "mongodb"}, Tick: at, Asked: at, Answered: at, Status: s})
		}
		if err := recorder.Record(f); err != nil {
			t.Fatal(err)
		}
	}
	recorder.Close()
	h, err := record.Read(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := balances(h)
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	servers, byShard := all[0], all[1]
	if len(servers.Parts) != 2 || servers.Parts[0].Name != "a" || math.Abs(servers.Parts[0].Share-0.75) > 1e-9 || math.Abs(servers.Imbalance-0.5) > 1e-9 {
		t.Errorf("%+v", servers)
	}
	if byShard.By != "shard" || len(byShard.Parts) != 3 || byShard.Parts[2].PerSecond != 100 || byShard.Parts[0].Share != 0 || math.Abs(byShard.Imbalance-1.5) > 1e-9 {
		t.Errorf("%+v", byShard)
	}
	var b bytes.Buffer
	if err := BalanceTable(all).Text(&b); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{"server a 75 %", "imbalance of servers 50 %", "shard s3 83 %", "imbalance of shards 150 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
	rows := []Row{{Balances: all}}
	var names []string
	for _, m := range balanceMeasures(rows) {
		names = append(names, m.Name)
		if v := m.Value(&rows[0]); v != 0.5 && v != 1.5 {
			t.Errorf("%s is %v", m.Name, v)
		}
	}
	if got := strings.Join(names, ", "); got != "imbalance operations, imbalance shard operations" {
		t.Error(got)
	}
}
