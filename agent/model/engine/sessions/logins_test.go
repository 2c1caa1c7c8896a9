package sessions

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestLogins guards what slow logins explain: by Little's law, 4 clients, 2 of them logging in at any time, 100 times a second,
// need 20 ms for that.
func TestLogins(t *testing.T) {
	run := func(checked, exchanged, tls, opened, full float64, settings map[string]string) *cause.View {
		return &cause.View{Limit: cause.Outside, Share: 0.8, Seconds: 20, Threads: 4, Throughput: 100, FullCores: full, Record: &causetest.Record{
			Over:     map[*measure.Measure][]float64{engine.OpenedConnections: {opened, opened}},
			Grown:    map[*measure.Measure]float64{mysql.Handshakes: tls * 20},
			By:       map[*measure.Measure]map[string]float64{loggingIn: {checking: checked, exchanging: exchanged}},
			Settings: settings}}
	}
	forgets := map[string]string{"skip_name_resolve": "OFF", "host_cache_size": "0"}
	for name, c := range map[string]struct {
		find func(*cause.View) (cause.Found, bool)
		view *cause.View
		part float64 // 0: silent
		text string
	}{
		"handshakes":                     {handshakes, run(20, 20, 100, 100, 1, nil), 0.625, "100 TLS handshakes a second, 1 for each transaction, and a login takes 20"},
		"no TLS":                         {handshakes, run(20, 20, 0, 100, 1, nil), 0, ""},
		"few connections":                {handshakes, run(20, 20, 2, 2, 1, nil), 0, ""},
		"names":                          {nameResolution, run(40, 0, 0, 100, 1, forgets), 0.625, "waited 20.00 ms each while the server looked up"},
		"names that are remembered":      {nameResolution, run(40, 0, 0, 100, 1, map[string]string{"skip_name_resolve": "OFF", "host_cache_size": "128"}), 0, ""},
		"names of settings not read":     {nameResolution, run(40, 0, 0, 100, 1, nil), 0, ""},
		"an account that is checked":     {authentication, run(40, 0, 0, 100, 0.1, nil), 0.625, "needed 20.00 ms each until the account was checked"},
		"the same without free cores":    {authentication, run(40, 0, 0, 100, 0.9, nil), 0, ""},
		"the same of an unknown machine": {authentication, run(40, 0, 0, 100, series.Unknown(), nil), 0, ""},
		"fast logins":                    {authentication, run(1, 0, 0, 100, 0.1, nil), 0, ""},
	} {
		found, is := c.find(c.view)
		if is != (c.part > 0) || is && (math.Abs(found.Part-c.part) > 0.01 || !strings.Contains(found.Evidence, c.text)) {
			t.Errorf("%s: %v %+v, want %v", name, is, found, c.part)
		}
	}
}

// TestRoots guards that the holder of a lock is the session at the end of the chain, only if it is certain and has held
// it for a second.
func TestRoots(t *testing.T) {
	answer := func(seconds float64, likely bool) *evidence.Answer {
		a := &evidence.Answer{Sessions: []evidence.Session{
			{ID: "1", User: "root", Idle: true, Seconds: series.Some(seconds)},
			{ID: "2", User: "dba", Statement: "ALTER TABLE t FORCE", Waits: &evidence.Wait{Kind: evidence.MetadataLock, By: []string{"1"}, Likely: likely}},
		}}
		for _, id := range []string{"3", "4"} {
			a.Sessions = append(a.Sessions, evidence.Session{ID: id, Waits: &evidence.Wait{Kind: evidence.MetadataLock, By: []string{"2"}}})
		}
		return a
	}
	for name, c := range map[string]struct {
		answer *evidence.Answer
		want   float64
	}{"a chain": {answer(5, false), 3}, "a likely holder": {answer(5, true), 0}, "a short statement": {answer(0.2, false), 0}} {
		if got := rootsOf(c.answer)["root (idle in a transaction)"]; got != c.want {
			t.Errorf("%s: %v sessions wait for it, want %v", name, got, c.want)
		}
	}
	circle := answer(5, false)
	circle.Sessions[0].Waits = &evidence.Wait{Kind: evidence.MetadataLock, By: []string{"3"}}
	if got := rootsOf(circle); len(got) != 0 {
		t.Errorf("sessions that wait for each other: %v", got)
	}
}

// TestMetadataHolder guards the part of the waits for which a holder is known.
func TestMetadataHolder(t *testing.T) {
	v := &cause.View{Limit: cause.Locks, Share: 0.8, Seconds: 20, Threads: 4, Record: &causetest.Record{
		Over: map[*measure.Measure][]float64{engine.LockSessions: {3, 3}},
		By:   map[*measure.Measure]map[string]float64{mysql.MetadataHeld: {"root (idle in a transaction)": 45, "app (SELECT)": 3}}}}
	if found, is := metadataHolder(v); !is || math.Abs(found.Part-0.8) > 0.01 || found.Of != "root (idle in a transaction)" {
		t.Errorf("%v %+v", is, found)
	}
	v.Record = &causetest.Record{Over: map[*measure.Measure][]float64{engine.LockSessions: {3, 3}}}
	if found, is := metadataHolder(v); is {
		t.Errorf("no holder was seen: %+v", found)
	}
}
