package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

var transactions = regexp.MustCompile(`transactions: +\d+ +\(([\d.]+) per sec\.\)`)

// alternate runs sysbench with and without everything of benchwatch (agent at 1 Hz on
// three servers, wrapper), in turn, so that what else the machine does hits both.
func (b *bench) alternate() error {
	command := []string{"sysbench", "--config-file=" + filepath.Join(b.servers, "sysbench.cnf"), "oltp_read_write",
		"--tables=4", "--table-size=20000", "--threads=4", "--report-interval=1", fmt.Sprintf("--time=%d", b.seconds), "run"}
	without := func() (float64, error) { return tps(command) }
	with := func() (float64, error) {
		agent, config, err := b.agent(b.targets(3))
		if err != nil {
			return 0, err
		}
		defer agent.stop()
		return tps(append([]string{b.binary, "run", "--config.file=" + config, "--"}, command...))
	}
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
	return nil
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
	m := transactions.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("sysbench printed no result: %s", out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
