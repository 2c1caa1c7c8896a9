package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// TestExportedIntervals guards that the lines of intervals, which JSONLines writes by itself, are those of
// package encoding/json for an ExportLine.
func TestExportedIntervals(t *testing.T) {
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
	var all bytes.Buffer
	if err := JSONLines(t.Context(), &all, []*record.History{h}); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(all.String()) {
		if strings.HasPrefix(line, `{"kind":"interval"`) {
			got.WriteString(line)
		}
	}
	if got.Len() == 0 || got.String() != want.String() {
		t.Errorf("%s\nwant\n%s", got.String(), want.String())
	}
}
