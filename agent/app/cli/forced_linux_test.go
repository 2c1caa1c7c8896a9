package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// TestForcedCommands: a real sshd that runs another command than the requested one, or prints a banner. A short banner
// is harmless.
func TestForcedCommands(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for sshd")
	}
	need.Program(t, "sshd")
	folder := t.TempDir()
	port, err := servers.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := servers.StartMachines(t.Context(), filepath.Join(folder, "machines"), 1, port, os.Getenv("PATH"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := filepath.Join(m.Dir, "sshd1")
	plain, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	banner := filepath.Join(folder, "banner")
	if err := os.WriteFile(banner, []byte(strings.Repeat("\x1b[2Jauthorised use only {\"version\":\"x\"}\n", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		add   string
		waits bool
		says  string
	}{
		"banner":                 {add: "Banner " + banner, says: "succeeded"},
		"banner of the shell":    {add: "ForceCommand cat " + banner + "; sh -c \"$SSH_ORIGINAL_COMMAND\"", says: "succeeded"},
		"another command":        {add: "ForceCommand echo hello", says: "gen1"},
		"a command without end":  {add: "ForceCommand cat /dev/zero", says: "a line of more than 8 MiB"},
		"a banner without end":   {add: "ForceCommand yes banner", says: "something else than the answers"},
		"errors without end":     {add: "ForceCommand yes error >&2", waits: true},
		"a command that waits":   {add: "ForceCommand sleep 1000", waits: true},
		"no command":             {add: "ForceCommand /nonexistent", says: "nonexistent"},
		"another answer":         {add: "ForceCommand echo '{\"version\":\"0.0.0-other\"}'; sleep 1000", says: "0.0.0-other is there"},
		"a refused second group": {add: "MaxSessions 0", says: "gen1"},
	} {
		if err := m.Disconnect(1); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, []byte(string(plain)+c.add+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context(), 1, true); err != nil {
			t.Fatal(err)
		}
		run := startChild(t, t.TempDir(), "run", "--on=gen1", "--ssh=ssh -F "+m.Config(), "--linger=0s", "--drain-timeout=1s", "--", "sh", "-c", "echo begun")
		var out string
		if c.waits {
			run.await("ssh is connected", func() bool { return m.Sessions(1) > 0 })
			out = run.terminate()
		} else {
			out = run.end()
		}
		if !strings.Contains(out, c.says) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: %.1500q", name, out)
		}
	}
}
