// Command cmd starts and stops database servers and monitoring, each in a folder of
// its own on loopback. The demo uses it, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/internal/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := kingpin.New("servers", "Database servers and monitoring for tests, benchmarks and the demo.")
	app.HelpFlag.Short('h')
	app.UsageWriter(os.Stdout)
	commands := map[string]func() error{}
	command := func(name, help string, declare func(*kingpin.CmdClause) func() error) {
		commands[name] = declare(app.Command(name, help))
	}

	command("start", "Start servers in a folder, or start them again with their data. Server N listens on PORT+N.", func(c *kingpin.CmdClause) func() error {
		kind := c.Arg("kind", "mariadb, galera, mysql9 or mysql9-group.").Required().Enum("mariadb", "galera", "mysql9", "mysql9-group")
		dir := c.Arg("dir", "Folder of the servers.").Required().String()
		port := c.Flag("port", "Base port; default: a free one.").Int()
		n := c.Flag("servers", "How many servers; default: 3 in a cluster or group, 2 with mysql9, else 1.").Int()
		settings := c.Flag("set", "Line of the servers' configuration, such as performance_schema=ON; repeatable.").Strings()
		return func() error {
			if *n == 0 {
				*n = map[servers.Kind]int{servers.Galera: 3, servers.MySQL9Group: 3, servers.MySQL9: 2}[servers.Kind(*kind)]
			}
			g, err := servers.Start(ctx, *dir, servers.Kind(*kind), servers.Options{Port: *port, Servers: *n, Settings: *settings})
			if err != nil {
				return err
			}
			return list(g.Status(ctx))
		}
	})
	command("monitor", "Start Prometheus, Alertmanager, exporters and the agent for a folder of servers; Grafana gets the dashboards if GRAFANA_URL and GRAFANA_TOKEN are set or it is installed.", func(c *kingpin.CmdClause) func() error {
		dir := c.Arg("dir", "Folder of the monitoring.").Required().String()
		of := c.Arg("servers", "Folder of the servers, which must be running.").Required().ExistingDir()
		port := c.Flag("port", "Port of Prometheus; the others follow; default: a free one.").Int()
		cluster := c.Flag("cluster", "What the agent calls the servers together.").String()
		binary := c.Flag("benchwatch", "The benchwatch to run; default: ./benchwatch of the repository.").Envar("BENCHWATCH").String()
		return func() error {
			g, err := servers.Open(*of)
			if err != nil {
				return err
			}
			if *binary == "" {
				root, err := servers.Repository()
				if err != nil {
					return err
				}
				*binary = filepath.Join(root, "benchwatch")
			}
			grafana, err := servers.FindGrafana()
			if err != nil {
				return err
			}
			m, err := servers.StartMonitoring(ctx, *dir, g, servers.MonitoringOptions{Port: *port, Cluster: *cluster, Binary: *binary, Grafana: grafana})
			if err != nil {
				return err
			}
			return list(m.Status())
		}
	})
	command("machines", "Start machines that ssh reaches as gen1, gen2 and so on, all of them this one: an sshd each on loopback, on the ports after PORT.", func(c *kingpin.CmdClause) func() error {
		dir := c.Arg("dir", "Folder of the machines.").Required().String()
		n := c.Flag("number", "How many.").Default("4").Int()
		port := c.Flag("port", "Base port; default: a free one.").Int()
		return func() (err error) {
			if *port == 0 {
				if *port, err = servers.FreePorts(*n + 1); err != nil {
					return err
				}
			}
			m, err := servers.StartMachines(ctx, *dir, *n, *port, os.Getenv("PATH"), false)
			if err != nil {
				return err
			}
			fmt.Println("ssh -F", m.Config(), "gen1")
			return nil
		}
	})
	command("stop", "Stop everything in a folder; the data stays.", func(c *kingpin.CmdClause) func() error {
		dir := c.Arg("dir", "Folder of servers or of monitoring.").Required().ExistingDir()
		return func() error {
			g, err := servers.Open(*dir)
			if err == nil {
				return g.Stop(ctx)
			}
			if machines, machinesErr := servers.OpenMachines(*dir); machinesErr == nil {
				return machines.Stop()
			}
			m, monitoringErr := servers.OpenMonitoring(*dir)
			if monitoringErr != nil {
				return err
			}
			return m.Stop(ctx)
		}
	})
	command("status", "Print a line for each server or program of a folder.", func(c *kingpin.CmdClause) func() error {
		dir := c.Arg("dir", "Folder of servers or of monitoring.").Required().ExistingDir()
		return func() error {
			g, err := servers.Open(*dir)
			if err == nil {
				return list(g.Status(ctx))
			}
			m, monitoringErr := servers.OpenMonitoring(*dir)
			if monitoringErr != nil {
				return err
			}
			if url := m.Dashboard(); url != "" {
				fmt.Println("dashboard", url)
			}
			return list(m.Status())
		}
	})

	server := func(name, help string, more func(*kingpin.CmdClause) func(*servers.Group, int) error) {
		command(name, help, func(c *kingpin.CmdClause) func() error {
			dir := c.Arg("dir", "Folder of the servers.").Required().ExistingDir()
			n := c.Arg("server", "Number of the server.").Required().Int()
			act := more(c)
			return func() error {
				g, err := servers.Open(*dir)
				if err != nil {
					return err
				}
				if *n < 1 || *n > g.N {
					return fmt.Errorf("servers 1 to %d are in %s, not %d", g.N, *dir, *n)
				}
				return act(g, *n)
			}
		})
	}
	simple := func(act func(*servers.Group, int) error) func(*kingpin.CmdClause) func(*servers.Group, int) error {
		return func(*kingpin.CmdClause) func(*servers.Group, int) error { return act }
	}
	server("kill", "End a server as a crash would.", simple((*servers.Group).Kill))
	server("pause", "Stop a server by SIGSTOP.", simple((*servers.Group).Pause))
	server("resume", "Continue a paused server.", simple((*servers.Group).Resume))
	server("rejoin", "Start a dead server again.", simple(func(g *servers.Group, n int) error { return g.Rejoin(ctx, n) }))
	server("limit", "Leave a server, or its appliers, a part of one core.", func(c *kingpin.CmdClause) func(*servers.Group, int) error {
		percent := c.Arg("percent", "Percent of one core.").Default("5").Int()
		return func(g *servers.Group, n int) error { return g.Limit(ctx, n, *percent) }
	})
	server("unlimit", "Take limit back.", simple(func(g *servers.Group, n int) error { return g.Unlimit(ctx, n) }))
	server("lag", "Let a server fall behind without holding the others.", simple(func(g *servers.Group, n int) error { return g.Lag(ctx, n) }))
	server("unlag", "Take lag back.", simple(func(g *servers.Group, n int) error { return g.Unlag(ctx, n) }))
	server("flow-control-limit", "Set gcs.fc_limit of a Galera node.", func(c *kingpin.CmdClause) func(*servers.Group, int) error {
		limit := c.Arg("limit", "Write sets in the node's queue.").Required().Int()
		return func(g *servers.Group, n int) error { return g.SetFlowControlLimit(ctx, n, *limit) }
	})
	server("sql", "Run statements from standard input as administrator.", simple(func(g *servers.Group, n int) error {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		rows, err := g.Query(ctx, n, string(text))
		for _, row := range rows {
			fmt.Println(strings.Join(row, "\t"))
		}
		return err
	}))
	command("unpack-mysql9", "Fetch MySQL 9 of Debian sid (100 MB) and unpack it, once.", func(*kingpin.CmdClause) func() error {
		return func() error { return servers.UnpackMySQL9(ctx) }
	})

	chosen := kingpin.MustParse(app.Parse(os.Args[1:]))
	if err := commands[chosen](); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func list(lines []string) error {
	for _, line := range lines {
		fmt.Println(line)
	}
	return nil
}
