package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/benchwatch/benchwatch/agent/rundir"

	"github.com/benchwatch/benchwatch/agent/tool/commandline"
)

// describe reads the command line and makes the run's facts of it.
func (r *runCommand) describe() (commandline.Command, rundir.Meta, error) {
	var command commandline.Command
	tools := r.config.ToolSet()
	if *r.tool != "" && tools.ByName(*r.tool) == nil {
		return command, rundir.Meta{}, ownFailure(fmt.Errorf("unknown tool %q", *r.tool), "known tools: "+tools.Names())
	}
	if err := rundir.CheckLabels(*r.labels); err != nil {
		return command, rundir.Meta{}, ownFailure(err, "")
	}
	if !r.piped() {
		env := commandline.OS()
		env.NoInject = !*r.inject
		command = commandline.Read(*r.command, tools, env)
		if _, err := exec.LookPath((*r.command)[0]); err != nil {
			return command, rundir.Meta{}, cantStart(err)
		}
	} else if *r.tool == "" {
		return command, rundir.Meta{}, &exitError{Status: exitUsage, Err: errors.New("reading a tool's output from standard input needs --tool"), Hint: "known are " + tools.Names()}
	}
	d := command.Description
	host, _ := os.Hostname() // an empty name is better than no run
	meta := rundir.Meta{
		ID: *r.id, Title: *r.title, Labels: map[string]string{}, Tool: *r.tool,
		Verb: d.Command, Workload: d.Workload, Threads: d.Threads, Target: d.Target, Database: d.Database,
		DurationSeconds: d.Duration.Seconds(), ReportIntervalSeconds: d.ReportInterval.Seconds(),
		Command: command.Redacted, Generator: host,
		StartedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	if p := d.LatencyPercentile; p.Known {
		meta.LatencyPercentile = &p.Value
	}
	if meta.Tool == "" && command.Tool != nil {
		meta.Tool = command.Tool.Name
	}
	if len(command.Added) > 0 && meta.ReportIntervalSeconds == 0 {
		meta.ReportIntervalSeconds = 1
	}
	if meta.Title == "" {
		meta.Title = command.Title()
	}
	if meta.Title == "" {
		meta.Title = meta.Tool
	}
	for k, v := range d.Labels {
		if rundir.CheckLabel(k) == nil {
			meta.Labels[k] = v
		}
	}
	for k, v := range *r.labels {
		meta.Labels[k] = v
	}
	return command, meta, nil
}

// create makes the run directory; an id that the user did not choose is made
// unique.
func (r *runCommand) create(meta rundir.Meta) (err error) {
	chosen := meta.ID != ""
	for n := 1; ; n++ {
		if !chosen {
			name := meta.Workload
			if name == "" {
				name = meta.Tool
			}
			meta.ID = rundir.NewID(meta.StartedAt, name, meta.Threads, n)
		}
		r.dir, r.claim, err = rundir.Create(r.config.DataDir, meta)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, rundir.ErrExists) && !chosen:
			continue
		case errors.Is(err, rundir.ErrExists):
			return ownFailure(err, "choose another --run-id")
		default:
			return ownFailure(err, "choose another place with --data-dir")
		}
	}
}

// remove takes back a run directory when nothing was started.
func (r *runCommand) remove() {
	if err := r.dir.Remove(); err != nil {
		r.say("%v", err)
	}
}
