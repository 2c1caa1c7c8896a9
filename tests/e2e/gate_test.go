//go:build e2e

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The script for continuous integration measures two servers in turns, and its limits hold.
func TestGateScript(t *testing.T) {
	waitSynced(t)
	script, err := filepath.Abs("../../docs/ci/gate.sh")
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(env.Binary, filepath.Join(dir, "benchwatch")))
	port := func(node int) string {
		_, port, err := net.SplitHostPort(env.Cluster.Address(node))
		must(t, err)
		return "port=" + port
	}
	command := env.Load(1)
	cmd := exec.Command(script, append(command[:len(command)-1], "--mysql-port={port}", "run")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "BASE="+port(1), "HEAD="+port(2), "TPS=95", "P95=5000", "MAX_TIME=2m")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, wants := range map[string][]string{
		"gate.md":   {"tps\\<-95%", "held", "noise floor"},
		"junit.xml": {`tests="2"`, `failures="0"`},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		must(t, err)
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s:\n%s", file, want, text)
			}
		}
	}
}
