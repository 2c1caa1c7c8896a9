package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// complete sets the words to which a flag is completed, in this order.
func complete(cmd *cobra.Command, flag string, words func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	})
	if err != nil { // there is no such flag
		panic(err)
	}
}

// completeRuns makes the arguments of a command complete to ids and labels of the recorded runs.
func completeRuns(cmd *cobra.Command) {
	if cmd.Flag("data-dir") == nil {
		return
	}
	runs := func() []string { return runIDs(recordedRuns(cmd)) }
	labels := func() []string { return labelsOf(recordedRuns(cmd)) }
	files := cobra.ShellCompDirectiveDefault
	switch argumentName(cmd) {
	case "RUN", "RUN|LOGFILE":
		cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return runs(), files | cobra.ShellCompDirectiveKeepOrder
		}
	case "GROUP":
		cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return append(labels(), runs()...), files | cobra.ShellCompDirectiveKeepOrder
		}
	}
	for name, words := range map[string]func() []string{"run": runs, "label": labels} {
		if cmd.Flag(name) != nil {
			complete(cmd, name, words)
		}
	}
}

// recordedRuns returns the facts of all runs in the data directory of cmd, the oldest
// first. Completion is silent: there are none if the directory can't be read.
func recordedRuns(cmd *cobra.Command) []rundir.Meta {
	flags := dataFlags{configFlags{configFile: cmd.Flag("config.file").Value.String()}, cmd.Flag("data-dir").Value.String()}
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
