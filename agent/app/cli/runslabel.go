package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// runsLabelCommand is one `benchwatch runs label`: it sets labels of closed runs, such as keep, with which retention never
// removes them.
type runsLabelCommand struct {
	*store
	words []string // runs, and labels with a =
}

func newRunsLabel() *cobra.Command {
	cmd := newCommand("label", "Set labels of closed runs, such as keep.",
		"benchwatch runs label last keep=yes")
	r := &runsLabelCommand{}
	cmd.arguments(&r.words, "RUN... NAME=VALUE...", "Ids of runs or their beginnings, and labels; NAME= removes a label")
	r.store = addStore(cmd)
	return cmd.does(func(s Streams) error { return r.run(cmd, s) })
}

func (r *runsLabelCommand) run(cmd command, s Streams) error {
	var names []string
	labels := map[string]string{}
	for _, word := range r.words {
		if name, value, is := strings.Cut(word, "="); is {
			labels[name] = value
		} else {
			names = append(names, word)
		}
	}
	usage := func(err error) error {
		return &exitError{Status: exitUsage, Err: err, Hint: "for example: " + cmd.Example}
	}
	switch {
	case len(names) == 0:
		return usage(errors.New("no run is named"))
	case len(labels) == 0:
		return usage(errors.New("no label is given"))
	}
	if err := rundir.CheckLabels(labels); err != nil {
		return usage(err)
	}
	if err := r.open(); err != nil {
		return err
	}
	dirs, err := r.findRuns(names)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if meta, err := dir.Load(); err != nil {
			return err
		} else if !meta.Closed() {
			return withHint(fmt.Errorf("run %s is not closed: no label was set", dir.ID()),
				"label it after its end; benchwatch run --label sets labels at the start")
		}
	}
	for _, dir := range dirs {
		meta, err := dir.Update(func(m *rundir.Meta) { m.Labels = labelled(m.Labels, labels) })
		if err != nil {
			return fmt.Errorf("label run %s: %w", dir.ID(), err)
		}
		var words []string
		for _, name := range slices.Sorted(maps.Keys(meta.Labels)) {
			words = append(words, name+"="+meta.Labels[name])
		}
		if len(words) == 0 {
			words = []string{"no labels"}
		}
		fmt.Fprintf(s.Out, "%s: %s\n", dir.ID(), strings.Join(words, " "))
	}
	return nil
}

// labelled returns labels with changes; a change to an empty value removes a label.
func labelled(labels, changes map[string]string) map[string]string {
	after := maps.Clone(labels)
	if after == nil {
		after = map[string]string{}
	}
	for name, value := range changes {
		if value == "" {
			delete(after, name)
		} else {
			after[name] = value
		}
	}
	return after
}
