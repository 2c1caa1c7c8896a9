package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
)

// seekCommand is one `benchwatch seek`: a sweep that chooses its steps by a search.
type seekCommand struct {
	*sweepCommand
	max       string
	subjectTo string
	from      int
	to        int
	precision float64
}

func newSeek() *cobra.Command {
	cmd := newCommand("seek", "Find the highest rate or thread count that meets conditions.",
		"benchwatch seek --max rate --subject-to 'p99 < 20ms, lag < 5s' -- sysbench oltp_read_write --rate={rate} --percentile=99 run")
	r := &seekCommand{sweepCommand: &sweepCommand{labels: map[string]string{},
		example: "benchwatch seek --max rate --subject-to 'p99 < 20ms' -- sysbench … --rate={rate} run"}}
	r.max = "rate"
	cmd.text(&r.max, "max", "NAME", "The placeholder {NAME} to maximise; such as rate or threads")
	cmd.text(&r.subjectTo, "subject-to", "CONDITIONS",
		"Conditions that must hold; separated by commas: 'p99 < 20ms, lag < 5s, errors < 0.1%'")
	cmd.whole(&r.from, "from", "N", "First value; it is doubled until a condition does not hold (default: 1 for threads, else 100)")
	cmd.whole(&r.to, "to", "N", "Largest value to try (default: no limit)")
	r.precision = 0.05
	cmd.number(&r.precision, "precision", "SHARE", "Stop when the range is narrower; the range contains the limit, and this is a share of it")
	r.repeat = 1
	cmd.whole(&r.repeat, "repeat", "N", "Number of trials of each value; the majority decides")
	r.addRunning(cmd)
	r.addResult(cmd)
	r.print = r.result
	return cmd.does(func(s Streams) error {
		r.streams = s
		return r.run(r.fresh)
	})
}

// fresh makes a new search and writes it.
func (r *seekCommand) fresh() (*sweep.Sweep, error) {
	if r.subjectTo == "" {
		return nil, r.wrong(errors.New("--subject-to is missing: without a condition there is no highest value"))
	}
	conditions, err := sweep.ParseSubjectTo(r.subjectTo)
	if err != nil {
		return nil, r.wrong(fmt.Errorf("--subject-to %w", err))
	}
	k := &sweep.Seek{From: r.from, To: r.to, Precision: r.precision, SubjectTo: conditions}
	if k.From == 0 {
		k.From = 100
		if r.max == sweep.ThreadsSet {
			k.From = 1
		}
	}
	if err := k.Check(); err != nil {
		return nil, r.wrong(err)
	}
	set, err := sweep.ParseSet(fmt.Sprintf("%s=%d", r.max, k.From))
	if err != nil {
		return nil, r.wrong(fmt.Errorf("--max %s is not a name", r.max))
	}
	if err := r.checkCommands([]sweep.Set{set}); err != nil {
		return nil, err
	}
	s := &sweep.Sweep{Sets: []sweep.Set{{Name: set.Name}}, Repeat: r.repeat, Order: sweep.Given, Seek: k}
	s.Extend()
	return r.create(s, "seek")
}
