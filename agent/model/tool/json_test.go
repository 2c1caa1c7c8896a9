package tool_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

func TestAppendJSON(t *testing.T) {
	for _, c := range []struct {
		name   string
		report tool.Report
		want   string
	}{
		{
			"start",
			tool.Report{Kind: tool.Start, Run: 1, Tool: "sysbench", Version: "1.0.20", Workload: "cpu", Threads: series.Some(16)},
			`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20","workload":"cpu","threads":16}`,
		},
		{
			"start of which little is known",
			tool.Report{Kind: tool.Start, Run: 2, Tool: "sysbench", Command: "prepare"},
			`{"kind":"start","run":2,"tool":"sysbench","command":"prepare"}`,
		},
		{
			"interval",
			tool.Report{
				Kind: tool.Interval, Run: 1, ElapsedSeconds: series.Some(10.0), IntervalSeconds: series.Some(10.0),
				Threads: series.Some(16), Phase: tool.Measure,
				Rates:     []tool.Rate{{Operation: "transaction", PerSecond: 21532.38}, {Operation: "query", PerSecond: 0}},
				Counts:    []tool.Count{{Operation: "transaction", N: 215323}},
				Latencies: []tool.Latency{{Operation: "transaction", Stat: "p95", Seconds: 0.00104}},
				Values: tool.Values{ // in another order than they are printed
					{Measure: tool.Concurrency, Value: 4}, {Measure: tool.QueueLength, Value: 3},
					{Measure: tool.ReconnectRate, Value: 0.5}, {Measure: tool.ErrorRate, Value: 0},
				},
			},
			`{"kind":"interval","run":1,"elapsed_seconds":10,"interval_seconds":10,"threads":16,"phase":"measure",` +
				`"rates":{"transaction":21532.38,"query":0},"counts":{"transaction":215323},` +
				`"latency_seconds":{"transaction":{"p95":0.00104}},"errors_per_second":0,"reconnects_per_second":0.5,` +
				`"queue_length":3,"concurrency":4}`,
		},
		{
			"summary",
			tool.Report{
				Kind: tool.Summary, Run: 1, ElapsedSeconds: series.Some(60.0029), Threads: series.Some(2),
				Counts: []tool.Count{{Operation: "error", N: 0}, {Operation: "read", N: math.MaxUint64}},
				Latencies: []tool.Latency{
					{Operation: "read", Stat: "min", Seconds: 0.00000015}, {Operation: "update", Stat: "max", Seconds: 2},
					{Operation: "read", Stat: "p99.9", Seconds: 1},
				},
				Values: tool.Values{{Measure: tool.TpmC, Value: 12.5}}, Failed: true, Message: "no",
			},
			`{"kind":"summary","run":1,"elapsed_seconds":60.0029,"threads":2,"checkpoint":false,"counts":{"error":0,"read":18446744073709551615},` +
				`"latency_seconds":{"read":{"min":1.5e-07,"p99.9":1},"update":{"max":2}},"tpmc":12.5,"failed":true,"message":"no"}`,
		},
		{
			"checkpoint without values",
			tool.Report{Kind: tool.Summary, Run: 1, Checkpoint: true},
			`{"kind":"summary","run":1,"checkpoint":true}`,
		},
		{
			"error with odd bytes",
			tool.Report{Kind: tool.Error, Run: 1, Message: "a \"b\" \\ <c>\x00\xff é\n"},
			`{"kind":"error","run":1,"message":"a \"b\" \\ <c>\u0000` + "\\ufffd é" + `\n"}`,
		},
		{
			"what is no number is left out",
			tool.Report{
				Kind: tool.Interval, Run: 1, ElapsedSeconds: series.Some(math.NaN()),
				Rates:     []tool.Rate{{Operation: "transaction", PerSecond: math.Inf(1)}},
				Latencies: []tool.Latency{{Operation: "transaction", Stat: "p95", Seconds: math.NaN()}},
			},
			`{"kind":"interval","run":1}`,
		},
		{
			"a name twice keeps its first value",
			tool.Report{
				Kind: tool.Interval, Run: 1,
				Rates:     []tool.Rate{{Operation: "read", PerSecond: 1}, {Operation: "read", PerSecond: 2}},
				Counts:    []tool.Count{{Operation: "read", N: 1}, {Operation: "read", N: 2}},
				Latencies: []tool.Latency{{Operation: "read", Stat: "p95", Seconds: 1}, {Operation: "read", Stat: "p95", Seconds: 2}},
			},
			`{"kind":"interval","run":1,"rates":{"read":1},"counts":{"read":1},"latency_seconds":{"read":{"p95":1}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := tool.AppendJSON(nil, &c.report)
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !json.Valid(got) {
				t.Error("not valid JSON")
			}
		})
	}
}
