package observer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// reports returns the answers of targets at one tick.
func reports(targets []engine.Target, answers map[string]engine.Membership) engine.Frame {
	var f engine.Frame
	for i := range targets {
		s := engine.Sample{Target: &targets[i], Err: engine.ErrNotSampled}
		if m, ok := answers[targets[i].Name]; ok {
			s.Err, s.Status = nil, &engine.Status{Membership: m, Encrypted: true}
		}
		f.Samples = append(f.Samples, s)
	}
	return f
}

// TestDiscovery guards that the members that the tool's own server lists are sampled with its login, and marked as
// addresses that only a server named; that what those list is not believed; that their number is limited, and that a
// server is sampled at one address.
func TestDiscovery(t *testing.T) {
	const own = "127.0.0.1:1"
	member := func(addresses ...string) (all []engine.Member) {
		for _, a := range addresses {
			all = append(all, engine.Member{Address: a})
		}
		return all
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("127.0.0.1:%d", 100+i))
	}
	login := rundir.Login{Target: own, Engine: "mysql", User: "app", Password: "geheim", TLS: tool.TLS{Mode: tool.TLSPreferred}, Discover: true}
	for _, c := range []struct {
		name     string
		discover bool
		rounds   []map[string]engine.Membership
		want     string
	}{
		{"members", true, []map[string]engine.Membership{{own: {Members: member(own, "127.0.0.1:2", "127.0.0.1:3")}}}, "127.0.0.1:2 127.0.0.1:3"},
		{"no discovery", false, []map[string]engine.Membership{{own: {Members: member("127.0.0.1:2")}}}, ""},
		{"what a member lists", true, []map[string]engine.Membership{{own: {Members: member("127.0.0.1:2")}}, {"127.0.0.1:2": {Members: member("127.0.0.1:9")}}}, "127.0.0.1:2"},
		{"one server twice", true, []map[string]engine.Membership{{own: {ServerID: "x", Members: member("127.0.0.1:2")}}, {"127.0.0.1:2": {ServerID: "x"}}}, ""},
		{"nonsense", true, []map[string]engine.Membership{{own: {Members: member("", "AUTO", "x:0", "169.254.169.254:80", "/etc/passwd", "-x:1")}}}, ""},
		{"many", true, []map[string]engine.Membership{{own: {Members: member(many...)}}}, strings.Join(many[:15], " ")},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := New(Options{Config: config.Default(), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			lent := login
			lent.Discover = c.discover
			o.loans = []loan{{run: "r", login: lent}}
			o.arrange()
			for _, answers := range c.rounds {
				o.gather(context.Background(), reports(o.topology.Targets, answers))
			}
			var got []string
			for _, o := range o.topology.Targets[1:] {
				got = append(got, o.Address)
				if !o.Hearsay || o.Discover || o.User != "app" || o.TLS == nil || o.TLSOptional || o.Cluster != own {
					t.Errorf("%+v", o)
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("found %q, want %q", text, c.want)
			}
			if names := o.topology.Lent; len(names) != len(got)+1 {
				t.Errorf("lent are %v", names)
			}
		})
	}
}
