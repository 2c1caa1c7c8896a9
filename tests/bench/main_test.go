//go:build bench

// Package bench compares the cost of observing with other programs that do the same, in the same run on the same
// machine. `make bench` runs it. Each figure is a sub-benchmark named …/program=NAME, so that benchstat -col /program
// compares several runs; a table of all figures follows at the end.
//
// BENCHWATCH_BEFORE names another benchwatch to measure, such as a build of the previous commit. BENCHWATCH_BEFORE_READ
// is the command of its ./tests/bench/read.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// The programs that are measured.
const (
	ours   = "benchwatch"
	before = "before"
)

// budget is the limit of each figure on an idle machine, by figure and unit.
var budget = map[string]string{
	"Parse/log=sysbench-intervals lines/cpu-s":        ">= 40 times mtail",
	"Parse/log=sysbench-intervals allocs/line":        "0",
	"Parse/log=sysbench-intervals-ts lines/cpu-s":     ">= 20 times mtail",
	"Parse/log=sysbench-intervals-docker lines/cpu-s": ">= 20 times mtail",
	"LineToMetrics p99-ms":                            "<= 10",
	"Start version-cpu-ms":                            "<= 20",
	"Start first-sample-ms":                           "<= 150",
	"Scrape/targets=3 cpu-ms/scrape":                  "<= 0.5 times plain client_golang",
	"Scrape/targets=115 cpu-ms/scrape":                "<= 0.5 times plain client_golang",
	"Long/run=intervals/command=report MiB":           "<= 200",
	"Long/run=intervals/command=report cpu-s":         "<= 12",
	"Long/run=intervals/command=export MiB":           "<= 200",
	"Long/run=intervals/command=export-csv cpu-s":     "<= 30",
	"Long/run=intervals/command=export-json cpu-s":    "<= 30",
	"Long/run=week/command=page MiB":                  "<= 64",
	"ManyTargets/dead=0 cpu-%/target":                 "<= 0.08",
	"Observe MiB":                                     "<= 24",
	"Observe cpu-%":                                   "<= 0.4",
	"Rounds resolution-%":                             "<= 1",
}

var dir string // for everything that is made

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if dir, err = os.MkdirTemp("", "benchwatch-bench."); err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // the servers' own user passes through
		return 1, err
	}
	code = m.Run()
	if running != nil {
		err = running.Stop(context.Background())
	}
	printTable(os.Stdout)
	return code, err
}

var running *servers.Group

// database returns a primary and two replicas with tables for sysbench, which are started
// when first needed.
func database() (g *servers.Group, err error) {
	if running != nil {
		return running, nil
	}
	g, err = servers.Start(context.Background(), filepath.Join(dir, "servers"), servers.MariaDB, servers.Options{Servers: 3, Attached: true})
	if err != nil {
		return nil, err
	}
	running = g
	if out, err := exec.Command("sysbench", sysbench(g, "oltp_read_write", "prepare")...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("prepare tables: %w\n%s", err, out)
	}
	return g, nil
}

// sysbench returns the arguments of a sysbench on server 1.
func sysbench(g *servers.Group, args ...string) []string {
	return append([]string{"--config-file=" + filepath.Join(g.Dir, "sysbench.cnf"), "--tables=4", "--table-size=20000"}, args...)
}

// values are measurements by unit.
type values map[string]float64

type row struct {
	figure, unit string
	programs     []string
	values       values // by program
}

var table []*row

// measure runs f once as the sub-benchmark of a program and records what it returns.
func measure(b *testing.B, program string, f func(b *testing.B) values) {
	figure := strings.TrimPrefix(b.Name(), "Benchmark")
	b.Run("program="+program, func(b *testing.B) {
		found := f(b)
		b.ReportMetric(0, "ns/op") // hides it: the time of a measurement means nothing
		for unit, v := range found {
			b.ReportMetric(v, unit)
			i := slices.IndexFunc(table, func(r *row) bool { return r.figure == figure && r.unit == unit })
			if i < 0 {
				i = len(table)
				table = append(table, &row{figure: figure, unit: unit, values: values{}})
			}
			table[i].programs = append(table[i].programs, program)
			table[i].values[program] = v
		}
	})
}

// builds calls f for benchwatch, and for the earlier build if there is one.
func builds(f func(program, binary string)) {
	root, err := servers.Repository()
	if err != nil {
		panic(err)
	}
	f(ours, cmp.Or(os.Getenv("BENCHWATCH"), filepath.Join(root, "benchwatch")))
	if binary := os.Getenv("BENCHWATCH_BEFORE"); binary != "" {
		f(before, binary)
	}
}

func printTable(to io.Writer) {
	slices.SortFunc(table, func(a, b *row) int { return cmp.Or(cmp.Compare(a.figure, b.figure), cmp.Compare(a.unit, b.unit)) })
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nFIGURE\tUNIT\tBENCHWATCH\tBEFORE\tRATIO\tBUDGET\tCOMPARED WITH\tTHAT\tRATIO")
	for _, r := range table {
		other, value, ratio := "-", "-", "-"
		for _, p := range r.programs {
			if p != ours && p != before {
				other, value, ratio = p, number(r.values[p]), quotient(r.values, p)
			}
		}
		old := "-"
		if v, ok := r.values[before]; ok {
			old = number(v)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.figure, r.unit, number(r.values[ours]), old, quotient(r.values, before),
			cmp.Or(budget[r.figure+" "+r.unit], "-"), other, value, ratio)
	}
	w.Flush()
}

// quotient returns our value as a multiple of the other program's.
func quotient(v values, other string) string {
	if v[other] == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", v[ours]/v[other])
}

// number prints four digits, or whole numbers with their thousands separated.
func number(v float64) string {
	if v < 1000 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	digits := strconv.FormatInt(int64(v), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func must[T any](b *testing.B, v T, err error) T {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// cpuOf returns the CPU seconds of a program that runs to its end, and what it printed.
func cpuOf(b *testing.B, command ...string) (seconds float64, out string) {
	b.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := errors.Join(servers.StartAttached(cmd), cmd.Wait()); err != nil {
		b.Fatalf("%s: %v: %s", filepath.Base(command[0]), err, stderr.String())
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), stdout.String()
}

// daemon is a program under measurement that serves HTTP.
type daemon struct {
	b       *testing.B
	cmd     *exec.Cmd
	address string
}

// start runs a program until the benchmark ends, and waits until a path of it answers.
func start(b *testing.B, address, path string, command ...string) *daemon {
	b.Helper()
	d := &daemon{b: b, cmd: exec.Command(command[0], command[1:]...), address: address}
	if err := servers.StartAttached(d.cmd); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(d.stop)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err := d.tryGet(path)
		if err == nil {
			return d
		}
		if time.Now().After(end) {
			b.Fatalf("%s does not answer: %v", filepath.Base(command[0]), err)
		}
	}
}

// stop may be called twice.
func (d *daemon) stop() {
	if d.cmd.ProcessState != nil {
		return
	}
	_ = d.cmd.Process.Signal(os.Interrupt)
	insist := time.AfterFunc(10*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer insist.Stop()
	_ = d.cmd.Wait() // its status does not matter
}

// get reads a page as Prometheus would.
func (d *daemon) get(path string) string {
	d.b.Helper()
	text, err := d.tryGet(path)
	return must(d.b, text, err)
}

func (d *daemon) tryGet(path string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+d.address+path, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	return string(body), err
}

// usage returns the CPU seconds so far.
func (d *daemon) usage() (cpu float64) {
	d.b.Helper()
	return statOf(d.b, d.cmd.Process.Pid).CPUTime()
}

// memory returns the resident MiB, and the private part of them. The rest are pages of the program, which are in the
// page cache anyway and which the kernel maps in pieces of any size.
func (d *daemon) memory() (resident, private float64) {
	d.b.Helper()
	p, err := procfs.NewProc(d.cmd.Process.Pid)
	must(d.b, p, err)
	status, err := p.NewStatus()
	must(d.b, status, err)
	return float64(status.VmRSS) / (1 << 20), float64(status.RssAnon) / (1 << 20)
}

func readStat(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

func statOf(b *testing.B, pid int) procfs.ProcStat {
	b.Helper()
	stat, err := readStat(pid)
	return must(b, stat, err)
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, l, err)
	defer l.Close()
	return l.Addr().String()
}

// startAgent starts an agent with a new data directory.
func startAgent(b *testing.B, binary, config string) (d *daemon, file string) {
	b.Helper()
	return startAgentIn(b, b.TempDir(), binary, config)
}

// startAgentIn starts an agent with the configuration and the folder data in a folder.
func startAgentIn(b *testing.B, folder, binary, config string) (d *daemon, file string) {
	b.Helper()
	file = filepath.Join(folder, "benchwatch.yml")
	write(b, file, "data_dir: "+folder+"/data\n"+config)
	address := freeAddress(b)
	return start(b, address, "/-/ready", binary, "agent", "--config.file="+file, "--web.listen-address="+address, "--log.level=error"), file
}

func write(b *testing.B, file, text string) {
	b.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// targets names n targets over the three servers.
func targets(b *testing.B, n int) string {
	b.Helper()
	g, err := database()
	must(b, g, err)
	var s strings.Builder
	s.WriteString("targets:\n")
	for i := range n {
		s.WriteString(target(g, fmt.Sprintf("t%d", i+1), g.Address(i%3+1)))
	}
	return s.String()
}

func target(g *servers.Group, name, address string) string {
	return fmt.Sprintf("  - {name: %s, engine: mysql, address: '%s', user: monitor, password_file: %s/monitor.password}\n", name, address, g.Dir)
}
