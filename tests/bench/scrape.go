package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

const scrapes = 1000

// scrape compares the CPU time of a scrape with that of as many gauges that do
// nothing but stand there, served by plain client_golang.
func (b *bench) scrape() error {
	agent, _, err := b.agent(b.targets(3))
	if err != nil {
		return err
	}
	defer agent.stop()
	time.Sleep(2 * time.Second) // two ticks
	ours, series, err := scrapeCost(agent)
	if err != nil {
		return err
	}
	plain := filepath.Join(b.dir, "plain")
	if _, err := cpuOf("go", "build", "-C", b.root, "-o", plain, "./tests/bench/plain"); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	d, err := startDaemon(address, "/metrics", plain, address, fmt.Sprint(series))
	if err != nil {
		return err
	}
	defer d.stop()
	theirs, _, err := scrapeCost(d)
	if err != nil {
		return err
	}
	b.add(figure{fmt.Sprintf("CPU of a scrape of %d series", series), fmt.Sprintf("%.2f ms", ours*1000), "plain client_golang",
		fmt.Sprintf("%.2f ms", theirs*1000), ratio(ours, theirs), "<= 1 ms (200 series)"})
	return nil
}

// scrapeCost returns CPU seconds a scrape, and how many series it has. What the daemon
// does besides is measured first and taken off.
func scrapeCost(d *daemon) (seconds float64, series int, err error) {
	const quiet = 3 * time.Second
	before, _, err := d.usage()
	if err != nil {
		return 0, 0, err
	}
	time.Sleep(quiet)
	begin, _, err := d.usage()
	if err != nil {
		return 0, 0, err
	}
	idle := (begin - before) / quiet.Seconds()
	started := time.Now()
	for range scrapes {
		text, err := d.get("/metrics")
		if err != nil {
			return 0, 0, err
		}
		if series == 0 {
			for line := range strings.Lines(text) {
				if line[0] != '#' {
					series++
				}
			}
		}
	}
	end, _, err := d.usage()
	if err != nil {
		return 0, 0, err
	}
	return (end - begin - idle*time.Since(started).Seconds()) / scrapes, series, nil
}
