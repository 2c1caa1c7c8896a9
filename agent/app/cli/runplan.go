package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// plan is a run that has not begun.
type plan struct {
	command commandline.Command
	output  io.Reader // of the tool; nil: benchwatch starts it
	meta    rundir.Meta
	serverAccess
}

// serverAccess is how the servers of a run are sampled.
type serverAccess struct {
	login *rundir.Login // of the tool, with which the servers are sampled; nil: not with it
	// unsampled is what the summary prints if no server was sampled; empty: nothing.
	unsampled string
}

// newPlan describes the run, and waits for its servers. place is where the tool runs, empty if that is seen from its
// command.
func (r *runner) newPlan(place tool.Place) (p plan, err error) {
	if err := r.checkNames(); err != nil {
		return p, err
	}
	began := time.Now().UTC().Truncate(time.Millisecond) // output that is piped may already be waited for
	if p.command, p.output, err = r.readCommand(); err != nil {
		return p, err
	}
	p.meta = r.describe(&p.command, began)
	p.meta.Place = cmp.Or(place, p.meta.Place)
	if p.serverAccess, err = r.chooseServers(&p.command, &p.meta); err != nil {
		return p, err
	}
	return p, r.awaitReady(context.Background(), &p.meta, p.login)
}

// checkNames checks the labels and the id that the user chose.
func (r *runner) checkNames() error {
	if err := rundir.CheckLabels(r.labels); err != nil {
		return ownFailure(err, "")
	}
	if r.id != "" {
		if err := rundir.CheckID(r.id); err != nil {
			return ownFailure(err, "choose another --run-id")
		}
	}
	return nil
}

// readCommand reads the command line or, from a pipe, finds the tool that writes it and returns its output.
func (r *runner) readCommand() (command commandline.Command, output io.Reader, err error) {
	tools := r.config.ToolSet()
	if r.tool != "" && tools.ByName(r.tool) == nil {
		return command, output, unknownTool(r.tool, tools)
	}
	if r.isPiped() {
		output = r.streams.In
		if r.tool == "" {
			if command.Tool, output = sniff(r.streams.In, tools); command.Tool == nil {
				return command, output, ownFailure(errors.New("no benchmark tool's output recognised in standard input"),
					"name the tool that wrote it with --tool; known tools: "+tools.Names())
			}
		}
		return command, output, nil
	}
	env := commandline.OS()
	env.NoInject = !r.inject
	args := r.fill(r.command)
	command = commandline.Read(args, tools, env)
	if _, err := exec.LookPath(args[0]); err != nil && len(r.on) == 0 {
		return command, output, cantStart(err)
	}
	return command, output, nil
}

// describe returns the facts of the run that its command line and the flags show.
func (r *runner) describe(command *commandline.Command, began time.Time) rundir.Meta {
	d := &command.Description
	host := ""
	if command.Place != tool.PlaceElsewhere {
		host, _ = os.Hostname() // an empty name is better than no run
	}
	meta := rundir.Meta{
		ID: r.id, Title: r.title, Labels: map[string]string{},
		Benchmark: rundir.Benchmark{
			Tool: r.tool, Verb: d.Command, Workload: d.Workload, Threads: d.Threads, Target: d.Target, Database: d.Database,
			DurationSeconds: d.Duration.Seconds(), RatePerSecond: d.Rate,
			ReportIntervalSeconds: d.ReportInterval.Seconds(), LatencyPercentile: d.LatencyPercentile,
		},
		Placement:  rundir.Placement{Place: command.Place, Selection: r.selection()},
		Conditions: rundir.Conditions{Required: r.require.texts, CaptureWhen: r.captures.texts},
		Process:    rundir.Process{Command: command.Redacted, Generator: host},
		Timing:     rundir.Timing{Clock: rundir.NewClock(clock.System), StartedAt: began},
	}
	if r.timeout > 0 {
		meta.DrainTimeoutSeconds = series.Some(r.timeout.Seconds())
	}
	if meta.Tool == "" && command.Tool != nil {
		meta.Tool = command.Tool.Name
	}
	if len(command.Added) > 0 && meta.ReportIntervalSeconds == 0 {
		meta.ReportIntervalSeconds = 1
	}
	meta.Title = cmp.Or(meta.Title, command.Title(), meta.Tool)
	for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
		if rundir.CheckLabel(k) == nil {
			meta.Labels[k] = d.Labels[k]
			meta.Parameters = append(meta.Parameters, k)
		}
	}
	maps.Copy(meta.Labels, r.labels)
	// Users repeat parts of the command there.
	known := secret.NewWords(command.Secrets...)
	meta.Title = known.Text(meta.Title)
	for k, v := range meta.Labels {
		meta.Labels[k] = known.Text(v)
	}
	r.join(&meta)
	return meta
}

// chooseServers returns the login of --sample, and checks the names of servers, if this process samples them. An agent
// has its own configuration, and borrows the login.
func (r *runner) chooseServers(command *commandline.Command, meta *rundir.Meta) (s serverAccess, err error) {
	agent, beside := rundir.Agent(r.config.DataDir)
	d := &command.Description
	switch {
	case r.sample:
		login := rundir.NewLogin(d, &command.Login, command.Place)
		login.Discover = r.discover
		names, err := r.lendable(&login)
		if err == nil && beside {
			err = config.CheckLent(login, agent.Foreign)
		}
		if err == nil && !beside {
			err = r.config.CheckProxy(login)
		}
		if errors.Is(err, config.ErrKind) || errors.Is(err, config.ErrProxy) {
			r.note("note: --sample: %v", err)
			break
		}
		if err != nil {
			return s, ownFailure(err, hintServers(beside))
		}
		by := ""
		if beside {
			by = ", by the agent"
		}
		s.login, s.unsampled = &login, "none sampled: no answer from "+d.Target+" during the run"
		r.note("sampling %s as user %q%s", table.Join(names), login.User, by)
	case !beside && len(r.config.Targets) == 0 && d.Engine != "" && d.Target != "" && meta.Selection == nil:
		r.note("note: %s is not sampled: --sample samples it with the tool's own login, --config.file names servers", d.Target)
	}
	if s.login == nil {
		s.unsampled = unsampled(d)
		if !beside && len(r.config.Targets) == 0 {
			r.noteUnknown(d)
		}
	}
	if beside || meta.Selection == nil {
		return s, nil
	}
	return s, checkSelection(r.config, meta.Selection)
}

// noteUnknown prints which conditions of --abort-when have no value in a run without servers.
func (r *runner) noteUnknown(d *tool.Description) {
	why := "no server is sampled"
	if d.Target != "" && engines.ByName(d.Engine) != nil {
		why += "; add --sample"
	}
	for _, c := range r.abort.conditions {
		if c.NeedsServers() {
			r.note("note: --abort-when %s never holds: %s", c, why)
		}
	}
}

// lendable returns the names of the targets that are sampled with a login.
func (r *runner) lendable(login *rundir.Login) ([]string, error) {
	c := *r.config
	c.Targets = slices.Clone(c.Targets)
	return c.AddLogin(*login)
}

// unsampled is what the summary prints for a run without servers; empty for a tool without any.
func unsampled(d *tool.Description) string {
	switch {
	case d.Target == "":
		return ""
	case engines.ByName(d.Engine) == nil:
		return "none sampled: benchwatch does not sample this kind of database"
	}
	return "none sampled; to sample " + d.Target + " with the tool's login: benchwatch run --sample --"
}

// hintServers is the hint for servers that can't be sampled with the tool's login.
func hintServers(beside bool) string {
	if beside {
		return "name the servers in the configuration of the agent: benchwatch init"
	}
	return "name the servers in a file for --config.file"
}
