package ab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
)

// Toggle is a setting that is switched while one run goes on.
type Toggle struct {
	// Text switches to the value that replaces {v}: a statement of an engine, a request such as
	// "POST http://…", or a shell command.
	Text string `json:"text"`
	// EverySeconds is the length of a block.
	EverySeconds float64 `json:"every_seconds"`
	// Servers run the statement.
	Servers []Server `json:"servers,omitempty"`
	// Restore is the value that is set at the end, of a request or a command.
	Restore string `json:"restore,omitempty"`
	// CarryOverSeconds after a switch do not count, since they differ from the rest of their block, by
	// CarryOverShare at most. Both are found from the data.
	CarryOverSeconds float64 `json:"carry_over_seconds,omitempty"`
	CarryOverShare   float64 `json:"carry_over_share,omitempty"`
}

// Server is a server of a statement. A login is stored without its password, which is read again from the
// configuration.
type Server struct {
	Name string `json:"name"`
	// Config is the configuration file that has the server; otherwise it needs no password.
	Config  string `json:"config,omitempty"`
	Address string `json:"address,omitempty"`
	User    string `json:"user,omitempty"`
	// Engine and Database come from the command, without a configuration file.
	Engine   string `json:"engine,omitempty"`
	Database string `json:"database,omitempty"`
}

// Connect returns the login of a server.
type Connect func(Server) (engine.Target, error)

// ValueName is the placeholder of a toggle.
const ValueName = "v"

// toggleTimeout limits one switch.
const toggleTimeout = 10 * time.Second

var (
	request   = regexp.MustCompile(`^(GET|PUT|POST|PATCH|DELETE) +(https?://\S+)$`)
	plainText = regexp.MustCompile(`^[A-Za-z0-9_.+:-]+$`)
)

// Check returns an error for a toggle that can't work.
func (t *Toggle) Check(values []string) error {
	switch {
	case !strings.Contains(t.Text, "{"+ValueName+"}"):
		return errors.New("--toggle has no {v}: put it where the values belong")
	case len(values) < 2:
		return errors.New("--values needs two values: --values 1,2")
	case t.EverySeconds < 3:
		return fmt.Errorf("--every %gs: at least 3s, since the seconds after a switch do not count", t.EverySeconds)
	}
	for i, v := range values {
		if !plainText.MatchString(v) {
			return fmt.Errorf("--values: %q has characters other than letters, digits and _.+:-", v)
		}
		if slices.Contains(values[:i], v) {
			return fmt.Errorf("--values has %s twice: the arms are the same", v)
		}
	}
	word, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(t.Text)), " ")
	if slices.Contains([]string{"SET", "ALTER", "UPDATE"}, word) && !t.IsStatement() {
		return errors.New("--toggle: of the statements only " + strings.Join(Forms(), " and ") + " can be restored")
	}
	return nil
}

// Forms are the statements that can switch a setting, of all engines.
func Forms() (all []string) {
	for _, e := range registry.Engines {
		if e.Switch != nil {
			all = append(all, e.Switch.Form)
		}
	}
	return all
}

// IsStatement reports whether servers run the toggle.
func (t *Toggle) IsStatement() bool {
	return slices.ContainsFunc(registry.Engines, func(e *engine.Engine) bool {
		if e.Switch == nil {
			return false
		}
		_, ok := e.Switch.Setting(t.Text)
		return ok
	})
}

// IsCommand reports whether a shell runs the toggle.
func (t *Toggle) IsCommand() bool { return !t.IsStatement() && !request.MatchString(t.Text) }

// change is one switch of one server, or of the setting of a request or command.
type change struct {
	Server Server `json:"server,omitzero"`
	Text   string `json:"text"`
}

// run carries a change out.
func (c *change) run(ctx context.Context, connect Connect) error {
	ctx, cancel := context.WithTimeout(ctx, toggleTimeout)
	defer cancel()
	if c.Server != (Server{}) {
		target, with, err := switchOf(c.Server, connect)
		if err != nil {
			return err
		}
		if err := with.Execute(ctx, target, c.Text); err != nil {
			return fmt.Errorf("%s: %s: %w", c.Server.Name, c.Text, err)
		}
		return nil
	}
	if m := request.FindStringSubmatch(c.Text); m != nil {
		r, err := http.NewRequestWithContext(ctx, m[1], m[2], http.NoBody)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Text, err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Text, err)
		}
		defer answer.Body.Close()
		_, _ = io.CopyN(io.Discard, answer.Body, 1<<20) // the status decides
		if answer.StatusCode/100 != 2 {
			return fmt.Errorf("%s: %s", c.Text, answer.Status)
		}
		return nil
	}
	if err := sweep.Shell(ctx, c.Text, nil, io.Discard); err != nil {
		return fmt.Errorf("%s: %w", c.Text, err)
	}
	return nil
}

// changes returns the changes that switch to a value.
func (t *Toggle) changes(value string) []change {
	text := strings.ReplaceAll(t.Text, "{"+ValueName+"}", value)
	if !t.IsStatement() {
		return []change{{Text: text}}
	}
	var all []change
	for _, s := range t.Servers {
		all = append(all, change{s, text})
	}
	return all
}

// switchOf returns the login of a server, and how its engine changes settings.
func switchOf(s Server, connect Connect) (engine.Target, *engine.Switch, error) {
	target, err := connect(s)
	if err != nil {
		return target, nil, err
	}
	e := registry.ByName(target.Engine)
	if e == nil || e.Switch == nil {
		return target, nil, fmt.Errorf("%s: no statement changes settings of %s", s.Name, target.Engine)
	}
	return target, e.Switch, nil
}

// read returns the value of a statement's setting on a server, and the statement that restores it.
func (t *Toggle) read(ctx context.Context, s Server, connect Connect) (value, restore string, err error) {
	ctx, cancel := context.WithTimeout(ctx, toggleTimeout)
	defer cancel()
	target, with, err := switchOf(s, connect)
	if err != nil {
		return "", "", err
	}
	if _, ok := with.Setting(t.Text); !ok {
		return "", "", fmt.Errorf("%s: %s needs %s", s.Name, target.Engine, with.Form)
	}
	if value, restore, err = with.Read(ctx, target, t.Text); err != nil {
		return "", "", fmt.Errorf("%s: %w", s.Name, err)
	}
	return value, restore, nil
}

// originals returns the changes that restore the setting.
func (t *Toggle) originals(ctx context.Context, connect Connect) ([]change, error) {
	if !t.IsStatement() {
		return t.changes(t.Restore), nil
	}
	var all []change
	for _, s := range t.Servers {
		_, text, err := t.read(ctx, s, connect)
		if err != nil {
			return nil, err
		}
		all = append(all, change{s, text})
	}
	return all, nil
}

// Try proves that the setting can be switched and restored, before anything runs. It restores the setting once, then
// sets each value, and restores the setting again.
func (t *Toggle) Try(ctx context.Context, dataDir string, values []string, connect Connect) (err error) {
	own, err := t.originals(ctx, connect)
	if err != nil {
		return err
	}
	if err := apply(ctx, own, connect); err != nil {
		return err
	}
	j, err := openJournal(dataDir, fmt.Sprintf("try-%d-%d", os.Getpid(), time.Now().UnixNano()), own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.restore(ctx, connect)) }()
	for _, v := range values {
		if err := apply(ctx, t.changes(v), connect); err != nil {
			return err
		}
		for _, s := range t.Servers {
			made, _, err := t.read(ctx, s, connect)
			if err != nil {
				return err
			}
			if wanted, number := strconv.ParseFloat(v, 64); number == nil {
				if got, number := strconv.ParseFloat(made, 64); number == nil && got != wanted {
					return fmt.Errorf("--values %s: %s made %s of it", v, s.Name, made)
				}
			}
		}
	}
	return nil
}

// apply carries changes out at the same time, each regardless of the others.
func apply(ctx context.Context, changes []change, connect Connect) error {
	all := make([]error, len(changes))
	var done sync.WaitGroup
	for i := range changes {
		done.Go(func() { all[i] = changes[i].run(ctx, connect) })
	}
	done.Wait()
	return errors.Join(all...)
}
