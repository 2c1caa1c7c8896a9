//go:build e2e

package monitoring

import (
	"os"
	"testing"

	"github.com/benchwatch/benchwatch/tests/e2e/galera"
)

var env galera.Lab

func TestMain(m *testing.M) { os.Exit(galera.Main(m, &env)) }

// must fails the test if something that a test does to a server fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
