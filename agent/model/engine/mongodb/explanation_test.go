package mongodb

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestQueriesWithoutIndex guards that documents examined are a cause only far beyond those returned, and only as far
// as their time explains the servers' CPU.
func TestQueriesWithoutIndex(t *testing.T) {
	for name, c := range map[string]struct {
		examined, returned, foreign float64
		want                        bool
	}{
		"scans":       {40e6, 2000, 0, true},
		"an index":    {2000, 2000, 0, false},
		"all of them": {40e6, 40e6, 0, false}, // a large result
		"other load":  {40e6, 2000, 0.6, false},
	} {
		v := &cause.View{Seconds: 20, Threads: 4, Throughput: 100, ServerCores: 1, ForeignShare: c.foreign, Record: &causetest.Record{
			Over: map[*measure.Measure][]float64{engine.QueryRate: {100, 100}}, Grown: map[*measure.Measure]float64{examined: c.examined, returned: c.returned, scans: 2000},
		}}
		found, is := withoutIndex(v)
		if is != c.want || is && (found.Part != 1 || !strings.Contains(found.Evidence, "2000 queries read a whole collection")) {
			t.Errorf("%s: %v %+v", name, is, found)
		}
	}
}

// TestCauses guards causes of MongoDB with composed numbers, and that they are silent where it is too little.
func TestCauses(t *testing.T) {
	type over = map[*measure.Measure][]float64
	type grown = map[*measure.Measure]float64
	run := func(o over, g grown, shardsOf map[string]float64) *cause.View {
		return &cause.View{Limit: cause.Latches, Share: 0.5, Seconds: 20, Threads: 10, Throughput: 100, Target: "m1",
			Record: &causetest.Record{Over: o, Grown: g, By: map[*measure.Measure]map[string]float64{targeted: shardsOf}}}
	}
	rate := []float64{100, 100}
	for name, c := range map[string]struct {
		find func(*cause.View) (cause.Found, bool)
		view *cause.View
		part float64 // 0: silent
		text string
	}{
		"few tickets":           {fewTickets, run(over{queued: {4, 4}, usedTickets: {4.9, 4.9}, readTickets: {5}, writeTickets: {128}}, nil, nil), 0.8, "waited for one of 5 tickets of m1"},
		"free tickets":          {fewTickets, run(over{queued: {4, 4}, usedTickets: {4.9, 4.9}, readTickets: {128}, writeTickets: {128}}, nil, nil), 0, ""},
		"unknown tickets":       {fewTickets, run(over{queued: {4, 4}}, nil, nil), 0, ""},
		"long checkpoints":      {longCheckpoints, run(over{cacheDirty: {0.2}}, grown{written: 8}, nil), 0.4, "wrote checkpoints for 8 s"},
		"short checkpoints":     {longCheckpoints, run(nil, grown{written: 0.5}, nil), 0, ""},
		"plans":                 {noPlanCached, run(over{engine.QueryRate: rate}, grown{plans: 1900, planning: 60, spent: 100}, nil), 0.6, "tried several plans for 1900 of 2000 operations"},
		"plans that are kept":   {noPlanCached, run(over{engine.QueryRate: rate}, grown{plans: 19, planning: 0.1, spent: 100}, nil), 0, ""},
		"all shards":            {scattered, run(over{shards: {4}}, nil, map[string]float64{"all": 90, "one": 10}), 0.675, "sent 90 of 100 operations to several or all of the 4 shards"},
		"one shard":             {scattered, run(over{shards: {4}}, nil, map[string]float64{"all": 9, "one": 91}), 0, ""},
		"new connections":       {connecting, run(over{engine.OpenedConnections: {300}}, nil, nil), 0.6, "300 connections a second, 3 for each transaction"},
		"connections that stay": {connecting, run(over{engine.OpenedConnections: {0.2}}, nil, nil), 0, ""},
	} {
		found, is := c.find(c.view)
		if is != (c.part > 0) || is && (math.Abs(found.Part-c.part) > 0.01 || !strings.Contains(found.Evidence, c.text)) {
			t.Errorf("%s: %v %+v, want %v", name, is, found, c.part)
		}
	}
}
