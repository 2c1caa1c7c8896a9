package tool

import (
	"io/fs"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Invocation is a command line seen by a tool.
type Invocation struct {
	// Program is the base name of the program, empty if it isn't known.
	Program string
	// Args are the arguments after the program's name, with secrets blanked, so that
	// no fact that is read from them holds one.
	Args []string
	// ReadFile reads configuration files that the arguments name. Nil when
	// there is no file system to ask. What is taken from a file goes through
	// secret.Value.
	ReadFile func(name string) ([]byte, error)
	// Getenv reads the environment that the tool will have.
	Getenv func(name string) string
}

// Read reads a file that the arguments name. The error is fs.ErrNotExist if there
// is no file system to ask.
func (in *Invocation) Read(name string) ([]byte, error) {
	if in.ReadFile == nil {
		return nil, fs.ErrNotExist
	}
	return in.ReadFile(name)
}

// Place is where a command runs a tool. Addresses such as localhost, and files,
// depend on it.
type Place string

const (
	PlaceHere      Place = ""          // on this machine
	PlaceContainer Place = "container" // perhaps within a network of its own
	PlaceElsewhere Place = "elsewhere" // on another machine
)

// PID is replaced by the tool's process id in the name of a file.
const PID = "{pid}"

// Insertion is arguments that are missing for live reports, and the index in
// Invocation.Args before which they go.
type Insertion struct {
	At   int
	Args []string
}

// Description is the facts that a command line gives about the run that it starts. A zero
// value is not known from the command line.
type Description struct {
	// Command is the tool's own verb: run, prepare, cleanup, load …
	Command  string
	Workload string
	Threads  int
	// Duration that was asked for, 0 if the run ends by another condition.
	Duration time.Duration
	// Rate of operations per second that was asked for, 0 for a closed loop.
	Rate int
	// ReportInterval that was asked for, or is the tool's default; 0 if there
	// will be no interval reports.
	ReportInterval time.Duration
	// LatencyPercentile is the percentile that was asked for, for tools that
	// print one and may not name it: 0 if it was switched off, unknown if the
	// command line leaves it to the tool.
	LatencyPercentile series.Optional[float64]

	// Target is host:port or a socket's path; a list is joined by commas.
	Target   string
	Database string
	// Engine is the kind of database that the tool connects to, as the configuration
	// names it: mysql, mongodb. Empty: another one, or unknown.
	Engine string
	// User that the tool logs in as.
	User string

	// Labels are further facts, such as tables, table_size, events, rate,
	// warehouses, in lower case with underscores.
	Labels map[string]string

	// LatencyLogs are patterns of the files into which the tool writes the latency of each
	// operation, from the folder in which it runs; [PID] is replaced by its process id.
	LatencyLogs []string

	// Insert is what to add for live reports; empty if nothing is needed or the
	// user chose otherwise.
	Insert []Insertion
	// Notes are one-line warnings for the user about traps of these options.
	Notes []string
}
