//go:build limits

package limits

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// TestABAgainstLongRuns guards that short alternating blocks have the same result as long runs: for a proxy in front of
// the server, a commit that waits for the disk or does not, and a dropped index. The load has a fixed rate, whose
// latency resolves more than a saturated throughput.
func TestABAgainstLongRuns(t *testing.T) {
	host, port, err := net.SplitHostPort(env.server.Address(1))
	must(t, err)
	proxy := agents.FreeAddress(t)
	_, proxyPort, err := net.SplitHostPort(proxy)
	must(t, err)
	dir := t.TempDir()
	config := filepath.Join(dir, "haproxy.cfg")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\nlisten db\n  bind %s\n  server db %s\n",
		proxy, env.server.Address(1)), 0o644))
	agents.Start(t, "haproxy", "-f", config)
	set(t, "innodb_flush_log_at_trx_commit", "1")
	t.Cleanup(func() { query(t, "CREATE INDEX IF NOT EXISTS k_1 ON sbtest.sbtest1 (k)") })
	sql := "mariadb --no-defaults --protocol=socket --socket=" + filepath.Join(env.server.Dir, "n1", "sock") + " -uroot sbtest -e "
	for _, c := range []struct {
		name, a, b string
		workload   string
		rate       int
		before     string
	}{
		{"a proxy", "port=" + port, "port=" + proxyPort, "oltp_point_select", 300, ""},
		{"commits", "commit=2", "commit=1", "oltp_update_non_index", 60, sql + `"SET GLOBAL innodb_flush_log_at_trx_commit=$BENCHWATCH_COMMIT"`},
		{"an index", "index=CREATE", "index=DROP", "select_random_points", 10, sql + `"$(if [ "$BENCHWATCH_INDEX" = DROP ]; then echo DROP INDEX IF EXISTS k_1 ON sbtest1; else echo 'CREATE INDEX IF NOT EXISTS k_1 ON sbtest1 (k)'; fi)"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			load := func(port string, seconds int) []string {
				return sysbench(c.workload, "--mysql-host="+host, "--mysql-port="+port, "--threads=1", "--percentile=50", fmt.Sprintf("--rate=%d", c.rate), fmt.Sprintf("--time=%d", seconds), "run")
			}
			args := []string{"ab", "--data-dir=" + dir, "--format=json", "--measure=p50", "--max-time=5m", "--a=" + c.a, "--b=" + c.b}
			port := port
			if c.before == "" {
				port = "{port}"
			} else {
				args = append(args, "--before="+c.before)
			}
			cmd := exec.Command(env.binary, append(append(args, "--"), load(port, 5)...)...)
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, &said)
			}
			var result struct {
				ab.Estimate
				Summary, Trust []string
			}
			must(t, json.Unmarshal(out, &result))
			ratio, noise := longRuns(t, c.before, [2]string{c.a, c.b}, func(arm string) []string {
				if name, value, _ := strings.Cut(arm, "="); name == "port" {
					return load(value, 20)
				}
				return load(port, 20)
			})
			t.Logf("%s; %d long runs of each: %+.1f %%, standard error %.1f %%", strings.Join(result.Summary, "; "), longPairs, 100*(ratio-1), 100*noise)
			if result.Verdict != ab.Different || result.Ratio.Value < 1 || result.Low.Value > ratio*(1+3*noise) || result.High.Value < ratio*(1-3*noise) {
				t.Errorf("%s: %s, ratio %v (%v to %v)", result.Verdict, strings.Join(result.Trust, "\n"), result.Ratio, result.Low, result.High)
			}
		})
	}
}

const longPairs = 6

var median = regexp.MustCompile(`lat \(ms,50%\): ([0-9.]+)`)

// longRuns returns the ratio of the median latencies of runs that alternate, and its standard error.
func longRuns(t *testing.T, before string, arms [2]string, command func(arm string) []string) (ratio, noise float64) {
	t.Helper()
	var logs []float64
	for pair := range longPairs {
		var at [2]float64
		for i := range arms {
			i = (i + pair) % 2
			name, value, _ := strings.Cut(arms[i], "=")
			if before != "" {
				hook := exec.Command("sh", "-c", before)
				hook.Env = append(os.Environ(), "BENCHWATCH_"+strings.ToUpper(name)+"="+value)
				if out, err := hook.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			words := command(arms[i])
			out, err := exec.Command(words[0], words[1:]...).Output()
			must(t, err)
			all := median.FindAllSubmatch(out, -1)
			if len(all) < 3 {
				t.Fatalf("few intervals:\n%s", out)
			}
			for _, m := range all[1:] {
				v, err := strconv.ParseFloat(string(m[1]), 64)
				must(t, err)
				at[i] += v / float64(len(all)-1)
			}
		}
		logs = append(logs, math.Log(at[1]/at[0]))
	}
	mean, squares := 0.0, 0.0
	for _, v := range logs {
		mean += v / longPairs
	}
	for _, v := range logs {
		squares += (v - mean) * (v - mean)
	}
	return math.Exp(mean), math.Sqrt(squares / (longPairs - 1) / longPairs)
}
