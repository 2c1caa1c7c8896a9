// Package replay plays a recorded run again: it writes the output into a new run directory and provides the servers'
// answers as if they were sampled now, each at its time. Everything that follows a live run can therefore follow a
// replay.
package replay

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Label is the label of a replayed run with the id of the recorded run. It is on the page, among the labels of
// benchwatch_run_info, and a tag of the run's markers.
const Label = "replay_of"

// MaxSpeed bounds the speed: a tick still takes some milliseconds.
const MaxSpeed = 100

// Player plays one run. Its sources replace samplers and provide the recorded samples.
type Player struct {
	// Directory is where the run is played into, Length how long that takes.
	Directory rundir.Directory
	Length    time.Duration

	recorded rundir.Meta
	events   []event
	clock    *scaled
	claim    *rundir.Claim
	played   chan struct{}

	servers, machines *Source
}

// event is something that happened in the recorded run, at a time after its start.
type event struct {
	at time.Duration
	do func(p *Player, at time.Time) error
}

// New returns a player for the recorded run h, whose tool is t, that plays it into dataDir at a speed. Nothing is
// played before Run.
func New(ctx context.Context, dir rundir.Directory, h *record.History, t *tool.Tool, dataDir string, speed float64) (*Player, error) {
	p := &Player{recorded: h.Snapshot.Meta, played: make(chan struct{})}
	p.servers = &Source{run: p.Run}
	p.machines = &Source{run: func(ctx context.Context) error { <-ctx.Done(); return nil }}
	if !p.recorded.Ended() {
		return nil, fmt.Errorf("run %s has not ended: only what is over can be replayed", p.recorded.ID)
	}
	if err := p.outputs(dir, h, t); err != nil {
		return nil, err
	}
	if err := p.frames(ctx, h); err != nil {
		return nil, err
	}
	p.add(p.recorded.EndedAt.Sub(p.recorded.StartedAt), (*Player).end)
	for _, m := range h.Markers {
		p.add(m.Start.Sub(p.recorded.StartedAt), func(p *Player, at time.Time) error { return p.mark(m, at) })
	}
	slices.SortStableFunc(p.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	whole := p.events[len(p.events)-1].at
	p.Length = time.Duration(float64(whole) / speed)
	// It ends now at the latest, so no time is in the future.
	p.clock = newScaled(clock.System, speed, p.Length-whole)
	for _, s := range []*Source{p.servers, p.machines} {
		s.clock, s.size = p.clock, len(p.events)
	}
	return p, p.create(dataDir, speed)
}

func (p *Player) add(at time.Duration, do func(*Player, time.Time) error) {
	p.events = append(p.events, event{max(0, at), do})
}

// create makes the directory of the run that is played.
func (p *Player) create(dataDir string, speed float64) (err error) {
	c := p.clock.Clock()
	m := p.recorded
	m.ID, m.Clock, m.StartedAt = "", rundir.NewClock(c), p.clock.wall
	m.Replay = &rundir.ReplaySource{Run: p.recorded.ID, StartedAt: p.recorded.StartedAt, Speed: speed}
	m.Title = "replay: " + m.Title
	m.Labels = map[string]string{}
	maps.Copy(m.Labels, p.recorded.Labels)
	m.Labels[Label] = p.recorded.ID
	m.PID, m.PIDStartTicks, m.BootID, m.Log, m.Import = 0, 0, "", nil, nil
	m.EndedAt, m.ExitCode, m.Signal, m.Outcome, m.Reason = nil, nil, "", "", ""
	if zero := p.recorded.ClockStartedAt; zero != nil {
		moved := m.StartedAt.Add(zero.Sub(p.recorded.StartedAt))
		m.ClockStartedAt = &moved
	}
	m.Drain, m.ClosedAt, m.Servers, m.ToolVersion = nil, nil, nil, ""
	m.Selection = nil
	if names := p.targets(); len(names) > 0 {
		m.Selection = &rundir.Selection{}
		for _, t := range names {
			m.Selection.Targets = append(m.Selection.Targets, t.Name)
		}
	}
	p.Directory, p.claim, err = rundir.Create(dataDir, m)
	return err
}

// Config returns a configuration for an observer of the run: the user's, with the recorded servers as targets.
func (p *Player) Config(own config.Config, dataDir string) *config.Config {
	own.DataDir, own.Targets, own.Proxies, own.Logs, own.Hosts = dataDir, p.targets(), nil, nil, nil
	for _, m := range p.machinesOfRun() {
		own.Hosts = append(own.Hosts, config.Host{Name: m.Host})
	}
	return &own
}

// targets are the recorded servers. Their addresses are not recorded; the drain needs
// to know which one the tool was connected to.
func (p *Player) targets() []config.Target {
	if p.recorded.Servers == nil {
		return nil
	}
	var all []config.Target
	for _, s := range p.recorded.Servers.Targets {
		t := config.Target{Name: s.Target, Engine: s.Engine, Cluster: s.Cluster, Nodename: s.Nodename, Address: "replay.invalid:1"}
		if _, drained := p.recorded.Drain[s.Target]; !drained {
			t.Address = p.recorded.Target
		}
		for _, m := range p.recorded.Servers.Machines {
			if t.Nodename == "" && slices.Contains(m.Targets, s.Target) {
				t.Nodename = m.Nodename
			}
		}
		all = append(all, t)
	}
	return all
}

// machinesOfRun are the recorded machines.
func (p *Player) machinesOfRun() []rundir.Machine {
	if p.recorded.Servers == nil {
		return nil
	}
	return p.recorded.Servers.Machines
}

// Clock is the clock of the replay: it is stopped until Run, then it runs at the replay's speed.
func (p *Player) Clock() *clock.Clock { return p.clock.Clock() }

// Played is closed when everything has been played.
func (p *Player) Played() <-chan struct{} { return p.played }

// Elapsed is how much of Length has been played.
func (p *Player) Elapsed() time.Duration { return p.clock.spent() }

// Run plays the run once an observer follows it, and returns when ctx is done.
func (p *Player) Run(ctx context.Context) error {
	defer p.claim.Release()
	defer p.servers.close()
	if err := p.awaitObserver(ctx); err != nil {
		return nil // ctx is done
	}
	p.clock.start()
	for _, e := range p.events {
		if clock.Sleep(ctx, p.clock.until(e.at)) != nil {
			return nil
		}
		// The time at which it was due, even if this process is late.
		if err := e.do(p, p.clock.wall.Add(e.at)); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	close(p.played)
	<-ctx.Done()
	return nil
}

// awaitObserver waits until the run's owner has decided on its servers, with which it
// begins to record.
func (p *Player) awaitObserver(ctx context.Context) error {
	for {
		if m, err := p.Directory.Load(); err == nil && m.Servers != nil {
			return nil
		}
		if clock.Sleep(ctx, 20*time.Millisecond) != nil {
			return ctx.Err()
		}
	}
}

// end records the end of the tool as it was.
func (p *Player) end(at time.Time) error {
	at = at.UTC()
	_, err := p.Directory.Update(func(m *rundir.Meta) {
		m.EndedAt, m.ExitCode, m.Signal, m.Outcome, m.Reason = &at, p.recorded.ExitCode,
			p.recorded.Signal, p.recorded.Outcome, p.recorded.Reason
	})
	return err
}

// mark sets a recorded marker.
func (p *Player) mark(m marker.Marker, at time.Time) error {
	if !m.End.IsZero() {
		m.End = at.Add(m.End.Sub(m.Start))
	}
	m.ID, m.Run, m.Start = "", p.Directory.ID(), at
	m.Tags = append(slices.Clone(m.Tags), Label+":"+p.recorded.ID)
	return marker.Append(p.Directory, m)
}

// write appends to an output file of the run.
func (p *Player) write(name string, lines []byte) error {
	f, err := p.Directory.OpenOutput(name)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close())
}

// maxOutput bounds the output of a run that is replayed, in bytes: days of any tool.
const maxOutput = 64 << 20

func readOutput(path string) ([]byte, error) {
	f, err := rundir.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	output, err := io.ReadAll(io.LimitReader(f, maxOutput+1))
	if err == nil && len(output) > maxOutput {
		err = fmt.Errorf("%s has more than %d MiB: too much to replay", path, maxOutput>>20)
	}
	return output, err
}

// outputs adds the tool's output: each interval at its end, the lines before the first interval at the start, and the
// lines after the last interval at the end.
func (p *Player) outputs(dir rundir.Directory, h *record.History, t *tool.Tool) error {
	zero, end := h.Zero.Sub(p.recorded.StartedAt), p.recorded.EndedAt.Sub(p.recorded.StartedAt)
	for name, stream := range map[string]tool.Stream{rundir.StdoutFile: tool.Stdout, rundir.StderrFile: tool.Stderr} {
		output, err := readOutput(dir.Path(name))
		if err != nil {
			return fmt.Errorf("read the tool's output: %w", err)
		}
		for _, c := range chunks(output, stream, t, &p.recorded) {
			at := zero + time.Duration(c.elapsed*float64(time.Second))
			if c.last || at > end {
				at = end
			}
			p.add(at, func(p *Player, _ time.Time) error { return p.write(name, c.lines) })
		}
	}
	return nil
}

// example is a run of sysbench on a Galera cluster of three MariaDB servers. One of them becomes slow, and later
// another one, which may lag.
//
//go:embed example
var example embed.FS

// ExampleID is the id of the run that every binary has.
const ExampleID = "galera-slow-node"

// Example writes the run that every binary has into a data directory.
func Example(dataDir string) (rundir.Directory, error) {
	dir := rundir.At(dataDir, ExampleID)
	files, err := fs.Sub(example, "example")
	if err == nil {
		err = os.CopyFS(string(dir), files)
	}
	if err != nil {
		return "", fmt.Errorf("write the example: %w", err)
	}
	return dir, nil
}
