package gtid

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// server is one server of a cluster in a test.
func server(t *testing.T, kind Kind, id, executed, own string, sources ...string) *engine.Sample {
	t.Helper()
	parse := ParseSet
	if kind == MariaDB {
		parse = ParsePosition
	}
	set, err := parse(executed)
	if err != nil {
		t.Fatal(err)
	}
	ownSet, err := parse(own)
	if err != nil {
		t.Fatal(err)
	}
	p := &Position{Kind: kind, Executed: set, Own: ownSet, Server: id, Sources: sources}
	s := &engine.Sample{Target: &engine.Target{Name: id, Cluster: "c"}, Status: &engine.Status{Position: p, Replicating: true, Role: "primary"}}
	for _, source := range sources {
		s.Status.Role = "replica"
		s.Status.Channels = append(s.Status.Channels, engine.Channel{Name: "from " + source, Source: source, Position: p, Running: true})
	}
	return s
}

// fixed is a prober of a server that always answers the same.
type fixed struct{ status *engine.Status }

func (f fixed) Probe(context.Context) (*engine.Status, error) {
	s := *f.status
	return &s, nil
}
func (fixed) Close() error { return nil }

// sampled returns the samples of one tick.
func sampled(t *testing.T, servers []*engine.Sample) []engine.Sample {
	t.Helper()
	var targets []engine.Target
	answers := map[string]*engine.Status{}
	for _, s := range servers {
		targets = append(targets, *s.Target)
		answers[s.Target.Name] = s.Status
	}
	open := func(o engine.Target) (engine.Prober, error) { return fixed{answers[o.Name]}, nil }
	sampler := engine.NewSampler(targets, open, 100*time.Millisecond, engine.Options{Logger: slog.New(slog.DiscardHandler)})
	frames, unsubscribe := sampler.Subscribe(1)
	defer unsubscribe()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sampler.Run(ctx) // it ends with ctx
	}()
	defer func() { cancel(); <-ended }()
	for f := range frames {
		if !slices.ContainsFunc(f.Samples, func(s engine.Sample) bool { return !s.Up() }) && len(f.Samples) == len(servers) {
			return f.Samples
		}
	}
	t.Fatal("no complete frame")
	return nil
}

// TestChannels guards that a replica is compared with each of its sources by that source's history: neither the
// transactions of another source nor its own make it the most advanced server.
func TestChannels(t *testing.T) {
	const x, y, z = "aaaaaaaa-0000-0000-0000-000000000001", "bbbbbbbb-0000-0000-0000-000000000002", "cccccccc-0000-0000-0000-000000000003"
	for _, c := range []struct {
		name    string
		servers []*engine.Sample
		want    []float64 // lag in transactions; negative: unknown
	}{
		{"MariaDB, one channel stopped", []*engine.Sample{
			server(t, MariaDB, "1", "1-1-100", ""), server(t, MariaDB, "2", "2-2-10000", ""), server(t, MariaDB, "3", "1-1-100,2-2-105", "", "1", "2")},
			[]float64{-1, -1, 9895}},
		{"the replica first", []*engine.Sample{
			server(t, MariaDB, "3", "1-1-90,2-2-105", "", "1", "2"), server(t, MariaDB, "1", "1-1-100", ""), server(t, MariaDB, "2", "2-2-105", "")},
			[]float64{10, -1, -1}},
		{"one domain for both sources", []*engine.Sample{
			server(t, MariaDB, "1", "0-1-100", ""), server(t, MariaDB, "2", "0-2-10000", ""), server(t, MariaDB, "3", "0-1-100", "", "1", "2")},
			[]float64{-1, -1, -1}},
		{"MySQL, two sources", []*engine.Sample{
			server(t, MySQL, x, x+":1-100", ""), server(t, MySQL, y, y+":1-50", ""), server(t, MySQL, z, x+":1-100,"+y+":1-20", z+":1-5000", x, y)},
			[]float64{-1, -1, 30}},
		{"MySQL, a history that the source lacks", []*engine.Sample{
			server(t, MySQL, x, x+":1-100", ""), server(t, MySQL, z, x+":1-40,"+y+":1-5000", "", x)},
			[]float64{-1, 60}},
		{"a chain", []*engine.Sample{
			server(t, MySQL, x, x+":1-100", ""), server(t, MySQL, y, x+":1-80", "", x), server(t, MySQL, z, x+":1-70", "", y)},
			[]float64{-1, 20, 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, s := range sampled(t, c.servers) {
				got := s.LagTransactions
				if got.Known != (c.want[i] >= 0) || got.Known && got.Value != c.want[i] {
					t.Errorf("%s: %v, want %v", s.Target.Name, got, c.want[i])
				}
				if len(s.Status.Channels) > 1 && len(s.Channels) != len(s.Status.Channels) {
					t.Errorf("%s has channels %v", s.Target.Name, s.Channels)
				}
			}
		})
	}
}
