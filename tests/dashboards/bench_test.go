//go:build bench

package dashboards

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// BenchmarkDashboards prints what one load of each dashboard costs Prometheus: how many queries
// its open rows, annotations and variables are, the CPU seconds of all of them, and the slowest.
// The range is 15 minutes with the newest run of PROMETHEUS_URL, by default of a Prometheus that
// watches a Galera cluster under load for two minutes.
func BenchmarkDashboards(b *testing.B) {
	p := Prometheus{URL: os.Getenv("PROMETHEUS_URL")}
	if p.URL == "" {
		p.URL = watchedCluster(b)
	}
	now := time.Now()
	w := Window{From: now.Add(-15 * time.Minute), To: now}
	ids, err := p.LabelValues(b.Context(), "benchwatch_run_info", "run", w)
	if err != nil || len(ids) == 0 {
		b.Fatalf("no run in the last 15 minutes of %s: %v", p.URL, err)
	}
	w.Variables = map[string]string{"run": ids[len(ids)-1]}
	all, err := Load("../..")
	if err != nil {
		b.Fatal(err)
	}
	// What Prometheus needs by itself, for scrapes and rules.
	const rest = 10 * time.Second
	before := p.cpu(b)
	time.Sleep(rest)
	idle := (p.cpu(b) - before) / rest.Seconds()
	for _, d := range all {
		b.Run("dashboard="+d.Name, func(b *testing.B) {
			const loads = 5 // the counter has steps of 10 ms
			began, before, queries := time.Now(), p.cpu(b), 0
			var slowest time.Duration
			for range loads {
				queries = d.load(b, p, w, &slowest)
			}
			cpu := p.cpu(b) - before - idle*time.Since(began).Seconds()
			b.ReportMetric(0, "ns/op") // hides it: the time of all queries one after the other means nothing
			b.ReportMetric(float64(queries), "queries")
			b.ReportMetric(cpu/loads, "cpu-s/load")
			b.ReportMetric(float64(slowest.Milliseconds()), "slowest-ms")
		})
	}
}

// load runs the queries that Grafana runs when it opens a dashboard, and returns their number.
func (d *Dashboard) load(b *testing.B, p Prometheus, w Window, slowest *time.Duration) (queries int) {
	b.Helper()
	ask := func(what string, f func(context.Context) (int, error)) {
		began := time.Now()
		if _, err := f(b.Context()); err != nil {
			b.Fatalf("%s: %v", what, err)
		}
		*slowest = max(*slowest, time.Since(began))
		queries++
	}
	targets, annotations, variables := d.Queries()
	for _, target := range targets {
		ask(target.Expr, func(ctx context.Context) (int, error) { return p.Ask(ctx, &target, w) })
	}
	for _, a := range annotations {
		ask(a.Name, func(ctx context.Context) (int, error) { return p.AskAnnotation(ctx, &a, w) })
	}
	for _, v := range variables {
		ask(v.Name, func(ctx context.Context) (int, error) { return p.AskVariable(ctx, &v, w) })
	}
	return queries
}

// cpu returns the CPU seconds that Prometheus has used.
func (p Prometheus) cpu(b *testing.B) float64 {
	b.Helper()
	r, err := http.Get(strings.TrimSuffix(p.URL, "/") + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(io.LimitReader(r.Body, 16<<20)); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatal(err)
			}
			return seconds
		}
	}
	b.Fatalf("%s does not count its CPU time", p.URL)
	return 0
}

// watchedCluster returns the address of a Prometheus with a run on a Galera cluster.
func watchedCluster(b *testing.B) string {
	b.Helper()
	root, err := servers.Repository()
	if err != nil {
		b.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "benchwatch-bench.")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // the servers' own user passes through
		b.Fatal(err)
	}
	cluster, err := servers.Start(b.Context(), filepath.Join(dir, "servers"), servers.Galera, servers.Options{Servers: 3, Attached: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cluster.Stop(context.Background()) })
	binary := filepath.Join(root, "benchwatch")
	m, err := servers.StartMonitoring(b.Context(), filepath.Join(dir, "monitoring"), cluster, servers.MonitoringOptions{Cluster: "bench", Binary: binary, Attached: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Stop(context.Background()) })
	tool := []string{"sysbench", "--config-file=" + filepath.Join(cluster.Dir, "sysbench.cnf"), "oltp_read_write", "--tables=2", "--table-size=5000"}
	run := append([]string{binary, "run", "--config.file=" + filepath.Join(m.Dir, "benchwatch.yml"), "--quiet", "--"}, tool...)
	for _, command := range [][]string{append(tool, "prepare"), append(run, "--threads=4", "--time=120", "run")} {
		if out, err := exec.CommandContext(b.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", fmt.Sprint(command), err, out)
		}
	}
	return "http://" + m.Prometheus()
}
