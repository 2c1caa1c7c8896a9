package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/many/ab"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// toggling are the flags of a setting that is switched within one run.
type toggling struct {
	text    string
	choices string
	every   time.Duration
	on      string
	restore string
}

func (t *toggling) declare(cmd command) {
	cmd.text(&t.text, "toggle", "TEXT", "Switch a setting, such as 'SET GLOBAL x={v}'; "+strings.Join(ab.Forms(), ", ")+", 'POST http://…={v}' or a shell command")
	cmd.text(&t.choices, "values", "V,V...", "Values of the setting; the first is arm a")
	t.every = 20 * time.Second
	cmd.duration(&t.every, "every", "Length of a block between two switches")
	cmd.text(&t.on, "toggle-on", "NAME,NAME...", "Targets of the configuration that run the statement (default: the server of the command, if its login has no password)")
	cmd.text(&t.restore, "restore", "V", "Value to set at the end, for a request or a command (default: the first of --values; a statement restores the previous value)")
}

// addToggle adds the toggle and its arms to a plan.
func (r *abCommand) addToggle(p *ab.Plan) error {
	t := &ab.Toggle{Text: r.toggling.text, EverySeconds: r.every.Seconds(), Restore: r.restore}
	values := list(r.choices)
	if err := t.Check(values); err != nil {
		return err
	}
	switch {
	case len(values) > len(armNames):
		return fmt.Errorf("--values: at most %d values", len(armNames))
	case secret.Text(t.Text) != t.Text:
		return errors.New("--toggle contains a password, and it is stored for the case that this process is killed; put it into a file or the environment")
	case t.IsStatement() && t.Restore != "":
		return errors.New("--restore: a statement restores the previous value")
	case len(r.command) == 0:
		return errors.New("no command given")
	case len(r.sweepCommand.on) > 0:
		return errors.New("--toggle and --on: the blocks of several generators can't be cut out of their runs yet; switch with --before")
	}
	if t.Restore == "" && !t.IsStatement() {
		t.Restore = values[0]
	}
	for _, limit := range append([]string{p.Measure}, namesOf(p)...) {
		if err := ab.CanToggle(limit); err != nil {
			return err
		}
	}
	for i, v := range values {
		p.Arms = append(p.Arms, ab.Arm{Name: armNames[i], Values: map[string]string{ab.ValueName: v}})
	}
	p.Toggle = t
	if t.IsCommand() { // a mistyped statement, too
		r.streams.notice("--toggle is run as a shell command: %s", t.Text)
	}
	if t.IsStatement() {
		return r.addServers(t)
	}
	return nil
}

// namesOf returns the measures of the relative conditions.
func namesOf(p *ab.Plan) []string {
	var names []string
	for _, c := range p.Conditions() {
		if c.Relative {
			names = append(names, c.Name())
		}
	}
	return names
}

// addServers adds the servers that run a statement.
func (r *abCommand) addServers(t *ab.Toggle) error {
	file := r.configFile
	if file != "" {
		var err error
		if file, err = filepath.Abs(file); err != nil {
			return err
		}
	}
	names := list(r.toggling.on)
	if len(names) > 0 {
		for _, name := range names {
			if _, err := r.config.Target(name); err != nil {
				return fmt.Errorf("--toggle-on: %w", err)
			}
			t.Servers = append(t.Servers, ab.Server{Name: name, Config: file})
		}
		return nil
	}
	env := commandline.OS()
	env.NoInject = true
	command := commandline.Read(r.command, r.tools, env)
	configured := slices.Clone(r.config.Targets)
	names, err := r.config.AddLogin(rundir.NewLogin(&command.Description, &command.Login, command.Place))
	if err != nil {
		return fmt.Errorf("%w: name targets of the configuration with --toggle-on", err)
	}
	for _, name := range names {
		if slices.ContainsFunc(configured, func(c config.Target) bool { return c.Name == name }) {
			t.Servers = append(t.Servers, ab.Server{Name: name, Config: file})
			continue
		}
		if command.Login.Password != "" {
			return fmt.Errorf("the login of the command has a password, which is not stored, so that the setting could not be restored after a kill: name a target of the configuration with --toggle-on")
		}
		target, err := r.config.Target(name)
		if err != nil {
			return err
		}
		t.Servers = append(t.Servers, ab.Server{Name: name, Address: target.Address, User: target.User, Engine: target.Engine, Database: command.Description.Database})
	}
	return nil
}

// checkToggle returns an error for a command with which a toggle can't work.
func (r *abCommand) checkToggle(p *ab.Plan, sets []sweep.Set) error {
	if err := r.checkHooks(sets); err != nil {
		return err
	}
	err := p.Toggle.Try(context.Background(), r.dataDir, list(r.choices), connectToServer)
	if err != nil && strings.Contains(err.Error(), "denied") {
		return withHint(err, "docs/ab.md has the rights that the login needs")
	}
	return err
}

// runBlocks runs the blocks: each as its own run, or all within one run.
func (r *abCommand) runBlocks(ctx context.Context, runner *sweep.Runner) error {
	p, ok := runner.Course.(*ab.Plan)
	if !ok || p.Toggle == nil {
		return runner.Run(ctx)
	}
	return (&ab.Toggler{Runner: runner, Plan: p, Connect: connectToServer}).Run(ctx)
}

// connectToServer returns the login of a server of a toggle.
func connectToServer(s ab.Server) (engine.Target, error) {
	if s.Config == "" {
		return loginOf(s), nil
	}
	c, err := config.Load(s.Config)
	if err != nil {
		return engine.Target{}, err
	}
	return c.Target(s.Name)
}

// loginOf returns the login of a command without a password. A server that an older version stored is of MySQL.
func loginOf(s ab.Server) engine.Target {
	t := engine.Target{Name: s.Name, Engine: cmp.Or(s.Engine, "mysql"), Address: s.Address, User: s.User, Options: map[string]string{}}
	if e := engines.ByName(t.Engine); e != nil && e.DatabaseOption != "" && s.Database != "" {
		t.Options[e.DatabaseOption] = s.Database
	}
	return t
}

// restoreLeft restores the settings that killed comparisons left in the data directory of a command. Failures are
// printed, and do not stop the command.
func restoreLeft(cmd *cobra.Command, s Streams) {
	dataDir, configFile := cmd.Flags().Lookup("data-dir"), cmd.Flags().Lookup("config.file")
	if dataDir == nil || configFile == nil {
		return
	}
	flags := dataFlags{configFlags: configFlags{configFile: configFile.Value.String()}, dataDirFlag: dataDir.Value.String()}
	c, err := flags.load()
	if err != nil {
		return // the command reports it
	}
	if err := ab.RestoreLeft(context.Background(), c.DataDir, connectToServer, s.notice); err != nil {
		s.notice("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}
