package tests

import (
	"os"
	"os/exec"
	"testing"
)

// The agent and its tests compile for each operating system and each processor that packages are built for.
func TestPlatforms(t *testing.T) {
	for _, platform := range [][2]string{{"linux", "arm64"}, {"darwin", "amd64"}} {
		t.Run(platform[0]+"/"+platform[1], func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "vet", "./agent/...")
			cmd.Dir = ".."
			cmd.Env = append(os.Environ(), "GOOS="+platform[0], "GOARCH="+platform[1], "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
