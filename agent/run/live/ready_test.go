package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/galera"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestAwaitReady guards each wait: for a node that is down, then joins, then has to catch up with the position in the
// first frame.
func TestAwaitReady(t *testing.T) {
	targets := []engine.Target{{Name: "n1", Cluster: "c"}, {Name: "n2", Cluster: "c"}, {Name: "other"}}
	servers := &rundir.Servers{Targets: []rundir.Server{{Target: "n1", Cluster: "c", Connected: true}, {Target: "n2", Cluster: "c"}}}
	start := time.Now()
	at := func(seconds int, second engine.Status, err error) engine.Frame {
		tick := start.Add(time.Duration(seconds) * time.Second)
		sample := func(i int, status engine.Status, err error) engine.Sample {
			s := engine.Sample{Target: &targets[i], Tick: tick, Asked: tick, Answered: tick, Err: err}
			if err == nil {
				s.Status = &status
			}
			return s
		}
		return engine.Frame{Tick: tick, Samples: []engine.Sample{
			sample(0, engine.Status{Position: galera.Position{Cluster: "u", Seqno: uint64(100 * seconds)}, Replicating: true}, nil), sample(1, second, err),
		}}
	}
	position := func(n uint64) engine.Status {
		return engine.Status{Position: galera.Position{Cluster: "u", Seqno: n}, Replicating: true}
	}
	frames := make(chan engine.Frame, 9)
	frames <- at(1, engine.Status{}, errors.New("down"))
	frames <- at(2, engine.Status{NotReady: "joining"}, nil)
	frames <- at(3, position(50), nil)
	frames <- at(4, position(150), nil)
	var got []string
	if err := AwaitReady(t.Context(), frames, start, targets, servers, func(what string) { got = append(got, what) }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"n2 does not answer", "n2 is joining", "n2 has not caught up"}, got); d != "" {
		t.Error(d)
	}

	frames <- at(5, engine.Status{}, errors.New("down"))
	ctx, cancel := context.WithCancel(t.Context())
	err := AwaitReady(ctx, frames, start, targets, servers, func(string) { cancel() })
	defer cancel()
	if !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "n2 does not answer") {
		t.Errorf("%v", err)
	}
}
