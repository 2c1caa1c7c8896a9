package live

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/launch"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestStatementsAreRead guards that only a run's own servers are asked, once when the run
// begins and once when the tool has ended, and that the run is closed after that.
func TestStatementsAreRead(t *testing.T) {
	data := t.TempDir()
	dir, claim, err := rundir.Create(data, rundir.Meta{
		ID:        "one",
		Benchmark: rundir.Benchmark{Tool: "sysbench"},
		Timing:    rundir.Timing{StartedAt: time.Now()},
		Placement: rundir.Placement{Selection: &rundir.Selection{Clusters: []string{"blue"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(claim.Release)
	gate, open := fifo(t)
	p, err := launch.Start(dir, []string{"sh", "-c", script(t, banner) + "; cat " + gate})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]int{}
	begun := make(chan struct{})
	w := watch(t, Options{
		DataDir: data, Topology: serversOf(twoClusters...), Bounds: func() Bounds { return Bounds{DrainTimeout: time.Millisecond, MaxLive: 1, MaxKept: 1} },
		Sampler: statementsSampler(func(_ context.Context, targets map[string]*engine.StatementReading) map[string]engine.StatementsAnswer {
			mu.Lock()
			defer mu.Unlock()
			answers := map[string]engine.StatementsAnswer{}
			for name, before := range targets {
				asked[name]++
				r := &engine.StatementReading{At: time.Now(), UptimeSeconds: 1e6 + float64(time.Now().Unix())}
				switch {
				case before != nil:
					r.Statements = []engine.Statement{{Digest: "a", Text: "SELECT ?", StatementCounts: engine.StatementCounts{Executions: 17, Seconds: 1}}}
				case name == "b2":
					answers[name] = engine.StatementsAnswer{Err: engine.MissingError("a right")}
					continue
				default:
					r.Statements = []engine.Statement{{Digest: "a", StatementCounts: engine.StatementCounts{Executions: 10}}}
				}
				answers[name] = engine.StatementsAnswer{StatementReading: r}
			}
			if len(begun) == 0 && asked["b1"] == 1 {
				defer close(begun)
			}
			return answers
		}),
	})
	select {
	case <-begun:
	case <-time.After(30 * time.Second):
		t.Fatal("no reading at the beginning")
	}
	open()
	if _, err := p.Wait(nil); err != nil {
		t.Fatal(err)
	}
	w.until("one", "over", func(s ingest.Snapshot) bool { return s.Phase == ingest.Over })
	w.stop()
	all, err := record.ReadStatements(dir)
	if err != nil || len(all) != 2 || all[0].Target != "b1" || len(all[0].Statements) != 1 || all[0].Statements[0].Executions != 7 || all[1].Error != "a right" {
		t.Errorf("%v %+v", err, all)
	}
	var names []string
	for name, n := range asked {
		if want := map[string]int{"b1": 2, "b2": 1}[name]; n != want {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		t.Errorf("asked %v", asked)
	}
	if _, err := record.ReadStatementsBegin(dir); err == nil || strings.Contains(err.Error(), "decode") || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// statementsSampler is a Sampler that only reads counters by statement.
type statementsSampler func(context.Context, map[string]*engine.StatementReading) map[string]engine.StatementsAnswer

func (statementsSampler) ReadSettings()       {}
func (statementsSampler) SampleNow()          {}
func (statementsSampler) Late() time.Duration { return 0 }
func (s statementsSampler) ReadStatements(
	ctx context.Context, targets map[string]*engine.StatementReading,
) map[string]engine.StatementsAnswer {
	return s(ctx, targets)
}
