// Package cli is benchwatch's command line, one file a command.
//
// Rules for what a person sees: results go to standard output, everything else
// to standard error; an error is one line, lower case, `benchwatch: ` in front,
// and a second line `hint: …` where there is something to do. Usage errors
// exit with 2, others with 1; `run` exits as the benchmark tool did, with 125
// to 127 for its own failures, as env and timeout do.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

// Streams are where a command reads and writes.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// action is what a command does once its flags are parsed.
type action func(Streams) error

// commands in the order of the usage text. Each adds its command and flags to
// the application and returns the command's name and what it does.
var commands = []func(*kingpin.Application) (string, action){
	addRun,
	addAgent,
	addParse,
	addMark,
	addHealth,
	addStatus,
	addRuns,
	addRunsRemove,
	addRunsImport,
	addReport,
	addCompare,
	addExport,
	addSweep,
}

// exitError is an error that asks for an exit status, with a hint if there is
// something to do. Without Err only the status counts.
type exitError struct {
	Status int
	Err    error
	Hint   string
}

func (e *exitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *exitError) Unwrap() error { return e.Err }

// withHint adds to err what the user can do about it.
func withHint(err error, hint string) error {
	return &exitError{Status: 1, Err: err, Hint: hint}
}

// Main runs the command line and returns the exit status.
func Main(args []string, s Streams) int {
	app := kingpin.New("benchwatch", "Watches database benchmark runs: follows the tool's output, samples the databases, exposes both to Prometheus.")
	app.Version(version.Print("benchwatch"))
	app.HelpFlag.Short('h')
	app.UsageWriter(s.Out)
	app.ErrorWriter(s.Err)
	if len(args) == 0 {
		return fail(s, &exitError{Status: 2, Err: errors.New("no command given"), Hint: "see benchwatch --help"})
	}
	exited := -1
	app.Terminate(func(status int) {
		if exited < 0 {
			exited = status
		}
		// kingpin means that we are gone by now, and would go on with the usage.
		app.UsageWriter(io.Discard)
		app.ErrorWriter(io.Discard)
	})

	actions := map[string]action{}
	for _, add := range commands {
		name, do := add(app)
		actions[name] = do
	}
	name, err := app.Parse(standardInput(args))
	if exited >= 0 { // --help and --version end here
		return exited
	}
	if err != nil {
		return fail(s, usageError(err, args))
	}
	return fail(s, actions[name](s))
}

// standardInput puts -- in front of a last argument "-", of which kingpin would
// make an empty one.
func standardInput(args []string) []string {
	last := len(args) - 1
	if args[last] != "-" || slices.Contains(args[:last], "--") {
		return args
	}
	return append(slices.Clone(args[:last]), "--", "-")
}

// usageError says what is wrong with the command line in one line.
func usageError(err error, args []string) error {
	hint := "see benchwatch --help"
	if args[0] == "run" && strings.HasPrefix(err.Error(), "unknown") {
		hint = "put -- in front of the benchmark's command: benchwatch run -- sysbench … run"
	}
	return &exitError{Status: 2, Err: err, Hint: hint}
}

// fail prints err, if any, and returns the exit status for it.
func fail(s Streams, err error) int {
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{Status: 1, Err: err}
	}
	if exit.Err != nil {
		fmt.Fprintf(s.Err, "benchwatch: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		if exit.Hint != "" {
			fmt.Fprintf(s.Err, "hint: %s\n", exit.Hint)
		}
	}
	return exit.Status
}
