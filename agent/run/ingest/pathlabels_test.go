package ingest

import (
	"maps"
	"testing"
)

func TestPathLabels(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          map[string]string // nil: no match
	}{
		{"{engine}/{buffer_pool}/threads-{threads}.log", "/data/results/mysql-8.0/25G/threads-512.log", map[string]string{"engine": "mysql-8.0", "buffer_pool": "25G", "threads": "512"}},
		{"{engine}/*/threads-{threads}.log", "mysql/x y/threads-1.log", map[string]string{"engine": "mysql", "threads": "1"}},
		{"{engine}-{version}.log", "a/maria.db-10.11.log", map[string]string{"engine": "maria.db", "version": "10.11"}},
		{"{engine}/{name}.log", "only.log", nil},
		{"threads-{n}.log", "a/threads-.log", nil},
		{"{a}.log", "a/b.txt", nil},
		{"{a}+{b}", "x/1+2", map[string]string{"a": "1", "b": "2"}},
	} {
		p, err := ParsePathLabels(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := p.Match(c.path)
		if ok != (c.want != nil) || ok && !maps.Equal(got, c.want) {
			t.Errorf("%s of %s: %v, %v", c.pattern, c.path, got, ok)
		}
	}
	for _, bad := range []string{"", "a.log", "{a}//{b}", "{a}/{a}", "{run}", "{a b}", "{}"} {
		if p, err := ParsePathLabels(bad); err == nil {
			t.Errorf("%q is accepted as %v", bad, p)
		}
	}
}
