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

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Streams are the standard streams of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// notice writes a line about the command itself to standard error. What it quotes may
// come from anywhere, so it contains nothing that does something to the terminal.
func (s Streams) notice(format string, args ...any) {
	s.line("benchwatch: " + secret.Sprintf(format, args...))
}

func (s Streams) line(text string) { fmt.Fprintln(s.Err, table.Plain(text)) }

// action runs a command after its flags were parsed.
type action func(Streams) error

// commands in the order of the help text. Each function adds its command and
// flags to the application and returns the name of the command and its action.
var commands = []func(*kingpin.Application) (string, action){
	addRun,
	addAgent,
	addParse,
	addGroup,
	addGroupServe,
	addMark,
	addHealth,
	addStatus,
	addRuns,
	addRunsRemove,
	addRunsImport,
	addReport,
	addCompare,
	addHistory,
	addExport,
	addArchivePush,
	addArchivePull,
	addArchiveList,
	addSweep,
	addSeek,
	addReplay,
	addInit,
	addDoctor,
	addDashboardsImport,
}

// Exit statuses. Those of `run` for its own failures are the ones of env and
// timeout.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitLimit       = 3
	exitUnclear     = 4
	exitAborted     = 5
	exitOwnFailure  = 125
	exitCantRun     = 126
	exitNotFound    = 127
	exitInterrupted = 130
)

// exitStatuses documents the exit statuses.
var exitStatuses = []struct{ status, meaning string }{
	{"0", "Success. `run`: the tool exited with 0"},
	{strconv.Itoa(exitFailure), "The command failed. `health`: the agent is not healthy. `sweep`: a step failed. `parse`: no output of a tool was recognised. `status --once`: no server answered"},
	{strconv.Itoa(exitUsage), "The command line is wrong"},
	{strconv.Itoa(exitLimit), "`compare --fail-if`: a limit is broken"},
	{strconv.Itoa(exitUnclear), "`compare --fail-if --strict`: the runs can't tell whether a limit is broken"},
	{strconv.Itoa(exitAborted), "`run --abort-when`: a condition held, and the tool was ended"},
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
	app.Version(versionText())
	app.HelpFlag.Short('h')
	app.HelpFlag.Help("Show this help (--help-long: of all commands, --help-man: as a man page)")
	app.VersionFlag.Help("Show the version")
	app.UsageTemplate(usageTemplate)
	addManual(app)
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
		addHints(clause)
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
		case float64:
			problem = fmt.Sprintf("expected a number, got '%s'", s)
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
	exit := func(status int) {
		if exited < 0 {
			exited = status
		}
		// kingpin expects that this function does not return, and would print the usage again.
		app.UsageWriter(io.Discard)
		app.ErrorWriter(io.Discard)
	}
	app.Terminate(exit)
	addCompletion(app, s.Out, exit)

	if args[0] == "help" { // kingpin's own ends with another status for an unknown command
		args = append(slices.Clone(args[1:]), "--help")
	}
	name, err := app.Parse(standardInput(joinNegative(optionalValue(args))))
	if exited >= 0 { // --help and --version end here
		return exited
	}
	if err != nil {
		return fail(s, usageError(app, err, args))
	}
	return fail(s, actions[name](s))
}

// joinNegative joins a flag and a value such as -90s, which kingpin would take for
// another flag. No flag of one character is a digit.
func joinNegative(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		negative := i+1 < len(args) && len(args[i+1]) > 1 && args[i+1][0] == '-' && args[i+1][1] >= '0' && args[i+1][1] <= '9'
		if negative && strings.HasPrefix(args[i], "--") && !strings.Contains(args[i], "=") {
			joined = append(joined, args[i]+"="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	return joined
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
	var commands, below, flags []string
	for _, c := range app.Model().Commands {
		commands = append(commands, c.Name)
		if c.Name != args[0] {
			continue
		}
		hint = "see benchwatch " + args[0] + " --help"
		for _, sub := range c.Commands {
			below = append(below, sub.Name)
			if len(args) > 1 && args[1] == sub.Name {
				hint = "see benchwatch " + sub.FullCommand + " --help"
			}
		}
	}
	for _, c := range app.Model().FlattenedCommands() {
		if name, _, _ := strings.Cut(c.FullCommand, " "); name != args[0] {
			continue
		}
		for _, f := range c.Flags {
			if name := "--" + f.Name; !f.Hidden && !slices.Contains(flags, name) {
				flags = append(flags, name)
			}
		}
	}
	problem := err.Error()
	wrong := strings.Trim(problem[strings.LastIndexByte(problem, ' ')+1:], "'")
	flag, sub, command := nearest(wrong, flags), nearest(wrong, below), nearest(args[0], commands)
	switch {
	case slices.ContainsFunc(app.Model().FlattenedCommands(), func(c *kingpin.CmdModel) bool {
		return slices.ContainsFunc(c.Flags, func(f *kingpin.FlagModel) bool {
			return args[0] == "--"+f.Name || strings.HasPrefix(args[0], "--"+f.Name+"=")
		})
	}):
		hint = "flags come after the command: benchwatch runs --data-dir=DIR"
	case command != "" && command != args[0]:
		hint = "did you mean benchwatch " + command + "?"
	case args[0] == "run" && strings.HasPrefix(problem, "unknown") && !slices.Contains(args, "--"):
		hint = "put -- before the command of the benchmark: benchwatch run -- sysbench … run"
	case strings.HasPrefix(problem, "unknown long flag") && flag != "":
		hint = "did you mean " + flag + "?"
	case strings.HasPrefix(problem, "unexpected ") && sub != "":
		hint = "did you mean benchwatch " + args[0] + " " + sub + "?"
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
		s.line("benchwatch: " + strings.Join(strings.Fields(secret.Error(err)), " "))
		if exit.Hint != "" {
			s.line("hint: " + secret.Text(exit.Hint))
		}
	}
	return exit.Status
}
