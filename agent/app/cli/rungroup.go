package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/many/generator"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// grouping are the flags for a generator of a group.
type grouping struct {
	name       string
	generators int
	number     int
	startAt    string
	await      bool // another process sets the start

	at time.Time // of --start-at
}

func addGrouping(cmd command) *grouping {
	g := &grouping{}
	cmd.text(&g.name, "group", "NAME",
		"Name of the run's group; {i} and {n} in the command are the generator's number and the number of generators")
	cmd.whole(&g.generators, "generators", "N", "Number of generators in the group")
	cmd.whole(&g.number, "generator", "I", "Number of this generator, from 1 (default: index of the Kubernetes or Slurm job)")
	cmd.text(&g.startAt, "start-at", "TIME", "Start the tool at this time: 2026-11-21T14:03:00Z, 14:03 or 14:03:20")
	cmd.toggle(&g.await, "await-start", "Wait until another process sets the start").Hidden = true
	return g
}

// jobNumbers are the environment variables in which job schedulers number their
// processes, from 0.
var jobNumbers = []string{"JOB_COMPLETION_INDEX", "SLURM_PROCID"}

// check returns the error of flags that do not fit together.
func (g *grouping) check(now time.Time) (err error) {
	usage := func(hint, format string, args ...any) error {
		return &exitError{Status: exitUsage, Err: fmt.Errorf(format, args...), Hint: hint}
	}
	if g.startAt != "" {
		if g.at, err = parseStart(g.startAt, now); err != nil {
			return usage("use 2026-11-21T14:03:00Z, 14:03 or 14:03:20", "%w", err)
		}
	}
	if g.name == "" {
		if g.generators != 0 || g.number != 0 {
			return usage("name the group with --group", "--generators and --generator are for a group")
		}
		return nil
	}
	if g.generators == 0 {
		return usage("add --generators=N", "--group without --generators")
	}
	if err := rundir.CheckGroup(g.name, g.generators); err != nil {
		return usage("", "%w", err)
	}
	for _, name := range jobNumbers {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && g.number == 0 {
			g.number = n + 1
		}
	}
	if g.number == 0 {
		return usage("add --generator=1 for the first one, and so on", "the number of this generator is unknown")
	}
	if g.number < 1 || g.number > g.generators {
		return usage("", "generator %d: the group has %d, numbered from 1", g.number, g.generators)
	}
	return nil
}

// parseStart reads --start-at. A time of day is today, or tomorrow if it was more than half a
// day ago.
func parseStart(value string, now time.Time) (time.Time, error) {
	at, timeOfDay, ok := parseMoment(value, now)
	switch {
	case !ok:
		return at, fmt.Errorf("--start-at %s is not a time", value)
	case timeOfDay && now.Sub(at) > 12*time.Hour:
		return at.AddDate(0, 0, 1), nil
	}
	return at, nil
}

// fill returns the command with its placeholders replaced.
func (g *grouping) fill(command []string) []string {
	if g.name == "" || g.number == 0 {
		return command
	}
	return rundir.FillPlaceholders(command, g.number, g.generators)
}

// join makes a run a generator of the group.
func (g *grouping) join(m *rundir.Meta) {
	if g.name == "" || g.number == 0 {
		return
	}
	m.ID = rundir.GeneratorID(g.name, g.number)
	m.Title = generator.TitleOf(m.Title, g.number, g.generators)
	m.Group = &rundir.Group{Name: g.name, Generators: g.generators, Generator: g.number, Wrapper: rundir.ThisProcess(os.Getpid())}
	if !g.at.IsZero() {
		at := g.at.UTC()
		m.Group.StartAt = &at
	}
}

// startPatience is how long a generator waits for the process that sets the start.
const startPatience = 2 * time.Minute

var errNotStarted = errors.New("the tool was not started")

// awaitStart waits for the start of the tool. It returns an error after an interruption, or if no process set the
// start.
func (g *grouping) awaitStart(dir rundir.Directory, s Streams, signals <-chan os.Signal) error {
	at := g.at
	if g.await {
		if _, err := dir.Update(func(m *rundir.Meta) { m.Group.Ready = true }); err != nil {
			return fmt.Errorf("%w: %w", errNotStarted, err)
		}
		patience := time.After(startPatience)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for at.IsZero() {
			select {
			case <-tick.C:
			case <-patience:
				return fmt.Errorf("%w: no start was set within %s", errNotStarted, startPatience)
			case sig := <-signals:
				return fmt.Errorf("%w: %s", errNotStarted, sig)
			}
			meta, err := dir.Load()
			if err != nil {
				return fmt.Errorf("%w: %w", errNotStarted, err)
			}
			if meta.Group.StartAt != nil {
				at = *meta.Group.StartAt
			}
		}
	}
	if at.IsZero() {
		return nil
	}
	wait := at.Sub(clock.System.Wall())
	if wait <= 0 {
		s.notice("the start was %s ago: the tool starts at once", (-wait).Round(time.Millisecond))
		return nil
	}
	if !g.await {
		s.notice("waiting until %s to start the tool", at.Local().Format("15:04:05.000"))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case sig := <-signals:
		return fmt.Errorf("%w: %s", errNotStarted, sig)
	}
}
