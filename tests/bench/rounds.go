package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var transactions = regexp.MustCompile(`transactions: +\d+ +\(([\d.]+) per sec\.\)`)

// alternate runs sysbench with and without everything of benchwatch (agent at 1 Hz on
// three servers, wrapper), in turn, so that what else the machine does hits both.
func (b *bench) alternate() error {
	command := []string{"sysbench", "--config-file=" + filepath.Join(b.servers, "sysbench.cnf"), "oltp_read_only",
		"--tables=4", "--table-size=20000", "--threads=4", "--report-interval=1", fmt.Sprintf("--time=%d", b.seconds), "run"}
	without := func() (float64, error) { return tps(command) }
	var spent cpuShare
	with := func() (float64, error) { return b.observed(command, &spent) }
	if _, err := without(); err != nil { // warm-up
		return err
	}
	var ours, theirs, ratios []float64
	for i := range b.rounds {
		// Who goes first changes, for machines that get slower or faster.
		order := []func() (float64, error){without, with}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		var pair [2]float64
		for j, f := range order {
			v, err := f()
			if err != nil {
				return err
			}
			pair[(j+i)%2] = v
		}
		theirs, ours = append(theirs, pair[0]), append(ours, pair[1])
		ratios = append(ratios, pair[1]/pair[0])
	}
	slices.Sort(ratios)
	b.add(figure{fmt.Sprintf("sysbench transactions/s, median of %d", b.rounds), fmt.Sprintf("%.0f", median(ours)),
		"sysbench alone, in turn", fmt.Sprintf("%.0f", median(theirs)),
		fmt.Sprintf("%.3f (%.3f to %.3f)", median(ratios), ratios[0], ratios[len(ratios)-1]), "within 1 %"})
	b.add(figure{"CPU of agent and wrapper in these runs", fmt.Sprintf("%.2f s", spent.observer),
		"sysbench and its server", fmt.Sprintf("%.2f s", spent.benchmark), fmt.Sprintf("%.4f", spent.observer/spent.benchmark), ""})
	return nil
}

// cpuShare is CPU seconds, summed over runs: unlike throughput it does not depend on
// what else the machine does.
type cpuShare struct{ observer, benchmark float64 }

// observed runs the command under benchwatch.
func (b *bench) observed(command []string, spent *cpuShare) (float64, error) {
	agent, config, err := b.agent(b.targets(3))
	if err != nil {
		return 0, err
	}
	defer agent.stop()
	server, err := b.serverCPU()
	if err != nil {
		return 0, err
	}
	var out strings.Builder
	wrapper := &daemon{cmd: exec.Command(b.binary, append([]string{"run", "--config.file=" + config, "--"}, command...)...)}
	wrapper.cmd.Stdout = &out
	if err := wrapper.cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- wrapper.cmd.Wait() }()
	// Its own share can only be read while it lives; in the end sysbench's is in it.
	own := 0.0
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-tick.C:
			if cpu, _, err := wrapper.usage(); err == nil {
				own = cpu
			}
		}
	}
	if err != nil {
		return 0, fmt.Errorf("benchwatch run: %w: %s", err, out.String())
	}
	served, err := b.serverCPU()
	if err != nil {
		return 0, err
	}
	agentCPU, _, err := agent.usage()
	if err != nil {
		return 0, err
	}
	state := wrapper.cmd.ProcessState
	spent.observer += agentCPU + own
	spent.benchmark += served - server + (state.UserTime() + state.SystemTime()).Seconds() - own
	return result(out.String())
}

// serverCPU is the CPU seconds of the server that sysbench loads.
func (b *bench) serverCPU() (float64, error) {
	text, err := os.ReadFile(filepath.Join(b.servers, "n1", "pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, fmt.Errorf("pid file: %w", err)
	}
	return cpuOfProcess(pid)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

func tps(command []string) (float64, error) {
	out, err := exec.Command(command[0], command[1:]...).Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", command[0], err, out)
	}
	return result(string(out))
}

// result is the throughput that sysbench printed.
func result(out string) (float64, error) {
	m := transactions.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("sysbench printed no result: %s", out)
	}
	return strconv.ParseFloat(m[1], 64)
}
