package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/generator"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func newGroupAttach() *cobra.Command {
	cmd := newCommand("attach", "Follow a group to its end. It is for a lost connection of `run --on`, or generators that record in this data directory.",
		"benchwatch group attach 20261121T021403Z-oltp_read_write-t16")
	r := &runFlags{observing: addObserving(cmd, "warn"), require: &requiring{}}
	cmd.duration(&r.linger, "linger", "Serve metrics this long after the end of the group, if no agent is running")
	var name string
	cmd.argument(&name, "NAME", "Name of the group, which is the id of its run")
	addFormat(cmd, &r.format, text, jsonFormat)
	return cmd.does(func(s Streams) error { return r.attach(s, name) })
}

func (f *runFlags) attach(s Streams, name string) error {
	c, err := f.load()
	if err != nil {
		return err
	}
	r := runner{runFlags: f, console: console{streams: s, terminal: terminal.Of(s.Err)}, log: f.logger(s), config: c}
	dir, err := generator.Find(c.DataDir, name)
	switch {
	case errors.Is(err, generator.ErrNoGroup):
		return withHint(err, "the generators' runs are called "+rundir.GeneratorID(name, 1)+" and so on; choose their folder with --data-dir")
	case err != nil:
		return err
	}
	meta, err := dir.Load()
	if err != nil {
		return err
	}
	r.require.texts = meta.Required // named by `run --on`
	if meta.Ended() {
		s.notice("group %s has ended", name)
		return r.groupEnd(&following{dir: dir}, &observation{}, nil)
	}
	remote := &generator.Remote{DataDir: c.DataDir, Name: name, OnFailure: meta.Group.OnFailure, Notice: s.notice}
	remote.Connection, err = dir.LoadConnection()
	switch {
	case err == nil:
		remote.Reconnect()
	case !errors.Is(err, fs.ErrNotExist) || slices.ContainsFunc(meta.Group.Members, func(m rundir.Member) bool { return m.Host != "" }):
		return withHint(fmt.Errorf("group %s was started by another user or on another machine: %w", name, err),
			"attach as the user who started it, on the machine where it was started")
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	signals := catchSignals()
	defer signal.Stop(signals)
	own, err := r.observe(ctx, dir)
	if err != nil {
		return err
	}
	defer remote.Close()
	return r.followGroup(ctx, &following{remote: remote, dir: dir}, own, signals)
}

// newGroupServe returns the command that `run --on` starts on the other machines.
func newGroupServe() *cobra.Command {
	cmd := newCommand("serve", "Answer the machine that starts a group, on standard input and output.",
		"benchwatch group serve --data-dir=/var/lib/benchwatch")
	cmd.Hidden = true
	r := addStore(cmd)
	return cmd.does(func(s Streams) error {
		if err := r.load(); err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("group: %w", err)
		}
		server := generator.Server{DataDir: r.dataDir, Tools: r.tools, Run: []string{self, "run"}}
		err = server.Serve(context.Background(), s.In, s.Out)
		if errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		return err
	})
}
