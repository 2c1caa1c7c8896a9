package cli

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// selecting are the flags that name the servers of a run.
type selecting struct {
	clusters []string
	targets  string
}

func addSelecting(cmd command) *selecting {
	s := &selecting{}
	cmd.texts(&s.clusters, "cluster", "NAME", "Cluster of the configuration that the run uses; repeatable (default: the one that the tool connects to)")
	cmd.text(&s.targets, "targets", "NAME,NAME...", "Targets of the configuration that the run uses, in addition to those of --cluster")
	return s
}

// selection returns nil if neither flag is given.
func (s *selecting) selection() *rundir.Selection {
	targets := strings.FieldsFunc(s.targets, func(r rune) bool { return r == ',' || r == ' ' })
	return rundir.NewSelection(s.clusters, targets)
}

// checkSelection returns an error if the configuration lacks what s names.
func checkSelection(c *config.Config, s *rundir.Selection) error {
	if err := c.Topology(c.Servers()).CheckSelection(s); err != nil {
		return ownFailure(err, "name the file with the targets with --config.file")
	}
	return nil
}
