// Command cmd starts and stops database servers and monitoring on loopback, each in its own folder.
// The demo uses it, too.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/internal/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "servers", Short: "Database servers and monitoring for tests, benchmarks and the demo.",
		SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(start(), monitor(), machines(), stopAll(), status())
	root.AddCommand(
		server("kill", "End a server as a crash would.", simple((*servers.Group).Kill)),
		server("pause", "Stop a server by SIGSTOP.", simple((*servers.Group).Pause)),
		server("resume", "Continue a paused server.", simple((*servers.Group).Resume)),
		server("rejoin", "Start a dead server again.", (*servers.Group).Rejoin),
		number("limit", "PERCENT", 5, "Leave a server, or its appliers, a part of one core, 5 % by default.", (*servers.Group).Limit),
		server("unlimit", "Take limit back.", (*servers.Group).Unlimit),
		server("lag", "Let a server fall behind without holding the others.", (*servers.Group).Lag),
		server("unlag", "Take lag back.", (*servers.Group).Unlag),
		number("flow-control-limit", "LIMIT", 0, "Set gcs.fc_limit of a Galera node.", (*servers.Group).SetFlowControlLimit),
		server("sql", "Run statements from standard input as administrator.", query),
		&cobra.Command{
			Use: "unpack-mysql9", Short: "Fetch MySQL 9 of Debian sid (100 MB) and unpack it, once.", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return servers.Unpack(ctx, "mysql9") },
		})
	if err := root.ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func start() *cobra.Command {
	kinds := fmt.Sprint(servers.Kinds)
	c := &cobra.Command{
		Use: "start KIND DIR", Short: "Start servers in a folder, or start them again with their data. Server N listens on PORT+N.",
		Long: "KIND is one of " + kinds + ".", Args: cobra.ExactArgs(2),
	}
	port := c.Flags().Int("port", 0, "base port; by default a free one")
	n := c.Flags().Int("servers", 0, "how many servers; by default 3 in a cluster, group or replica set and with postgresql, 2 with mysql9, else 1")
	version := c.Flags().String("version", "", fmt.Sprintf(
		"of MongoDB: %s, by default the first; of MariaDB and Galera: %s; of PostgreSQL: %s, by default the installed one",
		strings.Join(servers.MongoDBVersions, ", "), strings.Join(servers.MariaDBVersions, ", "),
		strings.Join(servers.PostgreSQLVersions, ", ")))
	auth := c.Flags().Bool("auth", false, "MongoDB requires a login")
	settings := c.Flags().StringArray("set", nil, "line of the servers' configuration, such as performance_schema=ON; repeatable")
	c.RunE = func(c *cobra.Command, args []string) error {
		kind := servers.Kind(args[0])
		if !slices.Contains(servers.Kinds, kind) {
			return fmt.Errorf("%s: no kind of server: %s", kind, kinds)
		}
		if *n == 0 {
			*n = map[servers.Kind]int{servers.Galera: 3, servers.MySQL9Group: 3, servers.MongoDB: 3, servers.PostgreSQL: 3, servers.MySQL9: 2}[kind]
		}
		g, err := servers.Start(c.Context(), args[1], kind,
			servers.Options{Port: *port, Servers: *n, Settings: *settings, Version: *version, Auth: *auth})
		if err != nil {
			return err
		}
		return list(g.Status(c.Context()))
	}
	return c
}

func monitor() *cobra.Command {
	c := &cobra.Command{
		Use:   "monitor DIR SERVERS",
		Short: "Start Prometheus, Alertmanager, exporters and the agent for a folder of servers; Grafana gets the dashboards if GRAFANA_URL and GRAFANA_TOKEN are set or it is installed.",
		Args:  cobra.ExactArgs(2),
	}
	port := c.Flags().Int("port", 0, "port of Prometheus; the others follow; by default a free one")
	cluster := c.Flags().String("cluster", "", "what the agent calls the servers together")
	binary := c.Flags().String("benchwatch", os.Getenv("BENCHWATCH"),
		"the benchwatch to run, $BENCHWATCH; by default ./benchwatch of the repository")
	c.RunE = func(c *cobra.Command, args []string) error {
		g, err := servers.Open(args[1])
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
		m, err := servers.StartMonitoring(c.Context(), args[0], g,
			servers.MonitoringOptions{Port: *port, Cluster: *cluster, Binary: *binary, Grafana: grafana})
		if err != nil {
			return err
		}
		return list(m.Status())
	}
	return c
}

func machines() *cobra.Command {
	c := &cobra.Command{
		Use: "machines DIR", Short: "Start machines that ssh reaches as gen1, gen2 and so on, all of them this one: an sshd each on loopback, on the ports after PORT.",
		Args: cobra.ExactArgs(1),
	}
	n := c.Flags().Int("number", 4, "how many")
	port := c.Flags().Int("port", 0, "base port; by default a free one")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if *port == 0 {
			if *port, err = servers.FreePorts(*n + 1); err != nil {
				return err
			}
		}
		m, err := servers.StartMachines(c.Context(), args[0], *n, *port, os.Getenv("PATH"), false)
		if err != nil {
			return err
		}
		fmt.Println("ssh -F", m.Config(), "gen1")
		return nil
	}
	return c
}

func stopAll() *cobra.Command {
	return &cobra.Command{Use: "stop DIR", Short: "Stop everything in a folder; the data stays.",
		Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			g, err := servers.Open(args[0])
			if err == nil {
				return g.Stop(c.Context())
			}
			if machines, machinesErr := servers.OpenMachines(args[0]); machinesErr == nil {
				return machines.Stop()
			}
			m, monitoringErr := servers.OpenMonitoring(args[0])
			if monitoringErr != nil {
				return err
			}
			return m.Stop(c.Context())
		}}
}

func status() *cobra.Command {
	return &cobra.Command{Use: "status DIR", Short: "Print a line for each server or program of a folder.",
		Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			g, err := servers.Open(args[0])
			if err == nil {
				return list(g.Status(c.Context()))
			}
			m, monitoringErr := servers.OpenMonitoring(args[0])
			if monitoringErr != nil {
				return err
			}
			if url := m.Dashboard(); url != "" {
				fmt.Println("dashboard", url)
			}
			return list(m.Status())
		}}
}

// server returns a command about one server of a folder.
func server(name, help string, act func(*servers.Group, context.Context, int) error) *cobra.Command {
	return &cobra.Command{Use: name + " DIR SERVER", Short: help,
		Args: cobra.ExactArgs(2), RunE: func(c *cobra.Command, args []string) error {
			g, n, err := open(args)
			if err != nil {
				return err
			}
			return act(g, c.Context(), n)
		}}
}

// number returns a command about one server that takes a number, which may be left out if
// it has a default.
func number(name, argument string, otherwise int, help string, act func(*servers.Group, context.Context, int, int) error) *cobra.Command {
	least := 3
	if otherwise != 0 {
		least, argument = 2, "["+argument+"]"
	}
	return &cobra.Command{Use: name + " DIR SERVER " + argument, Short: help,
		Args: cobra.RangeArgs(least, 3), RunE: func(c *cobra.Command, args []string) error {
			g, n, err := open(args)
			if err != nil {
				return err
			}
			value := otherwise
			if len(args) > 2 {
				if value, err = strconv.Atoi(args[2]); err != nil {
					return err
				}
			}
			return act(g, c.Context(), n, value)
		}}
}

// open returns the group in a folder and the number of one of its servers.
func open(args []string) (*servers.Group, int, error) {
	g, err := servers.Open(args[0])
	if err != nil {
		return nil, 0, err
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 1 || n > g.N {
		return nil, 0, fmt.Errorf("servers 1 to %d are in %s, not %s", g.N, args[0], args[1])
	}
	return g, n, nil
}

func simple(act func(*servers.Group, int) error) func(*servers.Group, context.Context, int) error {
	return func(g *servers.Group, _ context.Context, n int) error { return act(g, n) }
}

func query(g *servers.Group, ctx context.Context, n int) error { //nolint:revive // the order of the methods
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	rows, err := g.Query(ctx, n, string(text))
	for _, row := range rows {
		fmt.Println(strings.Join(row, "\t"))
	}
	return err
}

func list(lines []string) error {
	for _, line := range lines {
		fmt.Println(line)
	}
	return nil
}
