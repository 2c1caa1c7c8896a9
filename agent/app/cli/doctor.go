package cli

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/setup"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// doctorCommand is one `benchwatch doctor`.
type doctorCommand struct {
	dataFlags
	format string
}

func newDoctor() *cobra.Command {
	cmd := newCommand("doctor", "Check an installation. It covers data directory, agent, servers and privileges, Prometheus and rules, Grafana, clocks.",
		"benchwatch doctor --config.file=benchwatch.yml")
	r := &doctorCommand{}
	r.ofAgent = true
	r.dataFlags.declare(cmd)
	addFormat(cmd, &r.format, text, jsonFormat)
	return cmd.does(r.run)
}

func (r *doctorCommand) run(s Streams) error {
	c, err := r.load()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	all := setup.Diagnose(ctx, c, r.configFile)
	if r.format == jsonFormat {
		err = table.JSON(s.Out, all)
	} else {
		printChecks(s, all)
	}
	if err == nil && all.Failed > 0 {
		return &exitError{Status: exitFailure}
	}
	return err
}

// printChecks prints a line for each check and a last one with their number.
func printChecks(s Streams, all setup.Diagnosis) {
	t := terminal.Of(s.Out)
	shades := map[setup.Level]terminal.Shade{setup.OK: terminal.Good,
		setup.Warning: terminal.Doubt, setup.Failed: terminal.Bad, setup.Skipped: terminal.Faint}
	const indent = len("warning  ")
	for _, c := range all.Checks {
		begin := t.Paint(shades[c.Level], string(c.Level)) + strings.Repeat(" ", indent-len(c.Level))
		fmt.Fprintln(s.Out, begin+t.Wrap(table.Plain(c.Name+": "+c.Text), indent, indent))
		if c.Hint != "" && c.Level != setup.OK {
			fmt.Fprintln(s.Out, strings.Repeat(" ", indent)+"hint: "+t.Wrap(c.Hint, indent+6, indent+6))
		}
	}
	fmt.Fprintf(s.Out, "%s, %s\n", table.Plural(all.Failed, "failure"), table.Plural(all.Warnings, "warning"))
}
