// Package playback plays recorded output of benchmark tools back, at any speed and cut at
// any byte, for tests that need a tool but no load.
package playback

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// Recording is the recorded output of a tool from the tool's own tests.
type Recording struct {
	Name           string // its folder, such as sysbench/testdata/1.0.20/oltp
	Tool           string
	Stdout, Stderr string // files; Stderr may be empty
}

// maxSize keeps a replay short: the largest recordings contain a histogram of megabytes.
const maxSize = 300 << 10

// Recordings returns the recordings in which exactly one tool is recognised, ordered by name.
func Recordings() ([]Recording, error) {
	root, err := servers.Repository()
	if err != nil {
		return nil, err
	}
	tools := filepath.Join(root, "agent", "model", "tool")
	var all []Recording
	err = filepath.WalkDir(tools, func(path string, d fs.DirEntry, err error) error {
		single, _ := filepath.Match(filepath.Join(tools, "sysbench", "testdata", "*", "*.txt"), path)
		if err != nil || d.Name() != "stdout.txt" && !single {
			return err
		}
		stdout, err := os.ReadFile(path)
		if err != nil || len(stdout) > maxSize {
			return err
		}
		r := Recording{Stdout: path}
		var stderr []byte
		if name := filepath.Join(filepath.Dir(path), "stderr.txt"); !single {
			if stderr, err = os.ReadFile(name); err == nil {
				r.Stderr = name
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		r.Name, _ = filepath.Rel(tools, path)
		if t := registry.Tools.Sniff(append(bytes.Clone(stderr), stdout...)); t != nil {
			r.Tool = t.Name
			all = append(all, r)
		}
		return nil
	})
	if err == nil && len(all) < 50 {
		err = fmt.Errorf("%d recordings found in %s", len(all), tools)
	}
	return all, err
}

// Build builds the program that replays. Like the tool, it takes any arguments.
func Build(binary string) error { return agents.Build(binary, "internal/playback/cmd") }

// Play is one replay. The program receives its fields through the environment.
type Play struct {
	Recording
	// Lines replaces the recording by this many interval lines of sysbench, each with 10
	// transactions, and a summary.
	Lines int
	// Takes is how long the replay takes; 0 writes as fast as possible.
	Takes time.Duration
	// Seed decides where the output is cut.
	Seed uint64
	// Hold is a file for which the program waits after its last byte; empty: do not wait.
	Hold string
}

// Set adds the replay to the environment of a command.
func (p Play) Set(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Environ(),
		"REPLAY_STDOUT="+p.Stdout, "REPLAY_STDERR="+p.Stderr, "REPLAY_LINES="+strconv.Itoa(p.Lines),
		"REPLAY_TAKES="+p.Takes.String(), "REPLAY_SEED="+strconv.FormatUint(p.Seed, 10), "REPLAY_HOLD="+p.Hold)
}
