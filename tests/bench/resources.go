package main

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// resources measures the agent with three targets and a run, scraped once a second,
// beside three mysqld_exporters scraped as often.
func (b *bench) resources() error {
	const window = 30 * time.Second
	agent, config, err := b.agent(b.targets(3))
	if err != nil {
		return err
	}
	defer agent.stop()
	// A benchmark that leaves the servers alone, so that both are measured under the
	// same load; its reports are sysbench's own.
	load := exec.Command(b.binary, "run", "--config.file="+config, "--", "sysbench", "cpu", "--report-interval=1", "--time=300", "run")
	if err := load.Start(); err != nil {
		return err
	}
	defer func() {
		_ = load.Process.Signal(os.Interrupt)
		_ = load.Wait() // interrupted
	}()
	var exporters []*daemon
	for n := range 3 {
		e, err := b.exporter(n + 1)
		if err != nil {
			return err
		}
		defer e.stop()
		exporters = append(exporters, e)
	}
	all := append([]*daemon{agent}, exporters...)
	if err := scrapeEverySecond(all, 3*time.Second); err != nil {
		return err
	}
	before := make([]float64, len(all))
	for i, d := range all {
		if before[i], _, err = d.usage(); err != nil {
			return err
		}
	}
	if err := scrapeEverySecond(all, window); err != nil {
		return err
	}
	cpu, resident := make([]float64, 2), make([]int, 2)
	for i, d := range all {
		after, rss, err := d.usage()
		if err != nil {
			return err
		}
		cpu[min(i, 1)] += 100 * (after - before[i]) / window.Seconds()
		resident[min(i, 1)] += rss
	}
	const theirs = "3 mysqld_exporters, 1 Hz"
	b.add(figure{"resident memory, a run and 3 targets", mebibytes(resident[0]), theirs, mebibytes(resident[1]),
		ratio(float64(resident[0]), float64(resident[1])), "<= 30 MiB"})
	b.add(figure{"CPU at 1 Hz, scraped at 1 Hz", percent(cpu[0]), theirs, percent(cpu[1]), ratio(cpu[0], cpu[1]), "<= 0.5 % of a core"})
	return nil
}

func mebibytes(n int) string   { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
func percent(v float64) string { return fmt.Sprintf("%.2f %%", v) }
func seconds(v float64) string { return fmt.Sprintf("%.0f ms", v*1000) }
func scrapeEverySecond(all []*daemon, window time.Duration) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(window); time.Now().Before(end); <-tick.C {
		for _, d := range all {
			if _, err := d.get("/metrics"); err != nil {
				return err
			}
		}
	}
	return nil
}

// exporter starts a mysqld_exporter for server n.
func (b *bench) exporter(n int) (*daemon, error) {
	password, err := os.ReadFile(filepath.Join(b.servers, "monitor.password"))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, fmt.Sprintf("exporter-%d.cnf", n))
	text := fmt.Sprintf("[client]\nhost=127.0.0.1\nport=%d\nuser=monitor\npassword=%s\n", b.port+n, strings.TrimSpace(string(password)))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return startDaemon(address, "/metrics", "prometheus-mysqld-exporter", "--config.my-cnf="+file, "--web.listen-address="+address, "--log.level=error")
}

// manyTargets measures 40 live targets at 1 Hz, alone and with ten dead ones among
// them: half refuse connections, half take them and never answer.
func (b *bench) manyTargets() error {
	alone, err := b.observeMany(b.targets(40))
	if err != nil {
		return err
	}
	var config strings.Builder
	config.WriteString(b.targets(40))
	for i := range 10 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		b.target(&config, fmt.Sprintf("dead%d", i), l.Addr().String())
		if i%2 == 0 {
			l.Close()
		} else {
			defer l.Close()
		}
	}
	with, err := b.observeMany(config.String())
	if err != nil {
		return err
	}
	const compared = "the 40 live ones alone"
	b.add(figure{"40 live + 10 dead targets: CPU", percent(with.cpu), compared, percent(alone.cpu), ratio(with.cpu, alone.cpu), ""})
	b.add(figure{"40 live + 10 dead targets: memory", mebibytes(with.resident), compared, mebibytes(alone.resident), ratio(float64(with.resident), float64(alone.resident)), ""})
	b.add(figure{"40 live + 10 dead targets: worst tick off by", seconds(with.jitter), compared, seconds(alone.jitter), ratio(with.jitter, alone.jitter), ""})
	return nil
}

type observed struct {
	cpu      float64 // percent of a core
	resident int     // bytes
	jitter   float64 // greatest deviation from a second between samples of a live target
}

func (b *bench) observeMany(config string) (o observed, err error) {
	const window = 20 * time.Second
	agent, _, err := b.agent(config)
	if err != nil {
		return o, err
	}
	defer agent.stop()
	time.Sleep(3 * time.Second)
	before, _, err := agent.usage()
	if err != nil {
		return o, err
	}
	last, ticks := map[string]float64{}, 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(window); time.Now().Before(end); <-tick.C {
		text, err := agent.get("/metrics")
		if err != nil {
			return o, err
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "benchwatch_db_sample_timestamp_seconds{") {
				continue
			}
			i := strings.LastIndexByte(line, ' ')
			at, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
			if err != nil {
				return o, err
			}
			if previous := last[line[:i]]; previous != 0 && at != previous {
				o.jitter = max(o.jitter, math.Abs(at-previous-1))
				ticks++
			}
			last[line[:i]] = at
		}
	}
	if len(last) != 40 || ticks < 40*10 {
		return o, fmt.Errorf("%d of 40 targets are live, %d samples", len(last), ticks)
	}
	after, resident, err := agent.usage()
	o.cpu, o.resident = 100*(after-before)/window.Seconds(), resident
	return o, err
}
