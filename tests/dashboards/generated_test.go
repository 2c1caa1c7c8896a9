package dashboards

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/benchwatch/benchwatch/internal/need"
)

// dashboards/*.json are what dashboards-src generates. It takes Node.js to find out.
func TestDashboardsAreGenerated(t *testing.T) {
	need.Program(t, "npm")
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "dashboards-src/build.sh"), "--check").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
