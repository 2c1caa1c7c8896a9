package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// startMachine starts an sshd and returns the machine and the command that connects to it.
func startMachine(t *testing.T) (*servers.Machines, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for sshd")
	}
	need.Program(t, "sshd")
	port, err := servers.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := servers.StartMachines(t.Context(), filepath.Join(t.TempDir(), "machines"), 1, port, os.Getenv("PATH"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	return m, "ssh -F " + m.Config()
}

func openSSH(t *testing.T, command string) *sshProber {
	t.Helper()
	p, err := newSSHProber(engine.Target{Address: "gen1", Options: map[string]string{OptionCommand: command}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// connected probes until the session is there, as a sampler does at its ticks.
func connected(t *testing.T, p *sshProber) *engine.Status {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		s, err := p.Probe(ctx)
		cancel()
		if err == nil {
			return s
		}
		if !errors.Is(err, errConnecting) && !errors.Is(err, errSilent) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestSSHAgreesWithProcfs guards that a session of a real ssh reads what this machine's own /proc has, its
// facts included, and that nothing of it is left there after its end.
func TestSSHAgreesWithProcfs(t *testing.T) {
	m, command := startMachine(t)
	remote, own := openSSH(t, command), open(t, Procfs, "")
	probe(t, own)
	connected(t, remote)
	before := probe(t, own)
	between := connected(t, remote)
	after := probe(t, own)
	if between.Nodename != own.(*procfsProber).nodename || between.Version != own.(*procfsProber).release || between.Uptime < after.Uptime-5*time.Second || between.Uptime > after.Uptime+5*time.Second {
		t.Errorf("%s, %s, up for %v, want %+v, %v", between.Nodename, between.Version, between.Uptime, own, after.Uptime)
	}
	agree(t, before, between, after)
	if _, ok := between.Get(cpuWaiting); !ok && exists("/proc/schedstat") {
		t.Error("no time for which tasks waited for a core")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := remote.Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want, err := own.(engine.Configured).Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	if m.Sessions(1) == 0 {
		t.Fatal("there is no session")
	}
	remote.Close()
	for deadline := time.Now().Add(20 * time.Second); m.Sessions(1) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left", m.Sessions(1))
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestSSHAgain guards that a lost session is an error of one tick, after which the next one begins.
func TestSSHAgain(t *testing.T) {
	m, command := startMachine(t)
	p := openSSH(t, command)
	connected(t, p)
	if err := m.Disconnect(1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := p.Probe(ctx); err == nil || !strings.HasPrefix(err.Error(), "ssh gen1: ") {
		t.Errorf("%v", err)
	}
	if err := m.Start(t.Context(), 1, true); err != nil {
		t.Fatal(err)
	}
	if s := connected(t, p); s.Nodename == "" {
		t.Errorf("%+v", s)
	}
}

// TestSSHRefused guards the reason why a machine can't be read: one line, with a remedy.
func TestSSHRefused(t *testing.T) {
	m, command := startMachine(t)
	config := filepath.Join(m.Dir, "sshd1")
	plain, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	unknown := filepath.Join(m.Dir, "unknown_hosts")
	for name, c := range map[string]struct{ sshd, command, want string }{
		"a password":              {"AuthenticationMethods password\nPasswordAuthentication yes", command, "Permission denied (password).; benchwatch asks for no password: use a key or an agent that ssh gen1 works with"},
		"confirmation of a key":   {"", "ssh -o StrictHostKeyChecking=ask -o UserKnownHostsFile=" + unknown + " -F " + m.Config(), "Host key verification failed.; check the machine's host key, then connect once manually: ssh gen1"},
		"no login":                {"ForceCommand echo This account is currently not available.; exit 1", command, `the shell there does not run sh, it printed "This account is currently not available."`},
		"a shell of another kind": {"ForceCommand echo \"unknown command: exec\" >&2; exit 127", command, "unknown command: exec"},
		"a banner without end":    {"ForceCommand yes", command, `it printed "y"`},
		"a line without end":      {"ForceCommand cat /dev/zero", command, "the answer is longer than 8 MB"},
		"an answer without end":   {"ForceCommand echo " + ready + "; yes /proc/stat:x", command, "the answer is longer than 8 MB"},
		"no /proc":                {"ForceCommand echo " + ready + "; while read -r q n; do echo \"end $n\"; done", command, "gen1 has no readable /proc/stat: only Linux can be read by ssh"},
		"no program":              {"", "/nonexistent/ssh", "start ssh: "},
	} {
		t.Run(name, func(t *testing.T) {
			if err := m.Disconnect(1); err != nil {
				t.Fatal(err)
			}
			text := string(plain) + c.sshd + "\n"
			if strings.Contains(c.sshd, "PasswordAuthentication") { // the first value counts
				text = strings.Replace(text, "PasswordAuthentication no\n", "", 1)
			}
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := m.Start(t.Context(), 1, true); err != nil {
				t.Fatal(err)
			}
			p := openSSH(t, c.command)
			var got error
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
				ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
				_, got = p.Probe(ctx)
				cancel()
				if got == nil || !errors.Is(got, errConnecting) && !errors.Is(got, errSilent) {
					break
				}
			}
			if got == nil || !strings.Contains(got.Error(), c.want) || strings.Contains(got.Error(), "\n") {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}

// TestSSHShells guards that the script runs in each sh that is installed, and that a shell of another kind
// passes it on.
func TestSSHShells(t *testing.T) {
	for _, shell := range []string{"dash", "bash --posix", "busybox sh", "fish", "tcsh", "zsh"} {
		words := strings.Fields(shell)
		if _, err := exec.LookPath(words[0]); err != nil {
			continue
		}
		t.Run(words[0], func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "ssh")
			text := fmt.Sprintf("#!/bin/sh\nfor last; do :; done\nexec %s -c \"$last\"\n", shell)
			if err := os.WriteFile(fake, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			p := openSSH(t, fake)
			connected(t, p)
			if s := connected(t, p); s.Nodename == "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestSSHLate guards that the answer to an earlier request is not taken for the answer to the next one.
func TestSSHLate(t *testing.T) {
	fake := filepath.Join(t.TempDir(), "ssh")
	const answers = "#!/bin/sh\necho " + ready + "\nread -r q n\nread -r q m\n" +
		"echo '/proc/stat:cpu0 1 1 1 1'\necho end $n\necho '/proc/stat:cpu0 2 2 2 2'\necho '/proc/stat:cpu1 2 2 2 2'\necho end $m\nread -r q\n"
	if err := os.WriteFile(fake, []byte(answers), 0o755); err != nil {
		t.Fatal(err)
	}
	p := openSSH(t, fake)
	for p.number < 1 { // the first one has no answer yet
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := p.Probe(ctx); err == nil || !errors.Is(err, errConnecting) && !errors.Is(err, errSilent) {
			t.Fatal(err)
		}
		cancel()
	}
	s := connected(t, p)
	if v, _ := s.Get(CoreCount); v != 2 {
		t.Errorf("%v cores, want those of the second answer", v)
	}
}
