package generator

import (
	"encoding/json"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/host"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// What follows goes over the connection to a generator's machine, a JSON object a line:
// requests to Serve's standard input, one answer to each from its standard output.
// Nothing of a command line passes a shell.

// request is one of: the clock, a run to prepare, the start of one, what is new of one,
// a signal for one.
type request struct {
	// Prepare starts a `benchwatch run` that waits for its start.
	Prepare *Job `json:"prepare,omitempty"`
	// Run is the id for what follows.
	Run string `json:"run,omitempty"`
	// StartAt is when its tool starts by that machine's clock, in nanoseconds.
	StartAt int64 `json:"start_at,omitempty"`
	// Sizes are how many bytes of its files are known; Meta the hash of its run.json.
	Sizes map[string]int64 `json:"sizes,omitempty"`
	Meta  string           `json:"meta,omitempty"`
	// Signal is passed to its tool.
	Signal int `json:"signal,omitempty"`
}

// Job is a run to prepare.
type Job struct {
	Group      string `json:"group"`
	Generator  int    `json:"generator"`
	Generators int    `json:"generators"`
	// Arguments are the flags of `benchwatch run` beside those of the group.
	Arguments []string `json:"arguments"`
	Command   []string `json:"command"`
}

// answer has what was requested, or an error.
type answer struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Version is benchwatch's, sent first, unasked.
	Version string `json:"version,omitempty"`
	// Clock is the machine's wall clock in nanoseconds.
	Clock int64 `json:"clock,omitempty"`
	// Scraped: an agent follows the runs there.
	Scraped bool `json:"scraped,omitempty"`
	// Files are the next bytes of files, Meta the run.json if it has changed, once no
	// file has more.
	Files []part          `json:"files,omitempty"`
	Meta  json.RawMessage `json:"meta,omitempty"`
	More  bool            `json:"more,omitempty"`
	// Gone: there is no such run any more.
	Gone bool `json:"gone,omitempty"`
}

// part is what is new of a file.
type part struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// mirroredFiles are only appended to. A run's markers are not among them: the group has
// its own.
var mirroredFiles = []string{rundir.StdoutFile, rundir.StderrFile, rundir.StatusFile, host.File, history.SettingsFile, history.StatementsFile}

// partSize bounds what is sent of a file at a time.
const partSize = 512 << 10

// longestMessage bounds a line of the protocol.
const longestMessage = 64 << 20
