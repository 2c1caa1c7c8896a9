package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/setup"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// dashboardsCommand is one `benchwatch dashboards import`.
type dashboardsCommand struct {
	configFlags
	url, tokenFile, folder, format string
}

// dashboardsImported is what `dashboards import --format=json` prints.
type dashboardsImported struct {
	// Dashboards are the embedded dashboards, with their state in Grafana before the import.
	Dashboards []setup.Dashboard `json:"dashboards"`
}

func newDashboardsImport() *cobra.Command {
	cmd := newCommand("import", "Import the dashboards into a Grafana. It replaces those of other versions.",
		"benchwatch dashboards import --config.file=benchwatch.yml")
	r := &dashboardsCommand{}
	r.ofAgent = true
	r.configFlags.declare(cmd)
	cmd.text(&r.url, "grafana.url", "URL", "Address of Grafana (default: grafana.url of the configuration)")
	cmd.text(&r.tokenFile, "grafana.token-file", "FILE", "File with the token of a service account; with the role Editor (default: grafana.token_file of the configuration)")
	r.folder = "benchwatch"
	cmd.text(&r.folder, "grafana.folder", "NAME", "Folder for the dashboards")
	addFormat(cmd, &r.format, text, jsonFormat)
	return cmd.does(r.run)
}

func (r *dashboardsCommand) run(s Streams) error {
	c, err := r.load()
	if err != nil {
		return err
	}
	if r.url != "" {
		c.Grafana.URL = r.url
	}
	if r.tokenFile != "" {
		c.Grafana.TokenFile = r.tokenFile
	}
	if c.Grafana.URL == "" || c.Grafana.TokenFile == "" {
		return &exitError{Status: exitUsage, Err: errors.New("no Grafana, or no token for it"),
			Hint: "use --config.file, or --grafana.url and --grafana.token-file"}
	}
	if err := checkURL("--grafana.url", r.url); err != nil {
		return err
	}
	g, err := setup.NewGrafana(c.Grafana.URL, c.Grafana.TokenFile)
	if err != nil {
		return err
	}
	defer g.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	all, err := g.ImportDashboards(ctx, r.folder)
	if err != nil {
		return withHint(err, "the token needs a service account with the role Editor")
	}
	if r.format == jsonFormat {
		return table.JSON(s.Out, dashboardsImported{all})
	}
	done := map[setup.DashboardState]string{setup.Same: "unchanged", setup.Different: "replaced", setup.Missing: "imported"}
	for _, d := range all {
		fmt.Fprintf(s.Out, "%s %s\n", done[d.State], d.Title)
	}
	return nil
}
