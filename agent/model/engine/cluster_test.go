package engine

import (
	"slices"
	"strings"
	"testing"
)

// frameOf returns a frame with the memberships that targets report.
func frameOf(targets []Target, reports map[string]Membership) *Frame {
	f := &Frame{}
	for i := range targets {
		s := Sample{Target: &targets[i], Err: ErrNotSampled}
		if m, ok := reports[targets[i].Name]; ok {
			s.Err, s.Status = nil, &Status{Membership: m}
		}
		f.Samples = append(f.Samples, s)
	}
	return f
}

func listing(address string) []Member { return []Member{{Address: address}} }

// TestClusters guards that targets which name the same cluster, each other's id or each other's address
// belong together, and no others.
func TestClusters(t *testing.T) {
	const node, other, far = "127.0.0.1:1", "127.0.0.1:2", "10.0.0.3:3306"
	for _, c := range []struct {
		name    string
		targets []Target
		reports map[string]Membership
		want    string // clusters in order
		said    string // of the contradiction
	}{
		{"one id", []Target{{Name: "a", Address: node}, {Name: "b", Address: other}, {Name: "c", Address: far}},
			map[string]Membership{"a": {ClusterIDs: []string{"x"}}, "b": {ClusterIDs: []string{"x"}}, "c": {ClusterIDs: []string{"y"}}}, "a,a,", ""},
		{"a source's id", []Target{{Name: "a", Address: node}, {Name: "b", Address: other}},
			map[string]Membership{"a": {ServerID: "x"}, "b": {ServerID: "y", Members: []Member{{ID: "x"}}}}, "a,a", ""},
		{"an address", []Target{{Name: "a", Address: node}, {Name: "b", Address: other}},
			map[string]Membership{"b": {Members: listing(node)}}, "a,a", ""},
		{"another machine's loopback address", []Target{{Name: "a", Address: node}, {Name: "b", Address: far}},
			map[string]Membership{"b": {Members: listing(node)}}, ",", ""},
		{"a proxy", []Target{{Name: "a", Address: node, Cluster: "c"}, {Name: "p", Address: other, Behind: "c"}},
			map[string]Membership{"p": {Members: listing(node)}}, "c,", ""},
		{"configured for one", []Target{{Name: "a", Address: node}, {Name: "b", Address: other, Cluster: "mine"}},
			map[string]Membership{"b": {Members: listing(node)}}, "mine,mine", ""},
		{"a contradiction", []Target{{Name: "a", Address: node, Cluster: "one"}, {Name: "b", Address: other, Cluster: "two"}},
			map[string]Membership{"b": {Members: listing(node)}}, "one,two", "a (cluster: one) and b (cluster: two)"},
		{"nothing reported", []Target{{Name: "a", Address: node}, {Name: "b", Address: other}}, nil, ",", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var clusters Clusters
			clusters.Observe(frameOf(c.targets, c.reports))
			if clusters.Observe(frameOf(c.targets, c.reports)) || clusters.Observe(frameOf(c.targets, nil)) {
				t.Error("the same answers, or none, change something")
			}
			said := strings.Join(clusters.Assign(c.targets), "\n")
			var got []string
			for _, o := range c.targets {
				got = append(got, o.Cluster)
			}
			if g := strings.Join(got, ","); g != c.want || (c.said == "") != (said == "") || !strings.Contains(said, c.said) {
				t.Errorf("clusters %q, want %q; said %q, want %q", g, c.want, said, c.said)
			}
		})
	}
}

// TestListed guards that only addresses that make sense from here are used.
func TestListed(t *testing.T) {
	near, far := Target{Address: "127.0.0.1:3306"}, Target{Address: "db1:3307"}
	for _, c := range []struct {
		target Target
		member Member
		want   string
	}{
		{near, Member{Address: "127.0.0.1:3308"}, "127.0.0.1:3308"},
		{far, Member{Address: "127.0.0.1:3308"}, ""},
		{far, Member{Address: "localhost:3308"}, ""},
		{far, Member{Address: "[::1]:3308"}, ""},
		{far, Member{Address: "db2:3306", Self: true}, ""},
		{far, Member{Address: "db2"}, "db2:3307"},
		{far, Member{Address: "[fd00::2]:3306"}, "[fd00::2]:3306"},
		{far, Member{Address: "169.254.169.254:80"}, ""},
		{far, Member{Address: "0.0.0.0:3306"}, ""},
		{far, Member{Address: "AUTO"}, ""},
		{far, Member{Address: "db2:0"}, ""},
		{far, Member{Address: "db2:70000"}, ""},
		{far, Member{Address: "db2/x:1"}, ""},
		{far, Member{Address: "-oProxyCommand=x:1"}, ""},
		{far, Member{Address: strings.Repeat("a", 300) + ":1"}, ""},
	} {
		if got, ok := c.target.Listed(c.member); got != c.want || ok != (c.want != "") {
			t.Errorf("%+v from %s: %q, want %q", c.member, c.target.Address, got, c.want)
		}
	}
	if !slices.Equal([]bool{IsLoopback("127.9.9.9"), IsLoopback("::1"), IsLoopback("LOCALHOST"), IsLoopback("10.0.0.1")}, []bool{true, true, true, false}) {
		t.Error("loopback addresses are not recognised")
	}
}
