package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestExportLines guards that the lines of intervals and samples, which JSONLines writes by itself, equal what package
// encoding/json writes for an ExportLine.
func TestExportLines(t *testing.T) {
	h := recorded.Read(t, recorded.Galera(t))
	h.Snapshot.Meta.ID = `a "run" & more`
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	if err := h.EachInterval(t.Context(), func(v *ingest.Intervals) error {
		for i, elapsed := range v.Elapsed {
			o := ExportLine{Kind: "interval", Run: h.Snapshot.Meta.ID, Time: timeOf(h, elapsed), Elapsed: elapsed, Phase: phaseOf(v.Warmup[i]),
				Length: series.Of(v.At(ingest.Column{Kind: ingest.Length}, i)), Threads: series.Of(v.At(ingest.Column{Measure: tool.Threads}, i)),
				Rates: map[string]float64{}, Latency: map[string]map[string]float64{}}
			for _, n := range tool.Numbers() {
				o.Numbers.Set(n.Measure, series.Of(v.At(ingest.Column{Measure: n.Measure}, i)))
			}
			for _, c := range v.Of(tool.Throughput) {
				if x := v.At(c, i); series.IsKnown(x) {
					o.Rates[c.Operation] = x
				}
			}
			for _, c := range v.Of(tool.HeadlineLatency) {
				if x := v.At(c, i); series.IsKnown(x) {
					if o.Latency[c.Operation] == nil {
						o.Latency[c.Operation] = map[string]float64{}
					}
					o.Latency[c.Operation][c.Stat] = x
				}
			}
			if err := e.Encode(o); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.EachSample(t.Context(), func(servers []*record.ServerRows) error {
		for _, s := range servers {
			for i := s.Begin; i < len(s.Elapsed); i++ {
				o := ExportLine{Kind: "status", Run: h.Snapshot.Meta.ID, Time: timeOf(h, s.Elapsed[i]), Elapsed: s.Elapsed[i],
					Target: s.Target, Engine: s.Engine, Cluster: s.Cluster, Role: s.RoleAt.At(i), Restarts: series.Of(s.At(engine.RestartsTotal.Name, i)),
					LagSeconds:      series.Of(s.At(engine.ReplicationLagSeconds.Name, i)),
					LagTransactions: series.Of(s.At(engine.ReplicationLagTransactions.Name, i)), Values: map[string]float64{}}
				if up := s.Up(i); s.Sampled(i) {
					o.Up = &up
				}
				for _, name := range s.Names() {
					if x := s.At(name, i); series.IsKnown(x) {
						o.Values[name] = x
					}
				}
				if err := e.Encode(o); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if err := JSONLines(t.Context(), &all, []*record.History{h}); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(all.String()) {
		if strings.HasPrefix(line, `{"kind":"interval"`) || strings.HasPrefix(line, `{"kind":"status"`) {
			got.WriteString(line)
		}
	}
	if got.Len() == 0 || got.String() != want.String() {
		t.Errorf("%s\nwant\n%s", got.String(), want.String())
	}
}
