package generator

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
)

// The types below are sent over the connection to a generator's machine, one JSON object per line:
// requests to Serve's standard input, one answer to each from its standard output. No part of a
// command line passes through a shell.

// request is one of these: read the clock, prepare a run, start or end one, send it a signal, or
// return its new data by the protocol of package mirror.
type request struct {
	// Prepare starts a `benchwatch run` that waits for its start.
	Prepare *Job `json:"prepare,omitempty"`
	// Run is the id of the run to which the fields below refer.
	Run string `json:"run,omitempty"`
	// StartAt is when its tool starts by that machine's clock, in nanoseconds.
	StartAt int64 `json:"start_at,omitempty"`
	// Have describes the copy of the run.
	Have mirror.Have `json:"have"`
	// Signal is sent to its tool.
	Signal int `json:"signal,omitempty"`
	// Abandon cancels the start and ends the run. A run whose tool has not started is deleted.
	Abandon bool `json:"abandon,omitempty"`
}

// Job is a run to prepare.
type Job struct {
	Group      string `json:"group"`
	Generator  int    `json:"generator"`
	Generators int    `json:"generators"`
	// Arguments are flags of `benchwatch run` in addition to the group's flags.
	Arguments []string `json:"arguments"`
	Command   []string `json:"command"`
}

// answer is the result of a request, or an error.
type answer struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Version is benchwatch's version, sent first without a request.
	Version string `json:"version,omitempty"`
	// Clock is the machine's wall clock in nanoseconds.
	Clock int64 `json:"clock,omitempty"`
	// Scraped: an agent follows the runs there.
	Scraped bool `json:"scraped,omitempty"`
	mirror.News
}

// mirrored are the files of a run that are copied. They do not include markers, since the group has
// its own.
var mirrored = slices.Concat(mirror.Outputs, mirror.Records)

// longestBanner is the maximum output of the other side's shell, in bytes.
const longestBanner = 256 << 10
