package review

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestConditions(t *testing.T) {
	row := &Row{Values: tool.Values{{Measure: tool.Throughput, Value: 900.0}}, Latency: map[string]float64{"p95": 0.101, "avg": 0.05}, FailedShare: series.Some(0.02)}
	for text, want := range map[string]bool{
		"p95>100ms": true, "p95 > 0.1s": true, "p95>101000us": false, "p95>=101ms": true, "avg<50ms": false, "avg<=5e-2s": true,
		"tps<1000": true, "tps>=1000": false, "p99>1ms": false, "errors>0": false, "max>0ms": false,
		"errors>1%": true, "errors > 2 %": false, "lag>1s": false, "flow_control>40%": false,
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if value, got := c.Met(row); got != want {
			t.Errorf("%s: %v (%s)", text, got, value)
		}
	}
	for _, text := range []string{"", "p95", "p95>", "p95>100", "tps<10ms", "latency>1ms", "p95=1ms", "p95>1..2ms", "p95>100ms,tps<1", "tps<-5%", "lag>3", "flow_control>3", "flow_control>3s", "tpmc<3%", "qqq>1"} {
		if c, err := ParseCondition(text); err == nil {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

// TestConditionOfOperations guards that a condition sees the latency of a tool that
// prints none of transactions.
func TestConditionOfOperations(t *testing.T) {
	row := &Row{Values: tool.Values{{Measure: tool.Throughput, Value: 900.0}, {Measure: tool.TpmC, Value: 100.0}}, LatencyOperation: "read", Latency: map[string]float64{"p95": 0.101}}
	for text, want := range map[string]string{"p95>100ms": "101.00 ms (read)", "tpmc<=100": "100.0", "tps<1000": "900.00"} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, met := c.Met(row); !met || got != want {
			t.Errorf("%s: %v, %q", text, met, got)
		}
	}
}

// A percentile of a group is the worst generator's.
func TestConditionOfGroup(t *testing.T) {
	row := Row{Latency: map[string]float64{"avg": 0.05, "p95_worst": 0.101}}
	c, err := ParseCondition("p95>100ms")
	if err != nil {
		t.Fatal(err)
	}
	if got, met := c.Met(&row); !met || got != "101.00 ms (worst generator's p95)" {
		t.Errorf("%v, %q", met, got)
	}
	if m, err := MeasureNamed([]Row{row}, "p95"); err != nil || m.Name != "worst generator's p95" {
		t.Errorf("%q, %v", m.Name, err)
	}
}

// TestConditionsOfServers guards that a condition sees the worst of the servers, and
// no more of them than are known.
func TestConditionsOfServers(t *testing.T) {
	row := &Row{Values: tool.Values{{Measure: tool.Throughput, Value: 900.0}}, Servers: []Server{
		{Target: "n1", Values: []Value{{Measure: engine.FlowControl, Value: 0.1}}},
		{Target: "n2", Values: []Value{{Measure: engine.FlowControl, Value: 0.45}, {Measure: engine.LagSeconds, Value: 12}}},
	}}
	for text, want := range map[string]string{
		"lag>10s": "12.00 s", "flow_control>40%": "45 %", "drain>1s": "", "lag>12s": "",
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, met := c.Met(row); met != (want != "") || met && got != want {
			t.Errorf("%s: %v, %q", text, met, got)
		}
	}
}
