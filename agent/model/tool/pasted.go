package tool

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
)

const (
	// nearCommand is how many lines may come between a pasted command and the output of the run that it started.
	nearCommand = 20
	// longestCommand bounds a command of several lines in bytes.
	longestCommand = 4096
)

// command finds the commands that start a tool in a log, and completes the next run with their facts. What the run prints
// about itself has precedence.
type command struct {
	tool  *Tool
	text  []byte // of a command that continues in the next line
	found Description
	known bool
	// several: two commands came before the run, and it is unknown which of them started it.
	several bool
	age     int // lines since the command
	run     int // that had its first report
	start   Report
}

// read looks for a command in a line that the parser ignored.
func (c *command) read(line []byte) {
	if c.tool.Pasted == nil || len(c.text) == 0 && !c.mentioned(line) {
		return
	}
	body, continues := bytes.CutSuffix(bytes.TrimRight(line, " \t\r"), []byte(`\`))
	if c.text = append(append(c.text, body...), ' '); continues && len(c.text) < longestCommand {
		return
	}
	if len(c.text) < longestCommand {
		if d, ok := c.tool.Pasted(c.tool, string(c.text)); ok && (d.Command == "run" || d.Command == "load" || d.Command == "") {
			c.several = c.known && c.age <= nearCommand && !reflect.DeepEqual(d, c.found)
			c.found, c.known, c.age = d, true, 0
		}
	}
	c.text = c.text[:0]
}

// mentioned reports quickly whether a line can have a command: it has an option and the name of a program.
func (c *command) mentioned(line []byte) bool {
	if len(line) > longestCommand || !bytes.Contains(line, []byte(" -")) && !bytes.HasSuffix(line, []byte(`\`)) {
		return false
	}
	return c.tool.MatchArgs != nil || slices.ContainsFunc(c.tool.Programs, func(name string) bool { return bytes.Contains(line, []byte(name)) })
}

// complete adds the facts of the command before a run to the run's first report, or emits them before it.
func (c *command) complete(r *Report, emit func(*Report)) {
	if r.Run == c.run || r.Kind != Start && r.Kind != Interval && r.Kind != Summary {
		return
	}
	c.run = r.Run
	known, d := c.known && !c.several && c.age <= nearCommand, &c.found
	if c.known = false; !known || !d.fits(r) {
		return
	}
	if r.Kind != Start {
		c.start.Reset(Start, r.Run)
		c.start.Tool = c.tool.Name
		defer emit(&c.start)
		r = &c.start
	}
	if r.Workload == "" {
		r.Workload = d.Workload
	}
	if r.Command == "" {
		r.Command = d.Command
	}
	if !r.Threads.Known && d.Threads > 0 {
		r.Threads = series.Some(d.Threads)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Labels)) {
		if !slices.ContainsFunc(r.Labels, func(l Label) bool { return l.Name == name }) {
			r.Labels = append(r.Labels, Label{name, secret.Value(name, d.Labels[name]), true})
		}
	}
}

// fits reports whether a run's first report can be of the command: nothing in it contradicts the command.
func (d *Description) fits(r *Report) bool {
	return (r.Workload == "" || d.Workload == "" || r.Workload == d.Workload) &&
		(r.Command == "" || r.Command == d.Command) &&
		(!r.Threads.Known || d.Threads == 0 || r.Threads.Value == d.Threads)
}
