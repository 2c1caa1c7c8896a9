package generator

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
)

// What follows goes over the connection to a generator's machine, a JSON object a line:
// requests to Serve's standard input, one answer to each from its standard output.
// Nothing of a command line passes a shell.

// request is one of: the clock, a run to prepare, the start or the end of one, a signal for
// one, what is new of one by package mirror's protocol.
type request struct {
	// Prepare starts a `benchwatch run` that waits for its start.
	Prepare *Job `json:"prepare,omitempty"`
	// Run is the id for what follows.
	Run string `json:"run,omitempty"`
	// StartAt is when its tool starts by that machine's clock, in nanoseconds.
	StartAt int64 `json:"start_at,omitempty"`
	// Have is what the copy of the run has.
	Have mirror.Have `json:"have"`
	// Signal is passed to its tool.
	Signal int `json:"signal,omitempty"`
	// Abandon takes the start back and ends the run, which is deleted if its tool has not
	// started.
	Abandon bool `json:"abandon,omitempty"`
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

// answer is what was requested, or an error.
type answer struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Version is benchwatch's, sent first, unasked.
	Version string `json:"version,omitempty"`
	// Clock is the machine's wall clock in nanoseconds.
	Clock int64 `json:"clock,omitempty"`
	// Scraped: an agent follows the runs there.
	Scraped bool `json:"scraped,omitempty"`
	mirror.News
}

// mirrored are the files of a run that are copied. Its markers are not among them: the
// group has its own.
var mirrored = slices.Concat(mirror.Outputs, mirror.Records)

// longestBanner bounds what the other side's shell prints, in bytes.
const longestBanner = 256 << 10
