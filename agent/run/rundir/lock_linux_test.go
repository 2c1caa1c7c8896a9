package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAgentLockOfAnotherUser guards that what another user does to an agent's lock file neither keeps an
// agent from starting nor is read without a limit.
func TestAgentLockOfAnotherUser(t *testing.T) {
	data := t.TempDir()
	first, err := ClaimAgent(data, AgentInfo{PID: 1, Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ClaimAgent(data, AgentInfo{PID: 2}); !errors.Is(err, ErrAgentRuns) {
		t.Errorf("a second agent: %v", err)
	}
	path := filepath.Join(data, agentLock)
	if err := os.WriteFile(path, []byte(`{"address":"x"`+strings.Repeat(" ", maxAgentInfo)+`}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if info, ok := Agent(data); !ok || info.Address != "" {
		t.Errorf("%+v, %v: read to its end", info, ok)
	}
	first.Close()

	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := unix.FcntlFlock(reader.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}); err != nil {
		t.Fatal(err)
	}
	if _, ok := Agent(data); ok {
		t.Error("a lock of a user who can only read counts as an agent")
	}
	second, err := ClaimAgent(data, AgentInfo{PID: 2, Address: "127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if info, ok := Agent(data); !ok || info.PID != 2 {
		t.Errorf("%+v, %v", info, ok)
	}
}
