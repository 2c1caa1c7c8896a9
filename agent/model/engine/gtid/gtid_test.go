package gtid

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	a = "aaaaaaaa-bbbb-cccc-dddd-000000000001"
	b = "31420075-e54e-11f1-8be2-02fc00000001"
)

func TestParseSet(t *testing.T) {
	tests := []struct {
		text string
		want Set
	}{
		{"", Set{}},
		{a + ":1-33024", Set{a: {{1, 33024}}}},
		{a + ":7", Set{a: {{7, 7}}}},
		{a + ":1-100898:1070769-1090273", Set{a: {{1, 100898}, {1070769, 1090273}}}},
		{strings.ToUpper(a) + ":1-5,\n" + b + ":2", Set{a: {{1, 5}}, b: {{2, 2}}}},
		{a + ":1-5:6-9:3-4", Set{a: {{1, 9}}}},
		{a + ":1-5:blue:1-3:7:Green:2", Set{a: {{1, 5}}, a + ":blue": {{1, 3}, {7, 7}}, a + ":green": {{2, 2}}}},
		{a + ":blue:1-3", Set{a + ":blue": {{1, 3}}}},
	}
	for _, tt := range tests {
		got, err := ParseSet(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
	for _, bad := range []string{"x", a, a + ":", a + ":0", a + ":5-2", a + ":1-", a + ":99999999999999999999", "0-1-5"} {
		if set, err := ParseSet(bad); err == nil {
			t.Errorf("%q gives %v", bad, set)
		}
	}
}

func TestParsePosition(t *testing.T) {
	tests := []struct {
		text string
		want Set
	}{
		{"", Set{}},
		{"0-5-1740", Set{"0": {{1, 1740}}}},
		{"0-5-1740,7-12-3", Set{"0": {{1, 1740}}, "7": {{1, 3}}}},
		{"0-5-10,0-6-12", Set{"0": {{1, 12}}}},
	}
	for _, tt := range tests {
		got, err := ParsePosition(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
	for _, bad := range []string{"1740", "0-5", "0-5-x", "-1-5-3", "0-5-1-2", "0-1-18446744073709551615", a + ":1-5"} {
		if set, err := ParsePosition(bad); err == nil {
			t.Errorf("%q gives %v", bad, set)
		}
	}
}

func set(t *testing.T, text string) Set {
	t.Helper()
	s, err := ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMissing(t *testing.T) {
	tests := []struct {
		ours, theirs string
		want         uint64
	}{
		{a + ":1-10", a + ":1-10", 0},
		{a + ":1-10", a + ":1-25", 15},
		{a + ":1-25", a + ":1-10", 0},
		{"", a + ":1-10:21-30", 20},
		{a + ":1-5:8-10", a + ":1-10", 2},
		{a + ":3-4:6:100-200", a + ":1-10:150-250", 7 + 50},
		// After a change of primary the new one counts from its own block.
		{a + ":1-100898:1070769-1090000", a + ":1-100898:1070769-1090273", 273},
		{a + ":1-100000", a + ":1-100898:1070769-1070770", 898 + 2},
		{a + ":1-10", a + ":1-10," + b + ":1-3", 3},
		{a + ":1-10:red:1-2", a + ":1-10:red:1-5", 3},
	}
	for _, tt := range tests {
		if got := set(t, tt.ours).Missing(set(t, tt.theirs)); got != tt.want {
			t.Errorf("%q lacks %d of %q, want %d", tt.ours, got, tt.theirs, tt.want)
		}
	}
	if got := set(t, a+":1-100898:1070769-1090273").Count(); got != 100898+19505 {
		t.Errorf("count %d", got)
	}
}

// Accounts created by hand on a replica must not make its source look behind.
func TestOwnWritesOfAReplica(t *testing.T) {
	source := &Position{Executed: set(t, a+":1-100"), Server: a}
	replica := &Position{Executed: set(t, a+":1-90"), Own: set(t, b+":1-2"), Server: b, Sources: []string{a}}
	below := &Position{Executed: set(t, a+":1-90"), Server: "c", Sources: []string{b}}
	for _, tt := range []struct {
		name string
		p, q *Position
		want uint64
	}{
		{"replica of source", replica, source, 10},
		{"source of replica", source, replica, 0},
		{"replica of the replica", below, replica, 2},
	} {
		if n, ok := tt.p.Behind(tt.q); !ok || n != tt.want {
			t.Errorf("%s: behind by %d %v, want %d", tt.name, n, ok, tt.want)
		}
	}
	// The replica has become the source, so its own writes count.
	promoted := &Position{Executed: set(t, a+":1-90,"+b+":1-5"), Server: b}
	if n, ok := replica.Behind(promoted); !ok || n != 3 {
		t.Errorf("behind the promoted one by %d %v, want 3", n, ok)
	}
}

func TestUnrelated(t *testing.T) {
	mine := &Position{Executed: set(t, a+":1-100")}
	if _, ok := mine.Behind(&Position{Executed: set(t, b+":1-5")}); ok {
		t.Error("compared with a server that shares nothing")
	}
	if n, ok := (&Position{}).Behind(mine); !ok || n != 100 {
		t.Errorf("empty server is behind by %d %v", n, ok)
	}
	if _, ok := mine.Behind(&Position{Kind: MariaDB, Executed: Set{"0": {{1, 5}}}}); ok {
		t.Error("compared with a MariaDB")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(a + ":1-100898:1070769-1090273:tag:1-5,\n" + b + ":1")
	f.Add("0-5-1740,7-12-3")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (Set, error){ParseSet, ParsePosition} {
			s, err := parse(text)
			if err != nil {
				continue
			}
			if n := s.Missing(s); n != 0 {
				t.Errorf("%q lacks %d of itself", text, n)
			}
			if n := (Set{}).Missing(s); n != s.Count() {
				t.Errorf("%q: the empty set lacks %d of %d", text, n, s.Count())
			}
		}
	})
}
