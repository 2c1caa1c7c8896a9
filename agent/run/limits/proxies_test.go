package limits

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
)

// proxied is a run of 16 clients through a proxy with 4 connections, whose servers execute 3 statements at a time.
func proxied(change func(*Evidence)) *Evidence {
	return quiet(func(e *Evidence) {
		e.Threads, e.Throughput = 16, 200
		e.Servers = []ServerEvidence{server("n1", map[string]float64{"running": 3})}
		e.Proxies = []ProxyEvidence{{Name: "px", Engine: "haproxy", Samples: 120, Queue: 12, Limit: 4, Thread: Level{0.1, 0}, Cores: 0.2}}
		change(e)
	})
}

func TestQueueOfProxy(t *testing.T) {
	v := Find(proxied(func(*Evidence) {}))
	if v.First() != cause.ProxyQueue || v.Findings[0].Share != 0.75 || v.Findings[0].Title() != "queue of px" {
		t.Fatalf("%+v", v.Findings)
	}
	if text := v.Findings[0].Evidence; !strings.Contains(text, "one of its 4 connections") || !strings.Contains(text, "12 of 16") {
		t.Error(text)
	}
	few := Find(proxied(func(e *Evidence) { e.Proxies[0].Samples = LeastSamples - 1 }))
	if few.First() == cause.ProxyQueue {
		t.Error("found by too few samples")
	}
	none := Find(proxied(func(e *Evidence) { e.Proxies[0].Queue = 1 }))
	if none.First() == cause.ProxyQueue {
		t.Error("found for a short queue")
	}
}

func TestThreadOfProxy(t *testing.T) {
	busyThread := func(e *Evidence) { e.Proxies[0].Queue, e.Proxies[0].Thread = 0, Level{0.98, 0.95} }
	v := Find(proxied(busyThread))
	if v.First() != cause.ProxyThread || v.Findings[0].Title() != "one thread of px" {
		t.Errorf("%+v", v.Findings)
	}
	if !strings.Contains(v.Findings[0].Test, "nbthread") {
		t.Error(v.Findings[0].Test)
	}
	full := Find(proxied(func(e *Evidence) {
		busyThread(e)
		e.shared(ThreadsEvidence{2, 2, 0, 8}, ThreadsEvidence{6, 4, 0, 8}).CPU = Level{0.99, 0.98}
	}))
	if full.First() == cause.ProxyThread {
		t.Error("the machine of the proxy is full, and its thread waits for a core as others do")
	}
}

// TestDivision guards that the parts add up to the time of a transaction.
func TestDivision(t *testing.T) {
	for _, queue := range []float64{0, 2, 12, 20, math.NaN()} {
		v := Find(proxied(func(e *Evidence) {
			e.Proxies[0].Queue = queue
			e.Machines[0].Tool = ThreadsEvidence{0.5, 0.1, 0, 8}
		}))
		d := v.Division
		if d == nil || d.Transaction != 16.0/200 {
			t.Fatalf("%v: %+v", queue, d)
		}
		if sum := d.Client + d.Queue + d.Proxy + d.Server; math.Abs(sum-d.Transaction) > 1e-9 {
			t.Errorf("%v: the parts add up to %v s of %v s: %+v", queue, sum, d.Transaction, d)
		}
		if queue == 12 && (math.Abs(d.Queue-0.06) > 1e-9 || math.Abs(d.Server-0.015) > 1e-9 || math.Abs(d.CPU-0.001) > 1e-9) {
			t.Errorf("%+v", d)
		}
	}
	if v := Find(proxied(func(e *Evidence) { e.Servers[0].Sessions = nil })); v.Division != nil {
		t.Error("a division without the servers' sessions")
	}
}
