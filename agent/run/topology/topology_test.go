package topology

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// here is a machine called load1 with the address 10.0.0.9 and names of others.
var here = Machine{
	Hostname:  "load1",
	Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("fd00::9")},
	Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		known := map[string]string{
			"load1": "127.0.1.1", "load1.example": "10.0.0.9", "n1": "10.0.0.1", "n1.example": "10.0.0.1", "n2": "10.0.0.2",
			"writer.aws": "10.0.0.2", "alias": "127.0.0.1", "other": "10.9.9.9",
		}
		if ip := known[host]; ip != "" {
			return []netip.Addr{netip.MustParseAddr(ip)}, nil
		}
		return nil, errors.New("no such host")
	},
}

var engines = map[string]*engine.Engine{
	"mysql": {Name: "mysql", DefaultPort: "3306"}, "mongodb": {Name: "mongodb", DefaultPort: "27017"}, "atlas": {Name: "atlas", ClientOption: "proxy_address"},
}

// configured returns two clusters of remote servers, one proxy that is sampled and one that is not,
// servers on this machine, and some without a cluster.
func configured(socket string) *Topology {
	return &Topology{
		Engine: func(name string) *engine.Engine { return engines[name] },
		Targets: []engine.Target{
			{Name: "n1", Engine: "mysql", Cluster: "blue", Address: "n1:3306", Nodename: "node1"},
			{Name: "n2", Engine: "mysql", Cluster: "blue", Address: "10.0.0.2:3306"},
			{Name: "g1", Engine: "mysql", Cluster: "green", Address: "127.0.0.1:3307"},
			{Name: "g2", Engine: "mysql", Cluster: "green", Address: "127.0.0.2:3306"},
			{Name: "near", Engine: "mysql", Address: "10.0.0.9:3399"},
			{Name: "alone", Engine: "mysql", Address: "10.0.0.7:3306"},
			{Name: "alone2", Engine: "mysql", Address: "10.0.0.7:3307"},
			{Name: "sock", Engine: "mysql", Address: socket},
			{Name: "m1", Engine: "mongodb", Cluster: "rs", Address: "m1:27017"},
			{Name: "m2", Engine: "mongodb", Cluster: "rs", Address: "m2:27018"},
			{Name: "atlas", Engine: "atlas", Behind: "blue", Address: "127.0.0.1:2345", Options: map[string]string{"proxy_address": "127.0.0.1:1234"}},
		},
		Proxies: []Proxy{
			{Address: "10.0.0.50:6033", Behind: "blue", Nodename: "proxy1"},
			{Address: "vip", Behind: "green"},
			{Address: "mongos:27017", Behind: "rs"},
		},
	}
}

func names(s *rundir.Servers) string {
	var all []string
	for _, t := range s.Targets {
		all = append(all, t.Target)
	}
	for _, p := range s.Proxies {
		all = append(all, "via "+p.Address)
	}
	return strings.Join(all, " ")
}

func TestServers(t *testing.T) {
	folder := t.TempDir()
	socket, link := filepath.Join(folder, "mysqld.sock"), filepath.Join(folder, "run")
	for _, err := range []error{os.WriteFile(socket, nil, 0o600), os.Symlink(folder, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	container, elsewhere := tool.PlaceContainer, tool.PlaceElsewhere
	tests := []struct {
		name   string
		target string
		place  tool.Place
		want   string // empty: unknown
	}{
		{name: "as written", target: "n1:3306", want: "n1 n2"},
		{name: "in capitals, with a dot", target: "N1.:3306", want: "n1 n2"},
		{name: "another node of the cluster", target: "10.0.0.2:3306", want: "n1 n2"},
		{name: "another port", target: "n1:3307"},
		{name: "another name of a node", target: "n1.example:3306", want: "n1 n2"},
		{name: "address of a named target", target: "10.0.0.1:3306", want: "n1 n2"},
		{name: "name that leads to an address", target: "writer.aws:3306", want: "n1 n2"},
		{name: "name without an address", target: "nowhere:3306"},
		{name: "name of another machine", target: "other:3306"},
		{name: "no port", target: "n1", want: "n1 n2"},
		{name: "no port, not the default one", target: "m2"},
		{name: "localhost", target: "localhost:3307", want: "g1 g2"},
		{name: "IPv6", target: "[::1]:3307", want: "g1 g2"},
		{name: "mapped", target: "[::ffff:10.0.0.2]:3306", want: "n1 n2"},
		{name: "own host name", target: "load1:3307", want: "g1 g2"},
		{name: "own full name", target: "load1.example:3307", want: "g1 g2"},
		{name: "own address", target: "10.0.0.9:3307", want: "g1 g2"},
		{name: "own second address", target: "[fd00::9]:3307", want: "g1 g2"},
		{name: "name of the loopback interface", target: "alias:3307", want: "g1 g2"},
		{name: "localhost for a target with the own address", target: "127.0.0.1:3399", want: "near"},
		{name: "another loopback address", target: "127.0.0.2:3306", want: "g1 g2"},
		{name: "localhost is not another loopback address", target: "127.0.0.1:3306"},
		{name: "not the port of the interface", target: "127.0.0.3:3399"},
		{name: "without a cluster", target: "10.0.0.7:3306", want: "alone"},
		{name: "several hosts", target: "n1:3306,10.0.0.2:3306", want: "n1 n2"},
		{name: "hosts of two clusters", target: "n1:3306,127.0.0.1:3307", want: "n1 n2 g1 g2"},
		{name: "one known host", target: "n1:3306,nowhere:3306", want: "n1 n2"},
		{name: "two that are alone", target: "10.0.0.7:3306,10.0.0.7:3307", want: "alone alone2"},
		{name: "socket", target: socket, want: "sock"},
		{name: "socket through a link", target: filepath.Join(link, "mysqld.sock"), want: "sock"},
		{name: "escaped socket", target: strings.ReplaceAll(socket, "/", "%2F"), want: "sock"},
		{name: "another socket", target: filepath.Join(folder, "other.sock")},
		{name: "MongoDB's hosts", target: "m1,m2:27018", want: "m1 m2"},
		{name: "mongos", target: "mongos", want: "m1 m2 via mongos:27017"},
		{name: "proxy", target: "10.0.0.50:6033", want: "n1 n2 via 10.0.0.50:6033"},
		{name: "proxy's other port", target: "10.0.0.50:6032"},
		{name: "proxy with all ports", target: "vip:4711", want: "g1 g2 via vip"},
		{name: "sampled proxy", target: "localhost:1234", want: "n1 n2 atlas"},
		{name: "admin port of a proxy", target: "localhost:2345"},
		{name: "list of proxies", target: "10.0.0.50:6033,vip:1", want: "n1 n2 g1 g2 via 10.0.0.50:6033 via vip"},
		{name: "no address", target: ""},
		{name: "no address but commas", target: ", ,"},
		{name: "what is no address", target: "h:1521:orcl"},
		{name: "container", target: "127.0.0.1:3307", place: container},
		{name: "container, socket", target: socket, place: container},
		{name: "container, loopback", target: "127.0.0.2:3306", place: container},
		{name: "container, name", target: "n1:3306", place: container, want: "n1 n2"},
		{name: "container, address of this machine", target: "10.0.0.9:3307", place: container, want: "g1 g2"},
		{name: "elsewhere", target: "localhost:3307", place: elsewhere},
		{name: "elsewhere, name of the loopback interface there", target: "alias:3307", place: elsewhere},
		{name: "elsewhere, name", target: "n1.example:3306", place: elsewhere, want: "n1 n2"},
		{name: "elsewhere, one is local", target: "localhost:3307,n1:3306", place: elsewhere, want: "n1 n2"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := configured(socket).Servers(t.Context(), &rundir.Meta{
				Benchmark: rundir.Benchmark{Target: test.target},
				Placement: rundir.Placement{Place: test.place},
			}, here)
			if names(&got) != test.want {
				t.Errorf("%q: got %q, want %q", test.target, names(&got), test.want)
			}
			if unknown := test.want == ""; unknown != (got.Source == rundir.ServersUnknown) || unknown != (got.Notice() != "") {
				t.Errorf("%q: source %s, notice %q", test.target, got.Source, got.Notice())
			}
		})
	}
}

func TestSelection(t *testing.T) {
	tests := []struct {
		name     string
		chosen   rundir.Selection
		target   string
		want     string
		problems string
	}{
		{name: "cluster", chosen: rundir.Selection{Clusters: []string{"blue"}}, want: "n1 n2"},
		{name: "whatever the tool connects to", chosen: rundir.Selection{Clusters: []string{"green"}}, target: "n1:3306", want: "g1 g2"},
		{name: "targets", chosen: rundir.Selection{Targets: []string{"alone", "n2"}}, want: "n2 alone"},
		{name: "both", chosen: rundir.Selection{Clusters: []string{"green"}, Targets: []string{"alone"}}, want: "g1 g2 alone"},
		{name: "through a proxy", chosen: rundir.Selection{Clusters: []string{"blue"}}, target: "10.0.0.50:6033", want: "n1 n2 via 10.0.0.50:6033"},
		{name: "through a sampled proxy", chosen: rundir.Selection{Targets: []string{"n2"}}, target: "127.0.0.1:1234", want: "n2 atlas"},
		{name: "another cluster than the proxy's", chosen: rundir.Selection{Clusters: []string{"green"}}, target: "127.0.0.1:1234", want: "g1 g2"},
		{name: "no such cluster", chosen: rundir.Selection{Clusters: []string{"red"}}, target: "n1:3306", problems: `cluster "red"`},
		{name: "no such target", chosen: rundir.Selection{Targets: []string{"n1", "n9"}}, target: "n1:3306", problems: `target "n9"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := configured("/x").Servers(t.Context(), &rundir.Meta{
				Benchmark: rundir.Benchmark{Target: test.target},
				Placement: rundir.Placement{Selection: &test.chosen},
			}, here)
			if names(&got) != test.want || !strings.Contains(got.Problem, test.problems) || (got.Source == rundir.ServersSelected) == (test.want == "") {
				t.Errorf("got %q, %+v", names(&got), got)
			}
		})
	}
}

// TestGenerator guards that localhost for a tool in a container, which shares the runs' folder with
// the agent, is not the agent's localhost.
func TestGenerator(t *testing.T) {
	for generator, want := range map[string]string{"load1": "g1 g2", "": "g1 g2", "5f0e2a": ""} {
		got := configured("/x").Servers(t.Context(), &rundir.Meta{
			Benchmark: rundir.Benchmark{Target: "localhost:3307"},
			Process:   rundir.Process{Generator: generator},
		}, here)
		if names(&got) != want {
			t.Errorf("%q: got %q, want %q", generator, names(&got), want)
		}
	}
}

// TestLent guards that targets sampled with the login of a run's tool take part in that run only,
// beside the cluster that the tool connects to.
func TestLent(t *testing.T) {
	places := configured("/x")
	places.Targets = append(places.Targets,
		engine.Target{Name: "mine", Address: "10.0.0.8:3306", Cluster: "lent"}, engine.Target{Name: "both", Address: "10.0.0.8:3307", Cluster: "lent"})
	places.Lent = map[string][]string{"mine": {"a"}, "both": {"a", "b"}}
	for run, want := range map[string]string{"a": "n1 n2 mine both", "b": "n1 n2 both", "c": "n1 n2"} {
		got := places.Servers(t.Context(), &rundir.Meta{
			ID:        run,
			Benchmark: rundir.Benchmark{Target: "n1:3306,10.0.0.8:3306,10.0.0.8:3307"},
		}, here)
		if names(&got) != want {
			t.Errorf("%s: got %q, want %q", run, names(&got), want)
		}
	}
}

// TestNothingConfigured guards that a run without configured servers has no notice, unless the
// user's selection matches none.
func TestNothingConfigured(t *testing.T) {
	none := &Topology{}
	if got := none.Servers(t.Context(), &rundir.Meta{Benchmark: rundir.Benchmark{Target: "n1:3306"}}, here); got.Source != rundir.ServersNone || got.Notice() != "" {
		t.Errorf("%+v", got)
	}
	if got := none.Servers(t.Context(), &rundir.Meta{Placement: rundir.Placement{Selection: &rundir.Selection{Clusters: []string{"c"}}}}, here); got.Notice() == "" {
		t.Errorf("%+v", got)
	}
}

// TestAsWritten guards that names are looked up only if no address matches as written, and each
// only once.
func TestAsWritten(t *testing.T) {
	quiet := here
	quiet.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		t.Errorf("looked up %s", host)
		return nil, nil
	}
	configured("/x").Servers(t.Context(), &rundir.Meta{Benchmark: rundir.Benchmark{Target: "n1:3306,127.0.0.1:3307,vip:1"}}, quiet)
}

func TestRecordOfServers(t *testing.T) {
	n1 := rundir.Server{Target: "n1", Cluster: "blue", Engine: "mysql", Nodename: "node1"}
	n2 := rundir.Server{Target: "n2", Cluster: "blue", Engine: "mysql"}
	atlas := rundir.Server{Target: "atlas", Engine: "atlas", Proxy: true}
	connected := func(s rundir.Server) rundir.Server {
		s.Connected = true
		return s
	}
	for _, test := range []struct {
		target string
		chosen *rundir.Selection
		want   []rundir.Server
	}{
		{"localhost:1234", nil, []rundir.Server{n1, n2, connected(atlas)}},
		{"10.0.0.50:6033", nil, []rundir.Server{n1, n2}},
		{"n1.example:3306", nil, []rundir.Server{connected(n1), n2}},
		{"n1:3306,10.0.0.2:3306", nil, []rundir.Server{connected(n1), connected(n2)}},
		{"writer.aws:3306", &rundir.Selection{Clusters: []string{"blue"}}, []rundir.Server{n1, connected(n2)}},
		{"10.0.0.7:3306", &rundir.Selection{Clusters: []string{"blue"}}, []rundir.Server{n1, n2}},
	} {
		got := configured("/x").Servers(t.Context(), &rundir.Meta{
			Benchmark: rundir.Benchmark{Target: test.target},
			Placement: rundir.Placement{Selection: test.chosen},
		}, here)
		if !slices.Equal(got.Targets, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.target, got.Targets, test.want)
		}
	}
}

// TestListed guards that a run through a proxy has the servers that the proxy lists, also through a second proxy, and
// none if the proxy lists servers of several clusters.
func TestListed(t *testing.T) {
	proxies := map[string]*engine.Engine{"haproxy": {Name: "haproxy", Proxy: true, ClientOption: "proxy_address"}}
	places := configured("/x")
	places.Engine = func(name string) *engine.Engine { return cmp.Or(proxies[name], engines[name]) }
	proxy := func(name, clients string) engine.Target {
		return engine.Target{Name: name, Engine: "haproxy", Address: "10.0.0.60:9999", Options: map[string]string{"proxy_address": clients}}
	}
	places.Targets = append(places.Targets, proxy("px", "10.0.0.60:3306"), proxy("outer", "10.0.0.61:3306"), proxy("mixed", "10.0.0.62:3306"),
		proxy("one", "10.0.0.63:3306"), proxy("far", "10.0.0.64:3306"))
	places.Listed = map[string][]string{
		"px": {"10.0.0.1:3306", "10.0.0.2:3306"}, "outer": {"10.0.0.60:3306"}, "mixed": {"10.0.0.1:3306", "10.0.0.99:27017", "127.0.0.1:3307", "10.0.0.7:3306"},
		"one": {"10.0.0.7:3306"}, "far": {"127.0.0.1:3307"},
	}
	places.Targets[8].Address = "10.0.0.99:27017" // m1, of another cluster
	for target, want := range map[string]string{
		"10.0.0.60:3306": "n1 n2 px", "10.0.0.61:3306": "n1 n2 px outer", "10.0.0.62:3306": "mixed", "10.0.0.63:3306": "alone one",
		"10.0.0.64:3306": "far", // the loopback address of another machine
	} {
		got := places.Servers(t.Context(), &rundir.Meta{Benchmark: rundir.Benchmark{Target: target}}, here)
		if names(&got) != want {
			t.Errorf("%s: got %q, want %q", target, names(&got), want)
		}
		for _, s := range got.Targets {
			isProxy := slices.Contains([]string{"px", "outer", "mixed", "one", "far"}, s.Target)
			if s.Proxy != isProxy || s.Connected != (s.Target == last(want)) {
				t.Errorf("%s: %+v", target, s)
			}
		}
		if several := strings.Contains(got.Problem, "several clusters"); several != (want == "mixed") {
			t.Errorf("%s: problem %q", target, got.Problem)
		}
	}
	chosen := places.Servers(t.Context(), &rundir.Meta{
		Benchmark: rundir.Benchmark{Target: "10.0.0.60:3306"},
		Placement: rundir.Placement{Selection: &rundir.Selection{Targets: []string{"n1"}}},
	}, here)
	if names(&chosen) != "n1 px" {
		t.Errorf("chosen: %q", names(&chosen))
	}
}

// last returns the last word: the proxy to which the tool connects.
func last(words string) string { return words[strings.LastIndex(words, " ")+1:] }
