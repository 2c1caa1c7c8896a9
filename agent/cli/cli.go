// Package cli is the command line of benchwatch, one file per command.
//
// Results go to standard output, everything else to standard error. An error is
// one line, lower case, that begins with "benchwatch: "; a second line
// "hint: …" names what the user can do about it. exitStatuses lists the exit
// statuses.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

// Streams are the standard streams of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// notice writes a line about the command itself to standard error.
func (s Streams) notice(format string, args ...any) {
	fmt.Fprintf(s.Err, "benchwatch: "+format+"\n", args...)
}

// action runs a command after its flags were parsed.
type action func(Streams) error

// commands in the order of the help text. Each function adds its command and
// flags to the application and returns the name of the command and its action.
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

// Exit statuses. Those of `run` for its own failures are the ones of env and
// timeout.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitOwnFailure  = 125
	exitCantRun     = 126
	exitNotFound    = 127
	exitInterrupted = 130
)

// exitStatuses documents the exit statuses.
var exitStatuses = []struct{ status, meaning string }{
	{"0", "Success. `run`: the tool exited with 0"},
	{strconv.Itoa(exitFailure), "The command failed. `health`: the agent is not healthy. `sweep`: a step failed. `runs`: a run is damaged"},
	{strconv.Itoa(exitUsage), "The command line is wrong"},
	{strconv.Itoa(exitOwnFailure), "`run`: benchwatch failed before it started the tool"},
	{strconv.Itoa(exitCantRun), "`run` and `sweep`: the tool can't be executed"},
	{strconv.Itoa(exitNotFound), "`run` and `sweep`: the tool was not found"},
	{strconv.Itoa(exitInterrupted), "`sweep`: interrupted by a signal; `--resume` continues it"},
	{"other", "`run`: the exit status of the tool; 128 + N if signal N ended it"},
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
	return &exitError{Status: exitFailure, Err: err, Hint: hint}
}

// commander is the application or a command with subcommands.
type commander interface {
	Command(name, help string) *kingpin.CmdClause
}

// addCommand adds a command. help is one sentence, example a command line.
func addCommand(to commander, name, help, example string) *kingpin.CmdClause {
	return to.Command(name, help).HelpLong(example)
}

// usageTemplate is kingpin's with the example of the command.
var usageTemplate = strings.Replace(kingpin.DefaultUsageTemplate, "Flags:\n", "{{with .Context.SelectedCommand}}{{with .HelpLong}}Example:\n  {{.}}\n\n{{end}}{{end}}Flags:\n", 1)

// newApplication returns the application with all commands.
func newApplication() (*kingpin.Application, map[string]action) {
	app := kingpin.New("benchwatch", "Follow database benchmarks: read the output of the tool, sample the databases, serve both to Prometheus.")
	app.Version(version.Print("benchwatch"))
	app.HelpFlag.Short('h')
	app.HelpFlag.Help("Show this help (--help-long: of all commands, --help-man: as a man page)")
	app.VersionFlag.Help("Show the version")
	app.UsageTemplate(usageTemplate)
	actions := map[string]action{}
	for _, add := range commands {
		name, do := add(app)
		actions[name] = do
	}
	for _, c := range app.Model().FlattenedCommands() {
		clause := app.GetCommand(strings.Fields(c.FullCommand)[0])
		for _, name := range strings.Fields(c.FullCommand)[1:] {
			clause = clause.GetCommand(name)
		}
		for _, f := range c.Flags {
			clause.GetFlag(f.Name).SetValue(flagValue{f.Value, f.Name})
		}
	}
	return app, actions
}

// flagValue is the value of a flag. Its errors name the flag and what was
// expected, which kingpin's do not.
type flagValue struct {
	kingpin.Value
	flag string
}

// Set implements kingpin.Value.
func (v flagValue) Set(s string) error {
	err := v.Value.Set(s)
	if err == nil {
		return nil
	}
	problem := strings.TrimPrefix(err.Error(), "enum value ")
	if getter, ok := v.Value.(kingpin.Getter); ok {
		switch getter.Get().(type) {
		case time.Duration:
			problem = fmt.Sprintf("expected a duration such as 10s, got '%s'", s)
		case int:
			problem = fmt.Sprintf("expected a whole number, got '%s'", s)
		case map[string]string:
			problem = fmt.Sprintf("expected NAME=VALUE, got '%s'", s)
		}
	}
	return fmt.Errorf("--%s: %s", v.flag, problem)
}

// IsBoolFlag implements an optional interface of kingpin.
func (v flagValue) IsBoolFlag() bool {
	f, ok := v.Value.(interface{ IsBoolFlag() bool })
	return ok && f.IsBoolFlag()
}

// IsCumulative implements an optional interface of kingpin.
func (v flagValue) IsCumulative() bool {
	f, ok := v.Value.(interface{ IsCumulative() bool })
	return ok && f.IsCumulative()
}

// Main runs the command line and returns the exit status.
func Main(args []string, s Streams) int {
	app, actions := newApplication()
	app.UsageWriter(s.Out)
	app.ErrorWriter(s.Err)
	if len(args) == 0 {
		return fail(s, &exitError{Status: exitUsage, Err: errors.New("no command given"), Hint: "see benchwatch --help"})
	}
	exited := -1
	app.Terminate(func(status int) {
		if exited < 0 {
			exited = status
		}
		// kingpin expects that this function does not return, and would print the usage again.
		app.UsageWriter(io.Discard)
		app.ErrorWriter(io.Discard)
	})

	name, err := app.Parse(standardInput(args))
	if exited >= 0 { // --help and --version end here
		return exited
	}
	if err != nil {
		return fail(s, usageError(app, err, args))
	}
	return fail(s, actions[name](s))
}

// standardInput inserts -- before a last argument "-", which kingpin would
// turn into an empty one.
func standardInput(args []string) []string {
	last := len(args) - 1
	if args[last] != "-" || slices.Contains(args[:last], "--") {
		return args
	}
	return append(slices.Clone(args[:last]), "--", "-")
}

// usageError returns the error for a command line that kingpin refuses.
func usageError(app *kingpin.Application, err error, args []string) error {
	hint := "see benchwatch --help"
	if app.GetCommand(args[0]) != nil {
		hint = "see benchwatch " + args[0] + " --help"
	}
	if args[0] == "run" && strings.HasPrefix(err.Error(), "unknown") {
		hint = "put -- before the command of the benchmark: benchwatch run -- sysbench … run"
	}
	return &exitError{Status: exitUsage, Err: err, Hint: hint}
}

// fail prints err, if any, and returns the exit status for it.
func fail(s Streams, err error) int {
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{Status: exitFailure, Err: err}
	}
	if exit.Err != nil {
		fmt.Fprintf(s.Err, "benchwatch: %s\n", strings.Join(strings.Fields(err.Error()), " "))
		if exit.Hint != "" {
			fmt.Fprintf(s.Err, "hint: %s\n", exit.Hint)
		}
	}
	return exit.Status
}
