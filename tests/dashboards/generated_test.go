package dashboards

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// dashboards/*.json are what dashboards/src generates. It takes Node.js to find out.
func TestDashboardsAreGenerated(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "dashboards/build.sh"), "--check").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
