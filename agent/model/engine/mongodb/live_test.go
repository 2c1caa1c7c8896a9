package mongodb

import (
	"os"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Samples a real server if one is configured: BENCHWATCH_TEST_MONGODB=host:port, and
// BENCHWATCH_TEST_MONGODB_USER, _PASSWORD and _AUTH_SOURCE if it requires a login.
func TestRealServer(t *testing.T) {
	address := os.Getenv("BENCHWATCH_TEST_MONGODB")
	if address == "" {
		t.Skip("BENCHWATCH_TEST_MONGODB is not set")
	}
	p := openFake(t, newFake(t), func(target *engine.Target) {
		target.Address = address
		target.User = os.Getenv("BENCHWATCH_TEST_MONGODB_USER")
		target.Password = engine.Secret(os.Getenv("BENCHWATCH_TEST_MONGODB_PASSWORD"))
		target.Options = map[string]string{"auth_source": os.Getenv("BENCHWATCH_TEST_MONGODB_AUTH_SOURCE")}
	})
	first := mustProbe(t, p)
	second := mustProbe(t, p)
	if second.Version == "" || second.Role == "" || second.Uptime < first.Uptime {
		t.Errorf("version %q, role %q, uptime %v", second.Version, second.Role, second.Uptime)
	}
	t.Log(describe(first, second))
}
