package figures

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/need"
)

// auroraTables are the tables of the article by workload and engine: concurrency, thousand queries
// per second, CPU in %, mean time in ms.
var auroraTables = map[string]string{
	"ro/mysql":  "400 112 98 39.27, 1000 108 99 103.08, 2000 95 99 230.70, 3000 88 99 365.23, 4000 44 90 974.83, 5000 17 57 4106.50, 6000 8.9 39 8076.35",
	"ro/aurora": "400 440 90 11.71, 1000 680 96 19.12, 2000 776 97 33.10, 3000 748 98 51.32, 4000 726 98 72.03, 5000 683 98 93.36, 6000 659 98 114.96",
	"rw/mysql":  "400 84 75 68.94, 1000 88 81 168.17, 2000 76 90 384.80, 3000 56 69 778.60, 4000 29 73 2073.83, 5000 28 81 2569.24, 6000 16 87 5815.39",
	"rw/aurora": "400 160 77 38.89, 1000 188 92 81.51, 2000 184 97 163.37, 3000 172 97 259.77, 4000 152 98 391.70, 5000 140 98 534.18, 6000 128 98 638.33",
}

// TestAurora is four generators of sysbench 0.5 as one run, and settings across the top. The CPU comes from CloudWatch,
// one value per minute, in a Prometheus.
func TestAurora(t *testing.T) {
	need.Program(t, "prometheus")
	need.Program(t, "promtool")
	l := newLab(t)
	at := time.Now().Add(-24 * time.Hour).Truncate(time.Minute)
	points := map[string][]string{} // of the CPU, by engine
	for path, cells := range auroraTables {
		engine := path[3:]
		for cell := range strings.SplitSeq(cells, ", ") {
			var threads int
			var qps, busy, avg float64
			if _, err := fmt.Sscan(cell, &threads, &qps, &busy, &avg); err != nil {
				t.Fatal(err)
			}
			at = at.Add(10 * time.Minute)
			for generator := range 4 {
				tps := float64(threads) / avg * 1000 / 4
				name := fmt.Sprintf("%s/%d/client%d.log", path, threads, generator)
				l.log(name, "%s", sysbench05(threads/4, 300, tps, qps*1000/4, avg))
				end := at.Add(5 * time.Minute)
				if err := os.Chtimes(filepath.Join(l.logs, name), end, end); err != nil {
					t.Fatal(err)
				}
			}
			for minute := -1; minute < 7; minute++ { // idle before and after the run
				value := 1.0
				if minute >= 0 && minute < 5 {
					value = busy
				}
				points[engine] = append(points[engine], fmt.Sprintf("aws_rds_cpuutilization_average{dimension_DBInstanceIdentifier=%q} %g %d\n", "bench-"+engine, value, at.Add(time.Duration(minute)*time.Minute).Unix()))
			}
		}
	}
	config := l.cloudWatch(strings.Join(points["mysql"], "") + strings.Join(points["aurora"], ""))
	for path := range auroraTables {
		l.run("runs", "import", "--config.file="+config, "--targets="+path[3:], "--label-from={workload}/{engine}/*/client{generator}.log", "--label=suite=aurora", filepath.Join(l.logs, path))
	}
	for workload, rows := range map[string][]string{
		"ro": {"measure threads → 400 1000 2000 3000 4000 5000 6000\n",
			"qps engine=mysql 112000.00 108000.00 95000.00 88000.00 44000.00 17000.00 8900.00\n",
			"qps engine=aurora 440000.00 680000.00 776000.00 748000.00 726000.00 683000.00 659000.00\n",
			"cpu % engine=mysql 98 99 99 99 90 57 39\n",
			"avg ms engine=aurora 11.71 19.12 33.10 51.32 72.03 93.36 114.96\n"},
		"rw": {"qps engine=mysql 84000.00 88000.00 76000.00 56000.00 29000.00 28000.00 16000.00\n",
			"cpu % engine=aurora 77 92 97 97 98 98 98\n",
			"avg ms engine=mysql 68.94 168.17 384.80 778.60 2073.83 2569.24 5815.39\n"},
	} {
		command := []string{"compare", "--config.file=" + config, "workload=" + workload + ",engine=mysql", "workload=" + workload + ",engine=aurora", "--x=threads"}
		l.wants(l.run(append(command, "--measure=qps,cpu,avg")...), rows...)
		l.figure("aurora-"+workload, append(command, "--measure=qps")...)
	}
}

// cloudWatch starts a Prometheus with these points, and returns a configuration with it and the two targets.
func (l *lab) cloudWatch(points string) string {
	l.Helper()
	dir := l.TempDir()
	data, openMetrics, config := filepath.Join(dir, "data"), filepath.Join(dir, "points"), filepath.Join(dir, "prometheus.yml")
	for path, text := range map[string]string{openMetrics: "# TYPE aws_rds_cpuutilization_average gauge\n" + points + "# EOF\n", config: "global: {}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			l.Fatal(err)
		}
	}
	if out, err := exec.Command("promtool", "tsdb", "create-blocks-from", "openmetrics", openMetrics, data).CombinedOutput(); err != nil {
		l.Fatalf("%v\n%s", err, out)
	}
	p := agents.Prometheus{Address: agents.FreeAddress(l)}
	agents.Start(l, "prometheus", "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+p.Address, "--log.level=warn")
	agents.Wait(l, time.Minute, "Prometheus has the points", func() error {
		found, err := p.Query("count(count_over_time(aws_rds_cpuutilization_average[2d]))")
		if err == nil && (len(found) != 1 || found[0] != 2) {
			err = fmt.Errorf("%v series", found)
		}
		return err
	})
	own := filepath.Join(dir, "benchwatch.yml")
	text := fmt.Sprintf(`prometheus: {url: "http://%s"}
targets:
  - {name: mysql, engine: mysql, address: "127.0.0.1:1", cloudwatch: bench-mysql}
  - {name: aurora, engine: mysql, address: "127.0.0.1:2", cloudwatch: bench-aurora}
`, p.Address)
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
	return own
}
