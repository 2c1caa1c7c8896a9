//go:build e2e

package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/tests/e2e/galera"
)

// One sweep over the number of threads prints what articles about clusters print: throughput, latency, and the CPU of
// each node. Each node has its own node_exporter, which sees a machine that only runs this node.
func TestSweepHasCPUOfEachNode(t *testing.T) {
	waitSynced(t)
	dir := t.TempDir()
	var machines []*oneProcess
	var targets strings.Builder
	targets.WriteString("targets:\n")
	for n := 1; n <= galera.Nodes; n++ {
		m := newOneProcess(t, filepath.Join(dir, fmt.Sprintf("proc%d", n)), env.Cluster.PID(n))
		machines = append(machines, m)
		fmt.Fprintf(&targets, "  - {name: n%d, engine: mysql, cluster: e2e, address: '%s', user: monitor, password_file: %s/monitor.password, node_exporter: 'http://%s/metrics'}\n",
			n, env.Cluster.Address(n), env.Cluster.Dir, m.exporter(t))
	}
	config := filepath.Join(dir, "benchwatch.yml")
	write(t, config, fmt.Sprintf("data_dir: %s/data\nsample_interval: 1s\n%s", dir, targets.String()))

	sweep := func(args ...string) []byte {
		t.Helper()
		out, err := exec.Command(env.Binary, append([]string{"sweep", "--config.file=" + config}, args...)...).Output()
		if err != nil {
			t.Fatalf("sweep: %v\n%s", err, out)
		}
		return out
	}
	text := string(sweep(append([]string{"--set=threads=1,4", "--"},
		env.Sysbench("oltp_read_write", "--threads={threads}", "--report-interval=1", "--time=8", "run")...)...))
	t.Log(text)
	for n := 1; n <= galera.Nodes; n++ {
		if column := fmt.Sprintf("n%d cpu busy %%", n); !strings.Contains(text, column) {
			t.Errorf("no column %q", column)
		}
	}

	var result struct {
		Combinations []struct {
			Values  map[string]string
			Runs    []string
			Servers []struct {
				Name, Unit string
				Value      float64
			}
		} `json:"combinations"`
	}
	must(t, json.Unmarshal(sweep("--resume=last", "--format=json"), &result))
	lines, err := csv.NewReader(bytes.NewReader(sweep("--resume=last", "--format=csv"))).ReadAll()
	must(t, err)
	if len(result.Combinations) != 2 || len(lines) != 3 {
		t.Fatalf("%d combinations, %d lines of CSV", len(result.Combinations), len(lines))
	}
	page := string(sweep("--resume=last", "--format=html"))
	_, figure, found := strings.Cut(page, "<figcaption>cpu busy by threads")
	figure, _, _ = strings.Cut(figure, "</figure>")
	if !found {
		t.Error("the HTML page has no figure of the CPU")
	}
	for i, c := range result.Combinations {
		run := rundir.At(filepath.Join(dir, "data"), c.Runs[0])
		h, err := record.Read(t.Context(), run, registry.Tools)
		must(t, err)
		var different []float64
		for n := 1; n <= galera.Nodes; n++ {
			name := fmt.Sprintf("n%d", n)
			j := indexOf(h.Hosts, name)
			if j < 0 {
				t.Fatalf("no machine %s in the record", name)
			}
			window := h.Hosts[j].Sampled
			want := machines[n-1].busy(h.At(window.From), h.At(window.To))
			got := math.NaN()
			for _, s := range c.Servers {
				if s.Name == name+" cpu busy" && s.Unit == "ratio" {
					got = s.Value
				}
			}
			t.Logf("%s threads: %s %.1f %%, by the kernel %.1f %%", c.Values["threads"], name, got*100, want*100)
			// A sample is taken within some tenths of a second of its tick, on a full machine, of the 8 s that the tool runs.
			if !(math.Abs(got-want) < 0.05) {
				t.Errorf("%s threads: %s has %.3f, the kernel %.3f", c.Values["threads"], name, got, want)
			}
			different = append(different, got)
			if v := cell(lines, i+1, name+"_cpu_busy_ratio"); v != got {
				t.Errorf("%s threads: the CSV has %g for %s, JSON %g", c.Values["threads"], v, name, got)
			}
			if !regexp.MustCompile(`>` + name + ` cpu busy %<`).MatchString(page) {
				t.Errorf("the HTML page has no column of %s", name)
			}
			if !strings.Contains(figure, "</svg>"+name+"</li>") {
				t.Errorf("the figure of the CPU has no line of %s", name)
			}
		}
		// The tool writes to the first node, the others only apply.
		if different[0] <= different[1] || different[0] <= different[2] {
			t.Errorf("%s threads: the node with the load has not the most CPU: %.3f", c.Values["threads"], different)
		}
	}
}

func indexOf(hosts []*record.Host, name string) int {
	for i := range hosts {
		if hosts[i].Host == name {
			return i
		}
	}
	return -1
}

// cell returns a number of a table in CSV by the name of its column.
func cell(lines [][]string, row int, column string) float64 {
	for i, name := range lines[0] {
		if name == column {
			if v, err := strconv.ParseFloat(lines[row][i], 64); err == nil {
				return v
			}
		}
	}
	return math.NaN()
}

// oneProcess is a folder like /proc of a machine on which one process runs, with as many cores
// as this one. Only the CPU times are the process's own.
type oneProcess struct {
	dir, process string
	began        time.Time
	first        float64 // seconds

	mu  sync.Mutex
	all []processTime
}

type processTime struct {
	at   time.Time
	used float64 // seconds
}

// ticks are the kernel's, of a hundredth of a second on all of Debian's machines; virtual is
// the number of cores.
const ticks, virtual = 100, 2

func newOneProcess(t *testing.T, dir string, pid int) *oneProcess {
	t.Helper()
	p := &oneProcess{dir: dir, process: fmt.Sprintf("/proc/%d/stat", pid), began: time.Now()}
	must(t, os.Mkdir(dir, 0o755))
	for _, name := range []string{"diskstats", "loadavg", "meminfo", "mounts", "net", "pressure", "self", "sys", "vmstat", "1"} {
		must(t, os.Symlink(filepath.Join("/proc", name), filepath.Join(dir, name)))
	}
	user, system, err := p.times()
	must(t, err)
	p.first = user + system
	must(t, p.update())
	done, stop := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if err := p.update(); err != nil {
				t.Errorf("the node's CPU: %v", err)
				return
			}
		}
	}()
	return p
}

// times returns the CPU time of the process in seconds.
func (p *oneProcess) times() (user, system float64, err error) {
	text, err := os.ReadFile(p.process)
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err = strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, 0, err
	}
	system, err = strconv.ParseFloat(fields[12], 64)
	return user / ticks, system / ticks, err
}

// update replaces the machine's stat, as the kernel writes it.
func (p *oneProcess) update() error {
	user, system, err := p.times()
	if err != nil {
		return err
	}
	now := time.Now()
	idle := virtual*now.Sub(p.began).Seconds() - (user + system - p.first)
	line := func(name string, share float64) string {
		return fmt.Sprintf("%s %.0f 0 %.0f %.0f 0 0 0 0 0 0\n", name, user*ticks*share, system*ticks*share, max(0, idle)*ticks*share)
	}
	var b strings.Builder
	b.WriteString(line("cpu ", 1))
	for core := range virtual {
		b.WriteString(line(fmt.Sprintf("cpu%d", core), 1.0/virtual))
	}
	fmt.Fprintf(&b, "intr 0\nctxt 0\nbtime %d\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n", p.began.Unix())
	file := filepath.Join(p.dir, "stat")
	if err := os.WriteFile(file+".new", []byte(b.String()), 0o644); err != nil {
		return err
	}
	p.mu.Lock()
	p.all = append(p.all, processTime{now, user + system})
	p.mu.Unlock()
	return os.Rename(file+".new", file)
}

// exporter starts the machine's node_exporter and returns its address.
func (p *oneProcess) exporter(t *testing.T) string {
	t.Helper()
	address := agents.FreeAddress(t)
	agents.Start(t, "prometheus-node-exporter", "--log.level=error", "--no-collector.diskstats", "--path.procfs="+p.dir, "--web.listen-address="+address)
	agents.Wait(t, 20*time.Second, "node_exporter", func() error {
		_, err := agents.Get("http://" + address + "/")
		return err
	})
	return address
}

// busy returns the share of the machine's cores that were in use between two moments.
func (p *oneProcess) busy(from, to time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	near := func(at time.Time) processTime {
		best := p.all[0]
		for _, one := range p.all {
			if one.at.Sub(at).Abs() < best.at.Sub(at).Abs() {
				best = one
			}
		}
		return best
	}
	a, b := near(from), near(to)
	return (b.used - a.used) / (b.at.Sub(a.at).Seconds() * virtual)
}
