package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/many/generator"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/run/launch"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// connecting are the flags for reaching generators on other machines.
type connecting struct {
	on         []string
	onFailure  string
	ssh        string
	benchwatch string
}

func addConnecting(cmd command) *connecting {
	c := &connecting{onFailure: string(rundir.StopOthers), ssh: "ssh", benchwatch: "benchwatch"}
	cmd.texts(&c.on, "on", "HOST,HOST...",
		"Machines to start the command on by ssh; as a group with one common start, comma-separated or repeated")
	cmd.choice(&c.onFailure, "on-failure", "ACTION", "What to do with the other generators if one fails: stop or continue", string(rundir.StopOthers), string(rundir.Continue))
	cmd.text(&c.ssh, "ssh", "COMMAND", "Command that connects to the machines, with its options")
	cmd.text(&c.benchwatch, "remote-benchwatch", "PATH", "Path of benchwatch on the machines")
	return c
}

func (c *connecting) machines() []string {
	var hosts []string
	for _, list := range c.on {
		hosts = append(hosts, strings.Split(list, ",")...)
	}
	return hosts
}

// remoteFailure prints what failed on each machine, and returns the error of the command.
func remoteFailure(s Streams, what string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return ownFailure(err, "")
	}
	all := joined.Unwrap()
	var last *generator.Error
	for _, one := range all {
		if !errors.As(one, &last) {
			return ownFailure(one, "")
		}
		if len(all) > 1 {
			s.notice("%s", last)
			if last.Hint != "" {
				s.line("hint: " + secret.Text(last.Hint))
			}
		}
	}
	if len(all) == 1 {
		return ownFailure(last, last.Hint)
	}
	return ownFailure(fmt.Errorf("%s: %s failed, nothing was started", what, table.Plural(len(all), "generator")), "")
}

// remoteUsage is a wrong use of --on.
func remoteUsage(err error) error {
	return &exitError{Status: exitUsage, Err: err, Hint: "see benchwatch run --help"}
}

// sampleHere is the error of --sample with --on.
const sampleHere = "--sample is for a tool on this machine: name the servers in a file for --config.file"

// checkRemote checks the options that --on can't be combined with.
func (f *runFlags) checkRemote() error {
	for _, wrong := range []struct {
		is   bool
		text string
	}{
		{f.isPiped(), "--on starts the tool: it can't read its output from standard input"},
		{f.generators != 0 || f.number != 0, "--on numbers the generators: leave out --generators and --generator"},
		{len(f.abort.conditions) > 0, "--abort-when is for a run on this machine, not for --on"},
		{f.sample, sampleHere},
		{f.grouping.name != "" && f.id != "" && f.grouping.name != f.id, "--run-id and --group name the same run"},
		{len(strings.Fields(f.ssh)) == 0, "--ssh is empty"},
	} {
		if wrong.is {
			return remoteUsage(errors.New(wrong.text))
		}
	}
	return nil
}

// runOn is `benchwatch run --on`: it starts a group and follows it to its end.
func (r *runner) runOn() error {
	p, err := r.newPlan(tool.PlaceElsewhere)
	if err != nil {
		return err
	}
	remote, err := r.newRemote(&p.meta)
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := catchSignals()
	defer signal.Stop(signals)
	starting, started := untilSignal(ctx, signals)
	defer started()
	if err := remote.Connect(starting); err != nil {
		return remoteFailure(r.streams, "connect", err)
	}
	defer remote.Close()
	if err := remote.Prepare(starting, r.remoteArguments(), r.command); err != nil {
		return remoteFailure(r.streams, "prepare", err)
	}
	of := r.groupMeta(remote, &p.command, p.meta)
	rec, err := r.create(of, nil)
	if err != nil {
		remote.Abandon()
		return err
	}
	defer rec.release(r.streams)
	if err := r.startRemote(starting, remote, rec.dir, of.StartedAt); err != nil {
		remote.Abandon()
		rec.remove(r.streams)
		return err
	}
	started()
	r.streams.notice("group %s: %s start at %s", remote.Name,
		table.Plural(len(remote.Connection.Hosts), "generator"), of.StartedAt.Local().Format("15:04:05.000"))
	own, err := r.observe(ctx, rec.dir)
	if err != nil {
		r.streams.notice("%v", err) // the generators run: they are followed without a page
		own = &observation{}
	}
	return r.followGroup(ctx, &following{remote, rec.dir, p.unsampled}, own, signals)
}

// untilSignal returns a context that a signal ends, which stays in signals.
func untilSignal(ctx context.Context, signals chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case sig := <-signals:
			cancel()
			signals <- sig
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// newRemote returns the generators of a group that does not exist yet.
func (r *runner) newRemote(meta *rundir.Meta) (*generator.Remote, error) {
	remote := &generator.Remote{
		DataDir: r.config.DataDir, Name: r.groupName(meta), OnFailure: rundir.OnFailure(r.onFailure),
		Connection: rundir.Connection{SSH: strings.Fields(r.ssh), Benchwatch: r.benchwatch, Hosts: r.machines()}, Notice: r.streams.notice,
	}
	if err := rundir.CheckGroup(remote.Name, len(remote.Connection.Hosts)); err != nil {
		return nil, remoteUsage(err)
	}
	if _, err := rundir.At(r.config.DataDir, remote.Name).Load(); err == nil {
		return nil, ownFailure(fmt.Errorf("%w: %s", rundir.ErrExists, remote.Name), "choose another --group")
	}
	return remote, nil
}

// groupMeta returns the facts of the group, taken from its first generator.
func (r *runner) groupMeta(remote *generator.Remote, command *commandline.Command, first rundir.Meta) rundir.Meta {
	n, title := len(remote.Connection.Hosts), first.Title
	first.Group = &rundir.Group{Name: remote.Name, Generators: n, Generator: 1}
	of := generator.Meta(&first, remote.Name)
	of.Threads, of.RatePerSecond = r.together(n)
	if r.title == "" && of.Threads != first.Threads*n {
		command.Description.Threads = of.Threads
		title = command.Title()
	}
	of.Title, of.Required = generator.Title(title, n), first.Required
	of.Group.OnFailure, of.Group.Members = remote.OnFailure, remote.Members()
	at := remote.NextStart()
	of.StartedAt, of.Group.StartAt = at, &at
	return of
}

// startRemote starts the generators, unless ctx is done.
func (r *runner) startRemote(ctx context.Context, remote *generator.Remote, dir rundir.Directory, at time.Time) error {
	if err := dir.SaveConnection(remote.Connection); err != nil {
		r.streams.notice("%v; `benchwatch group attach` will not reach the generators", err)
	}
	if err := remote.Start(ctx, at); err != nil {
		return remoteFailure(r.streams, "start", err)
	}
	if ctx.Err() != nil {
		return ownFailure(errors.New("interrupted before the start"), "")
	}
	return nil
}

// together returns the threads and the rate of all generators, each by its own command.
func (r *runner) together(generators int) (threads, rate int) {
	tools := r.config.ToolSet()
	for i := range generators {
		d := commandline.Read(rundir.FillPlaceholders(r.command, i+1, generators), tools, commandline.OS()).Description
		threads, rate = threads+d.Threads, rate+d.Rate
	}
	return threads, rate
}

// groupName returns the name that the user chose, or one like the id of a run.
func (r *runner) groupName(m *rundir.Meta) string {
	switch {
	case r.grouping.name != "":
		return r.grouping.name
	case r.id != "":
		return r.id
	}
	for n := 1; ; n++ {
		name := rundir.NewID(m.StartedAt, m.Workload, m.Threads, n)
		if _, err := os.Stat(string(rundir.At(r.config.DataDir, name))); err != nil {
			return name
		}
	}
}

// remoteArguments are the flags of each generator's run.
func (r *runner) remoteArguments() []string {
	var args []string
	if r.title != "" {
		args = append(args, "--title="+r.title)
	}
	if r.tool != "" {
		args = append(args, "--tool="+r.tool)
	}
	if !r.inject {
		args = append(args, "--no-inject")
	}
	for _, name := range slices.Sorted(maps.Keys(r.labels)) {
		args = append(args, "--label="+name+"="+r.labels[name])
	}
	return args
}

// leaveTime is how long the generators may take to end after SIGTERM, whose sender waits
// for this process. The last markers may take a second more.
const leaveTime = 700 * time.Millisecond

// following is a group that is followed to its end.
type following struct {
	remote    *generator.Remote
	dir       rundir.Directory
	unsampled string // as in serverAccess
}

// followGroup follows a group to its end. The first signal ends the generators, and the
// second one only this command. After SIGTERM it does not wait for the second.
func (r *runner) followGroup(ctx context.Context, g *following, own *observation, signals chan os.Signal) error {
	defer own.stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var parts sync.WaitGroup
	finish := make(chan struct{})
	report := func(err error) {
		if err != nil && ctx.Err() == nil {
			r.streams.notice("%v", err)
		}
	}
	parts.Go(func() { report(g.remote.Mirror(ctx)) })
	parts.Go(func() { report(launch.Show(ctx, g.dir, r.shown(), r.streams.Err, r.log, finish)) })
	parts.Go(func() { r.showTime(g.dir, finish) })
	ended := make(chan error, 1)
	parts.Go(func() { ended <- r.combine(ctx, g.dir) })
	leave := func(why string) error {
		stop()
		close(finish)
		parts.Wait()
		return ownFailure(errors.New("interrupted: "+why), "benchwatch group attach "+g.dir.ID())
	}
	const left = "generators that were not reached, or have not ended, run on"
	isEnding := false
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			close(finish)
			parts.Wait()
			if err != nil {
				return ownFailure(err, "")
			}
			if late != nil {
				skipWaits(signals)
			}
			return r.groupEnd(g, own, signals)
		case <-late:
			return leave(left)
		case sig := <-signals:
			s, _ := sig.(syscall.Signal)
			ending := slices.Contains([]syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}, s)
			switch {
			case ending && len(g.remote.Connection.Hosts) == 0: // it started none of them
				return leave("the generators run on")
			case ending && isEnding:
				return leave(left)
			case s == syscall.SIGTERM:
				r.streams.notice("ending all generators")
				late = time.After(leaveTime)
			case ending:
				r.streams.notice("ending all generators (Ctrl-C again to leave them running)")
			}
			isEnding = isEnding || ending
			g.remote.Signal(s)
		}
	}
}

// combine combines the generators' runs until the group has ended, in this process or,
// if that does so already, in the agent.
func (r *runner) combine(ctx context.Context, dir rundir.Directory) error {
	follower := generator.Follower{Dir: dir, Log: r.log, OnStart: func(g *rundir.Group) { r.streams.notice("%s", describeSkew(g)) }}
	for {
		err := follower.Run(ctx)
		if !errors.Is(err, generator.ErrFollowed) {
			return err
		}
		if meta, err := dir.Load(); err != nil || meta.Ended() {
			return err
		}
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// describeSkew returns how far apart the generators started.
func describeSkew(g *rundir.Group) string {
	skew, ok := g.Skew()
	if !ok {
		return "the generator has started"
	}
	text := fmt.Sprintf("all generators started within %.1f ms", skew*1000)
	uncertain, offset := 0.0, 0.0
	measured := true
	for _, m := range g.Members {
		if m.ClockUncertaintySeconds == nil || m.ClockOffsetSeconds == nil {
			measured = false
			continue
		}
		uncertain, offset = max(uncertain, *m.ClockUncertaintySeconds), max(offset, *m.ClockOffsetSeconds, -*m.ClockOffsetSeconds)
	}
	if !measured {
		return text + " by their own clocks"
	}
	return text + fmt.Sprintf(" (clocks differ by up to %.1f ms, measured within %.1f ms)", offset*1000, uncertain*1000)
}

// groupEnd prints how a group ended and returns its exit status.
func (r *runner) groupEnd(g *following, own *observation, signals <-chan os.Signal) error {
	h := r.finish(own, g.dir, finishing{unsampled: g.unsampled}, signals)
	meta, err := g.dir.Load()
	if err != nil {
		return err
	}
	if meta.ExitCode != nil && *meta.ExitCode != 0 {
		return &exitError{Status: *meta.ExitCode}
	}
	return r.require.verdict(h)
}
