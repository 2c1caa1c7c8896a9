package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	tools "github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// nearMisses are the names under which people expect a command. A name below a command has both words.
var nearMisses = []struct{ command, names string }{
	{"run", "exec, start, record, bench"},
	{"runs", "list, ls, ps, runs ls"},
	{"runs rm", "delete, remove, rm, runs delete, runs remove"},
	{"runs rm --older-than=90d", "clean, prune, runs prune, runs clean"},
	{"runs import", "import"},
	{"runs label", "label, tag"},
	{"report", "analyse, analyze, cat, graph, info, inspect, result, results, show, view, runs show, runs report, runs logs"},
	{"report last", "runs last"},
	{"report or benchwatch runs import", "log, logs"},
	{"compare", "diff, runs compare"},
	{"compare --x or benchwatch report", "plot"},
	{"history", "trend"},
	{"status", "monitor, top, watch"},
	{"replay", "demo, example"},
	{"mark", "annotate"},
	{"export", "runs export"},
	{"export --format=csv", "csv"},
	{"archive push", "push, upload, archive upload"},
	{"archive pull", "download, pull, archive download, archive fetch"},
	{"archive list", "archive ls"},
	{"init", "config, configure, install, setup"},
	{"agent", "daemon, open, serve, server, ui, web"},
	{"doctor", "check"},
	{"dashboards import", "dashboard"},
	{"group attach", "group join"},
}

// meant returns the command that a wrong name, without benchwatch, probably means; empty if that is unclear.
func meant(wrong string) string {
	for _, miss := range nearMisses {
		if slices.Contains(strings.Split(miss.names, ", "), wrong) {
			return miss.command
		}
	}
	return ""
}

// usageError returns the error for a command line that cobra refuses. cmd is the command that it found.
func usageError(cmd *cobra.Command, err error, args []string) error {
	if own, ok := errors.AsType[*exitError](err); ok {
		return own
	}
	hint := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		hint = hintFlag(cmd, "--"+unknown.GetSpecifiedName(), args)
	} else if given := cmd.Flags().Args(); cmd.HasSubCommands() && !cmd.HasParent() || len(given) > 0 {
		wrong := args[0]
		if cmd.HasParent() {
			wrong = given[0]
		}
		hint = hintCommand(cmd, wrong)
		err = errors.New(strings.TrimSuffix(err.Error(), ` for "`+cmd.CommandPath()+`"`)) // cobra's
	}
	if hint == "" {
		hint = "see " + cmd.CommandPath() + " --help"
	}
	return &exitError{Status: exitUsage, Err: err, Hint: hint}
}

// hintFlag returns what an unknown flag probably means; empty if that is unclear.
func hintFlag(cmd *cobra.Command, unknown string, args []string) string {
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, "--"+f.Name)
		}
	})
	if flag := nearest(unknown, flags); flag != "" {
		return "did you mean " + flag + "?"
	}
	if argumentName(cmd) == "COMMAND" && !slices.Contains(args, "--") {
		return "write options of the benchmark after its name: " + cmd.CommandPath() + " sysbench … run, or see " + cmd.CommandPath() + " --help"
	}
	return ""
}

// hintCommand returns what an unknown command below cmd probably means; empty if that is unclear.
func hintCommand(cmd *cobra.Command, wrong string) string {
	word := strings.ToLower(wrong)
	isTool := func(t *tool.Tool) bool { return slices.Contains(t.Programs, word) }
	if !cmd.HasParent() && slices.Contains([]string{"stop", "end", "kill"}, word) {
		return "Ctrl-C ends a run"
	}
	switch other := meant(strings.TrimSpace(below(cmd) + " " + word)); {
	case other != "":
		return "did you mean benchwatch " + other + "?"
	case !cmd.HasParent() && slices.ContainsFunc(tools.Tools, isTool):
		return "did you mean benchwatch run " + word + " …?"
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if name := nearest(word, names); name != "" {
		return "did you mean " + cmd.CommandPath() + " " + name + "?"
	}
	return ""
}

// nearest returns the name that a misspelled name probably means: it needs the fewest changes, at most two and not more
// than a third of its characters; "" without such a name, or if several are equally near.
func nearest(name string, known []string) string {
	best, distance := "", min(2, len(name)/3)+1
	for _, k := range known {
		switch d := changes(name, k); {
		case d < distance:
			best, distance = k, d
		case d == distance:
			best = ""
		}
	}
	return best
}

// changes is how many characters of a have to be added, removed or replaced, or
// neighbours exchanged, to get b (optimal string alignment).
func changes(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
