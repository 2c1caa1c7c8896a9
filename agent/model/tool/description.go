package tool

import (
	"io/fs"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Invocation is a tool's view of a command line.
type Invocation struct {
	// Program is the base name of the program, empty if it isn't known.
	Program string
	// Args are the arguments after the program's name with secrets blanked, so that no fact taken
	// from them contains a secret.
	Args []string
	// ReadFile reads configuration files that the arguments name. Nil: there is no file system.
	// Values from a file have to pass secret.Value.
	ReadFile func(name string) ([]byte, error)
	// Getenv reads the tool's environment.
	Getenv func(name string) string
	// WithSecrets: the invocation is for Tool.Login, so Args and what is read from files keep their secrets.
	WithSecrets bool
}

// Read reads a file that the arguments name. The error wraps fs.ErrNotExist if there is no file
// system.
func (in *Invocation) Read(name string) ([]byte, error) {
	if in.ReadFile == nil {
		return nil, fs.ErrNotExist
	}
	return in.ReadFile(name)
}

// Place is where a command runs a tool. It determines the meaning of files and of addresses such as
// localhost.
type Place string

const (
	PlaceHere      Place = ""          // on this machine
	PlaceContainer Place = "container" // perhaps with its own network
	PlaceElsewhere Place = "elsewhere" // on another machine
)

// PID stands for the tool's process id in a file's name.
const PID = "{pid}"

// Insertion are arguments to add for live reports, and the index in Invocation.Args before which
// they are inserted.
type Insertion struct {
	At   int
	Args []string
}

// Description is what a command line reveals about the run that it starts. A zero value means that
// the command line does not say.
type Description struct {
	// Command is the tool's own verb: run, prepare, cleanup, load …
	Command  string
	Workload string
	Threads  int
	// Duration is the requested duration, 0 if the run ends by another condition.
	Duration time.Duration
	// Rate is the requested number of operations per second, 0 for a closed loop.
	Rate int
	// ReportInterval is the requested or default interval; 0 if there will be no interval reports.
	ReportInterval time.Duration
	// LatencyPercentile is the requested percentile, for tools that print one and may not name it.
	// 0: switched off. Unknown: the tool's default.
	LatencyPercentile series.Optional[float64]

	// Target is host:port or the path of a socket, or a list joined by commas.
	Target   string
	Database string
	// Engine is the kind of database in the words of the configuration, such as mysql or mongodb.
	// Empty: another kind, or unknown.
	Engine string
	// User with which the tool logs in.
	User string

	// Labels are further facts such as tables, table_size, events, rate or warehouses; names are
	// lower case with underscores.
	Labels map[string]string

	// LatencyLogs are patterns for the files to which the tool writes the latency of each
	// operation, relative to the folder in which it runs. [PID] stands for its process id.
	LatencyLogs []string

	// Insert are the arguments to add for live reports; empty if none are needed or the user chose
	// otherwise.
	Insert []Insertion
	// Notes are one-line warnings for the user about pitfalls of these options.
	Notes []string
}
