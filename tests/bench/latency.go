package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const latencyLines = 300

// latency measures how long it takes from the writing of a line to its value in
// /metrics, for the agent and for mtail.
func (b *bench) latency() error {
	log := filepath.Join(b.dir, "agent.log")
	if err := b.longLog(log, 1); err != nil {
		return err
	}
	d, _, err := b.agent(fmt.Sprintf("logs:\n  - {path: '%s', tool: sysbench}\n", log))
	if err != nil {
		return err
	}
	ours, err := lineToMetrics(d, log, `benchwatch_run_operations_per_second{`)
	d.stop()
	if err != nil {
		return err
	}
	log = filepath.Join(b.dir, "mtail.log")
	if err := b.longLog(log, 1); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	host, port, _ := strings.Cut(address, ":")
	d, err = startDaemon(address, "/metrics", "mtail", "--address="+host, "--port="+port, "--logs="+log, "--log_dir="+b.dir,
		"--progs="+filepath.Join(b.root, "tests/bench/mtail/sysbench"))
	if err != nil {
		return err
	}
	theirs, err := lineToMetrics(d, log, `operations_per_second{`)
	d.stop()
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name     string
		share    float64
		intended string
	}{{"p50", 0.5, ""}, {"p99", 0.99, "<= 50 ms"}} {
		o, t := quantile(ours, q.share), quantile(theirs, q.share)
		b.add(figure{"line to /metrics, " + q.name, milliseconds(o), "mtail", milliseconds(t), ratio(o.Seconds(), t.Seconds()), q.intended})
	}
	return nil
}

// lineToMetrics appends lines, each with a value of its own, and asks until it shows.
func lineToMetrics(d *daemon, log, series string) ([]time.Duration, error) {
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The first one tells that the log is followed at all, and is not counted.
	var times []time.Duration
	for i := range latencyLines + 1 {
		time.Sleep(20*time.Millisecond + rand.N(40*time.Millisecond))
		value := fmt.Sprint(10001 + i)
		line := fmt.Sprintf("[ %ds ] thds: 4 tps: %s.00 qps: 20.00 (r/w/o: 10.00/5.00/5.00) lat (ms,99%%): 1.00 err/s: 0.00 reconn/s: 0.00\n", i+2, value)
		written := time.Now()
		if _, err := f.WriteString(line); err != nil {
			return nil, err
		}
		for {
			text, err := d.get("/metrics")
			if err != nil {
				return nil, err
			}
			if shows(text, series, value) {
				break
			}
			if time.Since(written) > 20*time.Second {
				return nil, fmt.Errorf("%s never showed %s", series, value)
			}
		}
		if i > 0 {
			times = append(times, time.Since(written))
		}
	}
	return times, nil
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

func quantile(times []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
