package proxy

import (
	"slices"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// said is what a proxy with two servers says at one second.
func said(second int, queue float64, down []string, failed float64) evidence.Answer {
	s := &engine.Status{Version: "3.0"}
	s.Set(QueueLength, queue, "rw")
	s.Set(PoolLimit, 10, "rw")
	SetBackends(s, States{Up: []string{"up"}, Down: []string{"down"}}, []Backend{{Address: "a:1", Role: "rw", State: state(down, "a:1")}, {Address: "b:1", Role: "rw", State: state(down, "b:1")}})
	s.Set(DownsTotal, failed, "a:1", "rw")
	a := engine.Testimony(s)
	a.Target, a.Engine, a.At = "p1", "proxy", time.Unix(int64(second), 0)
	return *a
}

func state(down []string, address string) string {
	if slices.Contains(down, address) {
		return "down"
	}
	return "up"
}

func TestProxyStalls(t *testing.T) {
	locked := func(second int) evidence.Answer {
		a := evidence.Answer{Target: "db1", Engine: "db", Active: 10, At: time.Unix(int64(second), 0)}
		for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
			a.Block(id, "99", evidence.RowLock, "t")
		}
		a.Wait(evidence.RowLock, 10)
		return a
	}
	look := func(answers ...evidence.Answer) evidence.Moment { return evidence.Moment{Answers: answers} }
	for name, c := range map[string]struct {
		moments      []evidence.Moment
		reason, text string
	}{
		"calm": {[]evidence.Moment{look(said(0, 0, nil, 0)), look(said(1, 0, nil, 0))}, evidence.Unknown, "not explained by what was captured"},
		"a queue": {[]evidence.Moment{look(said(0, 25, nil, 0)), look(said(1, 26, nil, 0))},
			"queue of a proxy", "26 clients of 32 waited in the queue of p1: 26 clients of rw, which allows 10 connections"},
		"a queue, since the server is blocked": {[]evidence.Moment{look(said(0, 22, nil, 0), locked(0)), look(said(1, 22, nil, 0), locked(1))},
			"row lock", "10 of 32 clients (22 more were in the queue of a proxy) waited for the row lock that session 99 held"},
		"no server": {[]evidence.Moment{look(said(0, 0, []string{"a:1", "b:1"}, 1)), look(said(1, 0, []string{"a:1", "b:1"}, 1))},
			"servers behind a proxy down", "p1 had no server to use: down were a:1, b:1 of rw"},
		"a server that fails": {[]evidence.Moment{look(said(0, 0, []string{"a:1"}, 1)), look(said(1, 0, []string{"a:1"}, 3))},
			"servers behind a proxy down", "p1 marked a:1 of rw as down, with 2 errors and failed checks per second"},
		"a server that has been down for long": {[]evidence.Moment{look(said(0, 0, []string{"a:1"}, 7)), look(said(1, 0, []string{"a:1"}, 7))},
			evidence.Unknown, "not explained by what was captured"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := evidence.Explain(32, 5, c.moments); got.Reason != c.reason || got.Text != c.text {
				t.Errorf("%s: %s", got.Reason, got.Text)
			}
		})
	}
}
