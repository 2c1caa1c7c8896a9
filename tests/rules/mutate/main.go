// Command mutate breaks each rule in many ways (thresholds, operators, windows,
// matchers, `for`, labels, annotations, names) and runs the promtool tests of
// the alerts that depend on it. It lists the breaks that no test noticed and
// fails if there is one that is not explained in tolerated.txt.
//
//	usage: go run ./mutate [RULE ...]
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	rules "github.com/benchwatch/benchwatch/tests/rules"
)

const root = "../.."

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only []string) error {
	files, err := rules.Load(root)
	if err != nil {
		return err
	}
	tolerated, err := readTolerated(filepath.Join(root, "tests/rules/mutate/tolerated.txt"))
	if err != nil {
		return err
	}
	bench, err := newBench(files)
	if err != nil {
		return err
	}
	mutants, err := allMutants(files, only)
	if err != nil {
		return err
	}
	survivors, err := bench.try(mutants)
	if err != nil {
		return err
	}
	unnoticed := 0
	for _, m := range survivors {
		if tolerated[m.String()] {
			delete(tolerated, m.String())
			continue
		}
		unnoticed++
		fmt.Fprintln(os.Stderr, "unnoticed:", m)
	}
	if len(only) == 0 {
		for name := range tolerated {
			unnoticed++
			fmt.Fprintln(os.Stderr, "tolerated.txt names a break that is noticed or gone:", name)
		}
	}
	if unnoticed > 0 {
		return fmt.Errorf("%d of %d breaks went unnoticed", unnoticed, len(mutants))
	}
	fmt.Printf("rules: %d breaks tried, all noticed but %d explained ones\n", len(mutants), len(survivors))
	return nil
}

func allMutants(files []rules.File, only []string) ([]mutant, error) {
	wanted := map[string]bool{}
	for _, name := range only {
		wanted[name] = true
	}
	var all []mutant
	for f := range files {
		for g := range files[f].Groups {
			for r := range files[f].Groups[g].Rules {
				rule := &files[f].Groups[g].Rules[r]
				if len(wanted) > 0 && !wanted[rule.Name()] {
					continue
				}
				broken, err := breaks(rule)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", rule.Name(), err)
				}
				for _, b := range broken {
					all = append(all, mutant{file: f, group: g, index: r, name: rule.Name(), breakage: b})
				}
			}
		}
	}
	return all, nil
}

// readTolerated reads lines "RULE: BREAK # reason".
func readTolerated(path string) (map[string]bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read tolerated breaks: %w", err)
	}
	defer f.Close()
	found := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " # ")
		if strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s: no reason given in %q", path, line)
		}
		found[strings.TrimSpace(name)] = true
	}
	return found, lines.Err()
}

// try runs the tests against every mutant and returns those they passed.
func (b *bench) try(mutants []mutant) ([]mutant, error) {
	var (
		mu        sync.Mutex
		survivors []mutant
		failure   error
		work      = make(chan mutant)
		workers   sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for m := range work {
				noticed, err := b.noticed(m)
				mu.Lock()
				if err != nil && failure == nil {
					failure = err
				}
				if err == nil && !noticed {
					survivors = append(survivors, m)
				}
				mu.Unlock()
			}
		}()
	}
	for _, m := range mutants {
		work <- m
	}
	close(work)
	workers.Wait()
	return survivors, failure
}
