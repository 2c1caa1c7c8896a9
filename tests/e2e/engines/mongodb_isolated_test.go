//go:build mongodb

package engines

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// TestMongoDBIsolated guards what is reported about a primary that the agent reaches but the other members do not: it
// is not the source beside its successor, and its lag grows until it is back. Needs root.
func TestMongoDBIsolated(t *testing.T) {
	for _, version := range mongoVersions {
		t.Run(version, func(t *testing.T) { isolated(t, version) })
	}
}

func isolated(t *testing.T, version string) {
	apart, err := servers.NewNamespace()
	if err != nil {
		t.Skipf("no network of its own for a server: %v", err)
	}
	t.Cleanup(func() { must(t, apart.Close()) })
	s := startWith(t, servers.MongoDB, servers.Options{Servers: 3, Version: version, Auth: true})
	level := func(f engine.Frame) bool {
		return rolesAre("primary", "secondary", "arbiter")(f) && f.Samples[1].LagSeconds.Known && f.Samples[1].LagSeconds.Value < 0.5
	}
	targets := s.mongoTargets(t, "monitor")
	_, w := sample(t, targets)
	w.until("level", 60*time.Second, level) // what the secondary lacks would be lost
	must(t, s.Kill(1))
	link := func(from *servers.Namespace, listen string, to *servers.Namespace, address string) *servers.Link {
		l, err := servers.NewLink(from, listen, to, address)
		must(t, err)
		t.Cleanup(l.Close)
		return l
	}
	// The members, and the test, know server 1 by its address. The agent has a separate path to it.
	between := []*servers.Link{link(nil, s.Address(1), apart, s.Address(1)), link(apart, s.Address(2), nil, s.Address(2)), link(apart, s.Address(3), nil, s.Address(3))}
	port, err := servers.FreePorts(1)
	must(t, err)
	targets = slices.Clone(targets)
	targets[0].Address = fmt.Sprintf("127.0.0.1:%d", port+1)
	link(nil, targets[0].Address, apart, s.Address(1))
	must(t, apart.Start(func() error { return s.Rejoin(t.Context(), 1) }))

	_, w = sample(t, targets)
	w.until("the primary is back", 60*time.Second, level)
	for _, l := range between {
		l.Cut()
	}
	// Without writes to the old primary: a rollback can take minutes.
	check := func(f engine.Frame) {
		t.Helper()
		switch a, b := &f.Samples[0], &f.Samples[1]; {
		case !a.Up() || !b.Up():
			t.Errorf("a server does not answer:\n%s", describe(f))
		case a.Source && b.Source:
			t.Errorf("two sources:\n%s", describe(f))
		}
	}
	w.until("another primary", 40*time.Second, func(f engine.Frame) bool {
		check(f)
		return rolesAre("secondary", "primary", "arbiter")(f)
	})
	stop := s.mongoLoad(t, 1, writeconcern.W1())
	behind := 0.0
	w.until("its lag grows", 40*time.Second, func(f engine.Frame) bool {
		check(f)
		if lag := f.Samples[0].LagSeconds; lag.Known && f.Samples[1].Source {
			behind = max(behind, lag.Value)
		}
		return behind > 3
	})
	for _, l := range between {
		l.Mend()
	}
	w.until("it is primary again", 90*time.Second, func(f engine.Frame) bool {
		check(f)
		return level(f)
	})
	if stop() == 0 {
		t.Error("nothing was written")
	}
}
