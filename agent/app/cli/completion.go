package cli

import (
	_ "embed"
	"io"
	"maps"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Completion scripts. Each asks the program, with the hidden flag --completion-bash,
// for the words that may follow. Kingpin's own can't complete k=v in bash, and does
// nothing at the first attempt in zsh.
var (
	//go:embed completion/benchwatch.bash
	bashCompletion string
	//go:embed completion/benchwatch.zsh
	zshCompletion string
	//go:embed completion/benchwatch.fish
	fishCompletion string
)

// addCompletion adds --completion-script-fish to the flags that kingpin has for other
// shells.
func addCompletion(app *kingpin.Application, out io.Writer, exit func(int)) {
	kingpin.BashCompletionTemplate, kingpin.ZshCompletionTemplate = bashCompletion, zshCompletion
	app.Flag("completion-script-fish", "Generate completion script for fish.").Hidden().PreAction(func(*kingpin.ParseContext) error {
		_, err := io.WriteString(out, fishCompletion)
		exit(0)
		return err
	}).Bool()
}

// addHints makes a command complete ids and labels of the recorded runs.
func addHints(cmd *kingpin.CmdClause) {
	if cmd.GetFlag("data-dir") == nil {
		return
	}
	runs := func() []string { return runIDs(recordedRuns(cmd)) }
	labels := func() []string { return labelsOf(recordedRuns(cmd)) }
	for _, name := range []string{"RUN", "RUN|LOGFILE"} {
		if arg := cmd.GetArg(name); arg != nil {
			arg.HintAction(runs)
		}
	}
	if arg := cmd.GetArg("GROUP"); arg != nil {
		arg.HintAction(func() []string { return append(labels(), runs()...) })
	}
	if flag := cmd.GetFlag("run"); flag != nil {
		flag.HintAction(runs)
	}
	if flag := cmd.GetFlag("label"); flag != nil {
		flag.HintAction(labels)
	}
}

// recordedRuns returns the facts of all runs in the data directory of cmd, the oldest
// first. Completion is silent: there are none if the directory can't be read.
func recordedRuns(cmd *kingpin.CmdClause) []rundir.Meta {
	value := func(flag string) *string { return new(cmd.GetFlag(flag).Model().Value.String()) }
	flags := dataFlags{configFlags{value("config.file")}, value("data-dir")}
	c, err := flags.load()
	if err != nil {
		return nil
	}
	return (&store{dataDir: c.DataDir}).metas()
}

// runIDs returns the ids, the newest first.
func runIDs(runs []rundir.Meta) []string {
	if len(runs) == 0 {
		return nil
	}
	ids := []string{lastRun}
	for _, m := range slices.Backward(runs) {
		ids = append(ids, m.ID)
	}
	return ids
}

// labelsOf returns the labels as k=v.
func labelsOf(runs []rundir.Meta) []string {
	labels := map[string]bool{}
	for _, m := range runs {
		for name, value := range m.Labels {
			labels[name+"="+value] = true
		}
	}
	return slices.Sorted(maps.Keys(labels))
}
