package host

import (
	"context"
	"testing"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// TestFacts guards the facts that every Linux has.
func TestFacts(t *testing.T) {
	p := open(t, Procfs, "")
	probe(t, p)
	facts, err := p.(engine.Configured).Settings(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kernel", "cpu_cores", "memory_bytes", "vm.swappiness", "net.core.somaxconn"} {
		if facts[name] == "" {
			t.Errorf("no %s in %v", name, facts)
		}
	}
	if got := chosen("always [madvise] never"); got != "madvise" {
		t.Errorf("%q is chosen", got)
	}
}
