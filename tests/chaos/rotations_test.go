//go:build chaos

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/sysbench"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/rotation"
)

// rotated is a log that is rotated in one form while a tool writes it.
type rotated struct {
	form    rotation.Form
	log     *rotation.Log
	folder  string
	written strings.Builder
}

// rotations: all documented forms at once, while the agent is killed at any byte, and between two checks of an agent
// that is stopped.
func rotations(l *lab) {
	if os.Geteuid() != 0 {
		l.t.Skip("whether another user's process has a file open is unknown")
	}
	var logs []*rotated
	config := "logs:\n"
	for i, form := range rotation.Forms {
		r := &rotated{form: form, folder: filepath.Join(l.dir, "logs", strconv.Itoa(i))}
		l.must(os.MkdirAll(r.folder, 0o755))
		r.log = &rotation.Log{Path: filepath.Join(r.folder, "a.log"), Append: form.Append}
		config += fmt.Sprintf("  - {path: '%s', tool: sysbench}\n", filepath.Join(r.folder, form.Glob))
		logs = append(logs, r)
	}
	l.start(options{more: config})
	const lines, every = 80, 4
	n, sum := 0, 0
	for _, r := range logs {
		l.must(r.log.Open())
		l.write(r, sysbenchBanner, 0)
	}
	next := func(kill float64) {
		n++
		for _, r := range logs {
			l.write(r, fmt.Sprintf("[ %ds ] thds: 4 tps: %d.00 qps: %d.00 (r/w/o: 0.00/%d.00/0.00) lat (ms,95%%): 1.04 err/s: 0.00 reconn/s: 0.00\n", n, n, n, n), kill)
		}
		sum += n
	}
	away := func() {
		for _, r := range logs {
			if r.form.Away {
				l.rotate(r)
			}
		}
	}
	for n < lines {
		next(0.02)
		l.pause(0, 20*time.Millisecond)
		if n%every != 0 {
			continue
		}
		for _, r := range logs {
			if !r.form.Away || n == every { // found, at least
				l.copied(r, n)
				l.rotate(r)
			}
		}
		if n == every {
			continue
		}
		switch l.rand.IntN(3) {
		case 0:
			away()
		case 1:
			l.watch.Disturb(true, func() {
				l.agent.Kill(l.t)
				away()
				l.agent.Again(l.t)
			})
			total.add("agents killed", 1)
			total.add("rotations while no agent ran", 1)
		case 2:
			l.freeze(l.between(0, 500*time.Millisecond), func() {
				away()
				if n < lines && l.chance(0.5) { // twice between two looks
					next(0)
					away()
				}
			})
			total.add("rotations while the agent was stopped", 1)
		}
	}
	for _, r := range logs {
		l.copied(r, lines)
		l.write(r, "\n"+fmt.Sprintf(sysbenchSummary, sum, float64(sum)/lines, lines), 0.1)
		l.must(r.log.Close())
	}
	l.until(3*time.Minute, "runs of the logs end", func() error {
		if n := len(l.ids()); n != len(logs) {
			return fmt.Errorf("%d runs in %d logs", n, len(logs))
		}
		return nil
	})
	l.closed()
	for _, r := range logs {
		r.untouched(l)
		if have := l.numbers(r); !slices.Equal(have, upTo(lines)) {
			l.t.Errorf("%s: copied lines %v", r.form.Name, have)
		}
	}
	l.must(os.RemoveAll(filepath.Join(l.dir, "logs"))) // a run needs nothing but its directory
	for _, id := range l.ids() {
		snap, err := ingest.Read(l.t.Context(), rundir.At(l.agent.DataDir, id), tool.Set{sysbench.Tool})
		if err != nil || snap.Totals["transaction"] != float64(sum) || snap.Lines.Malformed > 0 || snap.Meta.Outcome != rundir.Succeeded {
			l.t.Errorf("run %s (%v): %s with %v of %d, %+v, %v", id, snap.Meta.Log, snap.Meta.Outcome, snap.Totals, sum, snap.Lines, err)
		}
	}
	l.check()
}

// write writes text in two pieces, between which the agent may be killed.
func (l *lab) write(r *rotated, text string, kill float64) {
	cut := l.rand.IntN(len(text))
	_, err := r.log.WriteString(text[:cut])
	l.must(err)
	if l.chance(kill) {
		l.kill()
	}
	_, err = r.log.WriteString(text[cut:])
	l.must(err)
	r.written.WriteString(text)
}

func (l *lab) rotate(r *rotated) {
	l.must(r.form.Rotate(r.log))
	total.add("rotations: "+r.form.Name, 1)
}

// copied waits until the agent has copied n lines of a log.
func (l *lab) copied(r *rotated, n int) {
	l.until(60*time.Second, r.form.Name, func() error {
		have := l.numbers(r)
		if missing := slices.DeleteFunc(upTo(n), func(i int) bool { return slices.Contains(have, i) }); len(missing) > 0 {
			return fmt.Errorf("%d of %d lines, without %v", len(have), n, missing)
		}
		return nil
	})
}

var interval = regexp.MustCompile(`(?m)\[ (\d+)s \] thds: 4 .*reconn/s: 0.00$`)

// numbers returns the seconds of all intervals that were copied from a log.
func (l *lab) numbers(r *rotated) (all []int) {
	for _, id := range l.ids() {
		dir := rundir.At(l.agent.DataDir, id)
		meta, err := dir.Load()
		if err != nil || meta.Log == nil || filepath.Dir(meta.Log.Path) != r.folder {
			continue
		}
		text, err := os.ReadFile(dir.Path(rundir.StdoutFile))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			l.t.Fatal(err)
		}
		for _, m := range interval.FindAllSubmatch(text, -1) {
			n, err := strconv.Atoi(string(m[1]))
			l.must(err)
			all = append(all, n)
		}
	}
	return all
}

// untouched: the tool's output is in the log and its rotated files, oldest first.
func (r *rotated) untouched(l *lab) {
	l.t.Helper()
	if r.form.Name == "truncated" { // nobody has it all
		return
	}
	files, err := filepath.Glob(filepath.Join(r.folder, "a.log*"))
	l.must(err)
	age := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Ext(name), ".")) // the log itself has none
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return age(b) - age(a) })
	var all []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		l.must(err)
		all = append(all, text...)
	}
	if all = bytes.ReplaceAll(all, []byte{0}, nil); string(all) != r.written.String() {
		l.t.Errorf("%s: the logs have %d bytes, the tool wrote %d", r.form.Name, len(all), r.written.Len())
	}
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

const sysbenchBanner = `sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Report intermediate results every 1 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

`

const sysbenchSummary = `SQL statistics:
    transactions:                        %d (%.2f per sec.)

General statistics:
    total time:                          %d.0003s

Threads fairness:
    execution time (avg/stddev):   10.0000/0.00
`
