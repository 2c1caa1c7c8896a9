package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// AgentInfo is where the agent of a data directory can be reached.
type AgentInfo struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`
	// URL of the live page, with a trailing slash.
	URL string `json:"url"`
	// Config is the absolute path of its configuration; empty: it has none.
	Config string `json:"config,omitempty"`
	// Foreign: the agent runs as another user.
	Foreign bool `json:"-"`
}

const agentLock = "agent.lock"

// ErrAgentRuns is returned by ClaimAgent if the data directory already has an agent.
var ErrAgentRuns = errors.New("another agent runs on this data directory")

// ClaimAgent makes this process the agent of a data directory until the file is closed. The error
// is ErrAgentRuns if it already has one.
func ClaimAgent(dataDir string, info AgentInfo) (*os.File, error) {
	if err := os.MkdirAll(Root(dataDir), 0o755); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	path := filepath.Join(dataDir, agentLock)
	f, err := lockFile(path, false)
	if errors.Is(err, ErrLocked) && !lockHeld(path) { // a user who can only read the file locks it
		if err = os.Remove(path); err == nil {
			f, err = lockFile(path, false)
		}
	}
	if errors.Is(err, ErrLocked) {
		if other, ok := Agent(dataDir); ok {
			return nil, fmt.Errorf("%w (process %d)", ErrAgentRuns, other.PID)
		}
		return nil, ErrAgentRuns
	}
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(info)
	if err == nil {
		err = f.Chmod(0o644) // every user may check whether an agent runs
	}
	if err == nil && isShared(Root(dataDir)) {
		err = shareMarkers(dataDir)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(append(data, '\n'), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("claim data directory: %w", err)
	}
	return f, nil
}

// shareMarkers allows every user of a shared data directory to mark the time axis, as everyone may
// mark their own runs. It leaves another user's file alone.
func shareMarkers(dataDir string) error {
	f, err := OpenRecord(filepath.Join(dataDir, MarkersFile))
	if err == nil {
		err = f.Chmod(0o666)
		f.Close()
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// maxAgentInfo is longer than what an agent writes, in bytes. The data directory may belong to
// another user.
const maxAgentInfo = 4 << 10

// Agent returns the agent that runs on a data directory, if any.
func Agent(dataDir string) (AgentInfo, bool) {
	path := filepath.Join(dataDir, agentLock)
	f, err := Open(path)
	if err != nil {
		return AgentInfo{}, false // none has run yet
	}
	defer f.Close()
	if !locked(f.Fd()) {
		return AgentInfo{}, false
	}
	info := AgentInfo{Foreign: !Own(path)}
	if data, err := io.ReadAll(io.LimitReader(f, maxAgentInfo)); err == nil {
		_ = json.Unmarshal(data, &info) // half written: the agent's address is unknown
	}
	return info, true
}
