// Package cli is the command line of benchwatch, one file per command.
//
// Results go to standard output, everything else to standard error. An error is
// one line, lower case, that begins with "benchwatch: "; a second line
// "hint: …" names what the user can do about it. A narrow terminal gets them
// broken at blanks. exitStatuses lists the exit statuses.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Streams are the standard streams of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// notice writes a line about the command itself to standard error. Quoted text may come from anywhere, so control
// characters are removed.
func (s Streams) notice(format string, args ...any) {
	s.line("benchwatch: " + secret.Sprintf(format, args...))
}

// line writes a line to standard error, broken if the terminal is narrower.
func (s Streams) line(text string) {
	text = table.Plain(text)
	if t := terminal.Of(s.Err); t.Is && utf8.RuneCountInString(text) > t.Width {
		indent := len(text) - len(strings.TrimLeft(text, " "))
		text = text[:indent] + t.Wrap(text, indent, indent+2)
	}
	fmt.Fprintln(s.Err, text)
}

// Exit statuses. For failures of its own, `run` uses the same statuses as env and timeout.
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
	{strconv.Itoa(exitFailure),
		"The command failed. `health`: the agent is not healthy. `sweep`: a step failed. `ab`: the runs of one " +
			"variant failed twice in a row. `parse`: no output of a tool was recognised. `status --once`: no server " +
			"answered. `run -`: the tool's output shows a failure, or has no summary"},
	{strconv.Itoa(exitUsage), "The command line is wrong"},
	{strconv.Itoa(exitLimit), "`compare` and `ab` with `--fail-if`: a limit is broken. `run --require`, also after `group attach`: the run does not meet a requirement"},
	{strconv.Itoa(exitUnclear),
		"`compare` and `ab` with `--fail-if --strict`: the runs don't show whether a limit is broken. `ab --strict` " +
			"without a limit: undecided. `run --require`, also after `group attach`: the run has no such value, or is lost"},
	{strconv.Itoa(exitAborted), "`run --abort-when`: a condition held, and the tool was ended"},
	{strconv.Itoa(exitOwnFailure), "`run`: benchwatch failed before it started the tool"},
	{strconv.Itoa(exitCantRun), "`run` and `sweep`: the tool can't be executed"},
	{strconv.Itoa(exitNotFound), "`run` and `sweep`: the tool was not found"},
	{strconv.Itoa(exitInterrupted), "`sweep`, `seek` and `ab`: interrupted by a signal; `--resume` continues it"},
	{"other", "`run`: the exit status of the tool; 128 + N if signal N ended it"},
}

// exitError is an error with an exit status, and with a hint if there is a remedy. Without Err, nothing is printed.
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

// newProgram returns the program with all commands, by job, in the order of the help text.
func newProgram() *cobra.Command {
	root := newRoot()
	add := func(job string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: job, Title: job})
		for _, c := range commands {
			c.GroupID = job
		}
		root.AddCommand(commands...)
	}
	add("Run", newRun(), newSweep(), newSeek(), newAB(), newMark())
	add("Look", newStatus(), newRuns(), newReport(), newReplay())
	add("Compare", newCompare(), newHistory())
	add("Share", newExport(), newParse(), newParent("archive", "Upload, fetch or list runs of the team's archive.",
		newArchivePush(), newArchivePull(), newArchiveList()))
	add("Set up", newInit(), newAgent(), newDoctor(),
		newParent("dashboards", "Import the dashboards into a Grafana.", newDashboardsImport()))
	root.AddCommand(newParent("group", "Follow the generators of a group.", newGroupAttach(), newGroupServe()),
		newHealth(), newVersion())
	return root
}

// newRoot returns the program itself.
func newRoot() *cobra.Command {
	c := newCommand("benchwatch",
		"Record benchmarks (sysbench, pgbench, YCSB, HammerDB …) and what servers do.", "")
	var showsVersion, showsLong, showsManual, showsHelp, showsAll bool
	c.toggle(&showsVersion, "version", "Show the version")
	c.toggle(&showsLong, "help-long", "Show the help of all commands").Hidden = true // of 0.1: --help-all
	c.toggle(&showsManual, "help-man", "Show the help of all commands as a man page")
	c.PersistentFlags().AddFlag(c.toggle(&showsHelp, "help,h", "Show the help on one screen"))
	every := c.flag("help-all", "Show the help with every flag", value{"bool", func() string { return "false" },
		func(string) error { showsAll = true; return pflag.ErrHelp }})
	every.NoOptDefVal = "true"
	c.PersistentFlags().AddFlag(every)
	c.Args = nil // cobra looks for the command
	c.SilenceErrors, c.SilenceUsage, c.DisableSuggestions = true, true, true
	c.SetHelpFunc(func(asked *cobra.Command, _ []string) { help(asked.OutOrStdout(), asked, showsAll) })
	c.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true}) // Main does what it would
	cobra.EnableCommandSorting = false
	return c.does(func(s Streams) error {
		switch {
		case showsVersion:
			fmt.Fprintln(s.Out, versionText())
		case showsManual:
			printManual(s.Out, c.Command)
		default:
			help(s.Out, c.Command, showsLong)
		}
		return nil
	})
}

// Main runs the command line and returns the exit status.
func Main(args []string, s Streams) int {
	if len(args) > 0 && args[0] == "help" { // cobra's own succeeds for an unknown command
		args = append(slices.Clone(args[1:]), "--help")
	}
	root := newProgram()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	started := false
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		started = true
		restoreLeft(cmd, s)
	}
	cmd, err := root.ExecuteC()
	if err != nil && !started {
		err = usageError(cmd, err, args)
	}
	return fail(s, err)
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
