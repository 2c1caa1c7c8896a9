//go:build bench

package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// BenchmarkLineToMetrics measures the time from the writing of a line to its value in
// /metrics.
func BenchmarkLineToMetrics(b *testing.B) {
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			log := longLog(b, 1)
			d, _ := startAgent(b, binary, fmt.Sprintf("logs:\n  - {path: '%s', tool: sysbench}\n", log))
			return lineToMetrics(d, log, "benchwatch_run_operations_per_second{")
		})
	})
	measure(b, "mtail", func(b *testing.B) values {
		log, address := longLog(b, 1), freeAddress(b)
		host, port, _ := strings.Cut(address, ":")
		d := start(b, address, "/metrics", "mtail", "--address="+host, "--port="+port, "--logs="+log, "--log_dir="+b.TempDir(), "--progs=mtail/sysbench")
		return lineToMetrics(d, log, "operations_per_second{")
	})
}

// lineToMetrics appends lines with different values, and scrapes until each appears.
func lineToMetrics(d *daemon, log, series string) values {
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	must(d.b, f, err)
	defer f.Close()
	var times []time.Duration
	for i := range 301 { // the first one shows that the log is followed at all
		time.Sleep(20*time.Millisecond + rand.N(40*time.Millisecond)) // lines come at any time
		value := strconv.Itoa(10001 + i)
		line := fmt.Sprintf("[ %ds ] thds: 4 tps: %s.00 qps: 20.00 (r/w/o: 10.00/5.00/5.00) lat (ms,99%%): 1.00 err/s: 0.00 reconn/s: 0.00\n", i+2, value)
		written := time.Now()
		must(d.b, 0, writeString(f, line))
		for !shows(d.get("/metrics"), series, value) {
			if time.Since(written) > 20*time.Second {
				d.b.Fatalf("%s never had %s", series, value)
			}
		}
		if i > 0 {
			times = append(times, time.Since(written))
		}
	}
	slices.Sort(times)
	at := func(share float64) float64 { return times[int(share*float64(len(times)))].Seconds() * 1000 }
	return values{"p50-ms": at(0.5), "p99-ms": at(0.99)}
}

func writeString(f *os.File, text string) error {
	_, err := f.WriteString(text)
	return err
}

func shows(text, series, value string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, series) && strings.Contains(line, `op="transaction"`) {
			fields := strings.Fields(line[strings.LastIndexByte(line, '}')+1:])
			if len(fields) > 0 && strings.TrimSuffix(fields[0], ".0") == value {
				return true
			}
		}
	}
	return false
}

// BenchmarkStart measures what the program itself costs: the CPU time of --version, and the time from the start of
// the agent to its first sample of a server.
func BenchmarkStart(b *testing.B) {
	config := targets(b, 1)
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			const times = 20
			cpu := 0.0
			for range times {
				seconds, _ := cpuOf(b, binary, "--version")
				cpu += seconds
			}
			var waits []float64
			for range 5 {
				began := time.Now()
				d, _ := startAgent(b, binary, config)
				for !strings.Contains(d.get("/metrics"), "benchwatch_db_up{") {
					if time.Since(began) > 20*time.Second {
						b.Fatal("no sample of the server")
					}
					time.Sleep(2 * time.Millisecond)
				}
				waits = append(waits, 1000*time.Since(began).Seconds())
				d.stop()
			}
			return values{"version-cpu-ms": 1000 * cpu / times, "first-sample-ms": median(waits)}
		})
	})
}

// BenchmarkScrape compares the CPU time of a scrape with the time for as many constant gauges of
// plain client_golang, for few targets and for about 10,000 series.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{3, 115} {
		b.Run(fmt.Sprintf("targets=%d", n), func(b *testing.B) { scrapeTargets(b, n) })
	}
}

func scrapeTargets(b *testing.B, n int) {
	config, series := targets(b, n), 0
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			d, _ := startAgent(b, binary, config)
			time.Sleep(2 * time.Second) // two ticks
			cost, n := scrapeCost(d)
			if program == ours {
				series = n
			}
			return values{"cpu-ms/scrape": cost, "series": float64(n)}
		})
	})
	measure(b, "client_golang", func(b *testing.B) values {
		program, address := filepath.Join(b.TempDir(), "plain"), freeAddress(b)
		cpuOf(b, "go", "build", "-o", program, "./plain")
		cost, n := scrapeCost(start(b, address, "/metrics", program, address, strconv.Itoa(series)))
		return values{"cpu-ms/scrape": cost, "series": float64(n)}
	})
}

// scrapeCost returns the CPU milliseconds of a scrape and its series. It first measures the
// daemon's other work and subtracts it.
func scrapeCost(d *daemon) (milliseconds float64, series int) {
	const quiet, scrapes = 3 * time.Second, 300
	before := d.usage()
	time.Sleep(quiet)
	begin := d.usage()
	idle, started := (begin-before)/quiet.Seconds(), time.Now()
	for range scrapes {
		text := d.get("/metrics")
		if series == 0 {
			for line := range strings.Lines(text) {
				if line[0] != '#' {
					series++
				}
			}
		}
	}
	end := d.usage()
	return 1000 * (end - begin - idle*time.Since(started).Seconds()) / scrapes, series
}

// BenchmarkObserve measures the agent with three targets and a run, scraped once a second,
// and three mysqld_exporters scraped as often.
func BenchmarkObserve(b *testing.B) {
	config := targets(b, 3)
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			d, file := startAgent(b, binary, config)
			// A benchmark that does not use the servers, so that all programs are measured under the same load; its
			// reports are sysbench's own.
			load := exec.Command(binary, append(recording(binary, file, 3), "sysbench", "cpu", "--report-interval=1", "--time=300", "run")...)
			must(b, 0, servers.StartAttached(load))
			b.Cleanup(func() {
				_ = load.Process.Signal(os.Interrupt)
				_ = load.Wait() // interrupted
			})
			return observing(d)
		})
	})
	measure(b, "3 mysqld_exporters", func(b *testing.B) values {
		g, err := database()
		must(b, g, err)
		var all []*daemon
		for n := 1; n <= 3; n++ {
			file, address := filepath.Join(b.TempDir(), "exporter.cnf"), freeAddress(b)
			must(b, 0, servers.WriteExporterConfig(file, g, n))
			all = append(all, start(b, address, "/metrics", "prometheus-mysqld-exporter", "--config.my-cnf="+file, "--web.listen-address="+address, "--log.level=error"))
		}
		return observing(all...)
	})
}

// recording returns the arguments of `benchwatch run`, up to the command, for a run whose
// record has n targets. Builds without the flag record all of them anyway.
func recording(binary, file string, n int) []string {
	args := []string{"run", "--config.file=" + file}
	if help, _ := exec.Command(binary, "help", "run").CombinedOutput(); strings.Contains(string(help), "--targets") {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("t%d", i+1))
		}
		args = append(args, "--targets="+strings.Join(names, ","))
	}
	return append(args, "--")
}

// observing scrapes programs once a second and returns their total cost.
func observing(all ...*daemon) values {
	const window = time.Minute
	scrape := func(window time.Duration) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for end := time.Now().Add(window); time.Now().Before(end); <-tick.C {
			for _, d := range all {
				d.get("/metrics")
			}
		}
	}
	usage := func() (cpu float64) {
		for _, d := range all {
			cpu += d.usage()
		}
		return cpu
	}
	scrape(3 * time.Second)
	begin := usage()
	scrape(window)
	v := values{"cpu-%": 100 * (usage() - begin) / window.Seconds()}
	for _, d := range all {
		resident, private := d.memory()
		v["MiB"] += resident
		v["private-MiB"] += private
	}
	return v
}

// BenchmarkEndedRuns measures an agent without targets, scraped once a second, that finds 10,000
// ended runs and shows 256 of them.
func BenchmarkEndedRuns(b *testing.B) {
	builds(func(program, binary string) {
		measure(b, program, func(b *testing.B) values {
			folder := b.TempDir()
			file := filepath.Join(folder, "benchwatch.yml")
			write(b, file, "data_dir: "+folder+"/data\n")
			const first = "run00000"
			cpuOf(b, binary, "run", "--config.file="+file, "--run-id="+first, "--linger=0s", "--", "sysbench", "cpu", "--report-interval=1", "--time=2", "run")
			runs := filepath.Join(folder, "data", "runs")
			files, err := filepath.Glob(filepath.Join(runs, first, "*"))
			must(b, files, err)
			for i := range 9999 {
				id := fmt.Sprintf("run%05d", i+1)
				must(b, 0, os.Mkdir(filepath.Join(runs, id), 0o755))
				for _, file := range files {
					text, err := os.ReadFile(file)
					must(b, text, err)
					write(b, filepath.Join(runs, id, filepath.Base(file)), strings.ReplaceAll(string(text), first, id))
				}
			}
			d, _ := startAgentIn(b, folder, binary, "")
			return observing(d)
		})
	})
}

// BenchmarkManyTargets measures 40 live targets at 1 Hz, alone and with ten dead ones among
// them: half refuse connections, half accept them and never answer.
func BenchmarkManyTargets(b *testing.B) {
	live := targets(b, 40)
	g, err := database()
	must(b, g, err)
	dead := ""
	for i := range 10 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(b, l, err)
		dead += target(g, fmt.Sprintf("dead%d", i), l.Addr().String())
		if i%2 == 0 {
			l.Close()
		} else {
			defer l.Close()
		}
	}
	for name, config := range map[string]string{"dead=0": live, "dead=10": live + dead} {
		b.Run(name, func(b *testing.B) {
			builds(func(program, binary string) {
				measure(b, program, func(b *testing.B) values {
					d, _ := startAgent(b, binary, config)
					return sampling(d)
				})
			})
		})
	}
}

// sampling watches the ticks of 40 live targets. worst-tick-ms is the greatest deviation
// from a second between two samples of one of them.
func sampling(d *daemon) values {
	const window = 20 * time.Second
	time.Sleep(3 * time.Second)
	before := d.usage()
	last, ticks, worst := map[string]float64{}, 0, 0.0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(window); time.Now().Before(end); <-tick.C {
		for line := range strings.Lines(d.get("/metrics")) {
			if !strings.HasPrefix(line, "benchwatch_db_sample_timestamp_seconds{") {
				continue
			}
			series, value, _ := strings.Cut(line, "} ")
			at, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			must(d.b, at, err)
			if previous := last[series]; previous != 0 && at != previous {
				worst = max(worst, math.Abs(at-previous-1))
				ticks++
			}
			last[series] = at
		}
	}
	if len(last) != 40 || ticks < 40*10 {
		d.b.Fatalf("%d of 40 targets are live, %d samples", len(last), ticks)
	}
	after := d.usage()
	resident, private := d.memory()
	cpu := 100 * (after - before) / window.Seconds()
	return values{"cpu-%": cpu, "cpu-%/target": cpu / float64(len(last)), "MiB": resident, "private-MiB": private, "worst-tick-ms": 1000 * worst}
}

func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
