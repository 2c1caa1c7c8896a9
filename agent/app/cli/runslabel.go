package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// runsLabelCommand is one `benchwatch runs label`: it sets labels of closed runs, such as keep, with which retention never
// removes them.
type runsLabelCommand struct {
	*store
	words  []string // runs, and labels with a =
	format string
}

// labelledRun is a run as `runs label --format=json` prints it.
type labelledRun struct {
	ID string `json:"id"`
	// Labels are all labels of the run after the change.
	Labels map[string]string `json:"labels"`
}

func newRunsLabel() *cobra.Command {
	cmd := newCommand("label", "Set labels of closed runs. keep=yes protects a run from the limits of runs rm.",
		"benchwatch runs label last keep=yes")
	r := &runsLabelCommand{}
	cmd.arguments(&r.words, "RUN... NAME=VALUE...", "Ids of runs or their beginnings, and labels; NAME= removes a label")
	addFormat(cmd, &r.format, text, jsonFormat)
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
	all := []labelledRun{}
	for _, dir := range dirs {
		meta, err := dir.Update(func(m *rundir.Meta) { m.Labels = labelled(m.Labels, labels) })
		if err != nil {
			return fmt.Errorf("label run %s: %w", dir.ID(), err)
		}
		all = append(all, labelledRun{ID: dir.ID(), Labels: meta.Labels})
	}
	if r.format == jsonFormat {
		return table.JSON(s.Out, all)
	}
	for _, run := range all {
		fmt.Fprintln(s.Out, run)
	}
	return nil
}

// String returns the line that `runs label` prints.
func (l labelledRun) String() string {
	words := []string{l.ID + ":"}
	for _, name := range slices.Sorted(maps.Keys(l.Labels)) {
		words = append(words, name+"="+l.Labels[name])
	}
	if len(l.Labels) == 0 {
		words = append(words, "no labels")
	}
	return strings.Join(words, " ")
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
