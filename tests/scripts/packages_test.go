// Package scripts tests what scripts/packages.sh promises: no service starts while it installs, the machine's own
// policy holds again afterwards, and without permission to install it reports what is missing.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const script = "../../scripts/packages.sh"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// ask runs a policy like Debian before it starts a service: 101 forbids that, 0 allows it.
func ask(t *testing.T, policy string) int {
	t.Helper()
	if _, err := os.Stat(policy); err != nil {
		return 0
	}
	cmd := exec.Command(policy, "some-service", "start")
	_ = cmd.Run() // the exit status is the answer
	return cmd.ProcessState.ExitCode()
}

func TestNoServiceStartsWhilePackagesAreInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		before string // the machine's policy; empty: none
		want   int
	}{
		"no policy":        {"", 0},
		"a policy":         {"#!/bin/sh\nexit 104\n", 104},
		"services refused": {"#!/bin/sh\nexit 101\n", 101},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			policy, asked := filepath.Join(dir, "policy-rc.d"), filepath.Join(dir, "asked")
			if c.before != "" {
				write(t, policy, c.before)
			}
			install := func(apt string) error {
				write(t, filepath.Join(dir, "bin/apt-get"), "#!/bin/sh\n"+apt+"\n")
				cmd := exec.Command(script, "--install", "package")
				cmd.Env = append(os.Environ(), "BENCHWATCH_POLICY="+policy, "PATH="+dir+"/bin:"+os.Getenv("PATH"))
				return cmd.Run()
			}
			unchanged := func(when string) {
				t.Helper()
				text, _ := os.ReadFile(policy)
				if string(text) != c.before {
					t.Errorf("%s, the policy is %q, want %q", when, text, c.before)
				}
				if left, _ := filepath.Glob(policy + ".*"); len(left) > 0 {
					t.Errorf("%s, left behind: %q", when, left)
				}
			}

			if err := install(policy + " some-service start; echo $? >" + asked); err != nil {
				t.Fatal(err)
			}
			if code, err := os.ReadFile(asked); err != nil || strings.TrimSpace(string(code)) != "101" {
				t.Errorf("during the installation the policy answers %q, %v", code, err)
			}
			unchanged("after the installation")
			if err := install("exit 100"); err == nil {
				t.Error("a failure of apt-get is not reported")
			}
			unchanged("after a failure")
			if err := install("kill -KILL $PPID"); err == nil {
				t.Error("the installer survived SIGKILL")
			}
			if code := ask(t, policy); code != c.want {
				t.Errorf("after a killed installer the policy answers %d, want %d", code, c.want)
			}
			if err := install("true"); err != nil {
				t.Error(err)
			}
			unchanged("after the next installation")
		})
	}
}

func TestWithoutRightsItSaysWhatToInstall(t *testing.T) {
	dir, err := os.MkdirTemp("", "benchwatch-packages.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	// No daemon is found, wherever this machine has them, and no sudo.
	write(t, filepath.Join(dir, "packages.sh"), strings.Replace(string(text), "\nPATH=$PATH:", "\n: ", 1))
	for _, tool := range []string{"bash", "dirname", "sort", "apt-get"} {
		write(t, filepath.Join(dir, "bin", tool), "")
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skip(err)
		}
		link := filepath.Join(dir, "bin", tool)
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "bin/bash"), filepath.Join(dir, "packages.sh"), "bench")
	cmd.Env = []string{"PATH=" + dir + "/bin"}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "apt-get install") || !strings.Contains(string(out), "mtail") {
		t.Errorf("%v: %s", err, out)
	}
}
