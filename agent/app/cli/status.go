package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// linesPerHeader is after how many ticks the column names are printed again.
const linesPerHeader = 20

// statusCommand is one `benchwatch status`. It replaces `mysqladmin extended-status | awk`, for all servers at the same
// instant.
type statusCommand struct {
	configFlags
	logFlags
	target   config.Target
	interval time.Duration
	once     bool
	hosts    bool
	format   string

	width   int                // of the terminal; 0: any
	columns []*measure.Measure // since the last header
}

func newStatus() *cobra.Command {
	cmd := newCommand("status", "Print what each server does, once a second. It shows queries, commits, rollbacks, connections, flow control and lag.",
		"benchwatch status --engine=mysql --address=127.0.0.1:3306 --user=monitor --password-file=monitor.password")
	s := &statusCommand{}
	s.ofAgent = true
	s.configFlags.declare(cmd)
	s.logFlags.declare(cmd, "error")
	cmd.text(&s.target.Engine, "engine", "ENGINE", "Engine of a server that is not in the configuration")
	cmd.text(&s.target.Address, "address", "ADDR", "Address of this server, host:port")
	cmd.text(&s.target.User, "user", "NAME", "User to connect as")
	cmd.text(&s.target.PasswordFile, "password-file", "FILE", "File with the password of the user")
	s.interval = time.Second
	cmd.duration(&s.interval, "interval,i", "Time between two lines; at least 100ms")
	cmd.toggle(&s.once, "once", "Print one line per target and exit")
	cmd.toggle(&s.hosts, "hosts", "Also print a line for each machine; this one and those with a node_exporter in the configuration")
	addFormat(cmd, &s.format, text, jsonFormat)
	return cmd.does(s.run)
}

func (c *statusCommand) run(s Streams) error {
	log := c.logger(s)
	conf, err := c.load()
	if err != nil {
		return err
	}
	if c.target.Engine != "" || c.target.Address != "" {
		if c.target.Engine == "" || c.target.Address == "" {
			return &exitError{Status: exitUsage, Err: errors.New("--engine and --address go together"),
				Hint: "benchwatch status --engine=mysql --address=127.0.0.1:3306"}
		}
		if engines.ByName(c.target.Engine) == nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("unknown engine %q", c.target.Engine),
				Hint: "known are " + strings.Join(engines.Names(), ", ")}
		}
		if err := config.CheckAddress(c.target.Address); err != nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("--address: %w", err),
				Hint: "use --address=127.0.0.1:3306 --user=monitor --password-file=FILE"}
		}
		c.target.Name = c.target.Address
		conf.Targets = []config.Target{c.target}
	}
	if len(conf.Targets) == 0 {
		return &exitError{Status: exitUsage, Err: errors.New("no servers to ask"),
			Hint: "use --config.file, or --engine and --address; benchwatch init configures servers"}
	}
	if c.interval < 100*time.Millisecond {
		return &exitError{Status: exitUsage, Err: fmt.Errorf("interval %s is too short", c.interval), Hint: "100ms is the shortest"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	open := func(t engine.Target) (engine.Prober, error) { return config.Open(t, log) }
	sampler := engine.NewSampler(conf.EngineTargets(log), open, c.interval, engine.Options{Logger: log})
	frames, unsubscribe := sampler.Subscribe(4)
	defer unsubscribe()
	var sampling sync.WaitGroup
	defer sampling.Wait()
	defer cancel()
	sampling.Go(func() { _ = sampler.Run(ctx) }) // it ends with ctx
	var hostFrames <-chan engine.Frame
	if c.hosts {
		hosts := engine.NewSampler(conf.HostTargets(), func(t engine.Target) (engine.Prober, error) { return host.Open(t, log) }, c.interval, engine.Options{Logger: log})
		var unsubscribe func()
		hostFrames, unsubscribe = hosts.Subscribe(4)
		defer unsubscribe()
		sampling.Go(func() { _ = hosts.Run(ctx) }) // it ends with ctx
	}
	c.width = terminal.Of(s.Out).Width
	return c.print(frames, hostFrames, s.Out)
}

// print writes a line for each target and frame, with rates since the previous frame, and for each machine if hosts is
// not nil.
func (c *statusCommand) print(frames, hosts <-chan engine.Frame, out io.Writer) error {
	var before, hostsBefore engine.Frame
	printed := 0
	var failed error // of --once
	for {
		var frame engine.Frame
		open := true
		select {
		case frame, open = <-frames:
		case frame, open = <-hosts:
			if open {
				if hostsBefore.Samples != nil && !c.printHosts(&hostsBefore, &frame, out) {
					return nil
				}
				if hostsBefore.Samples != nil && c.once {
					if hosts = nil; printed > 0 {
						return failed
					}
				}
				hostsBefore = frame
				continue
			}
		}
		if !open {
			return nil
		}
		if before.Samples == nil { // a rate needs two
			before = frame
			continue
		}
		if c.once && printed > 0 {
			continue // the machines are not printed yet
		}
		lines, err := c.lines(before, frame, printed%linesPerHeader == 0)
		if err != nil {
			return err
		}
		if _, err := out.Write(lines); err != nil {
			return nil // the reader has gone, as `head` does
		}
		if printed++; c.once {
			up := func(s engine.Sample) bool { return s.Up() }
			if !slices.ContainsFunc(frame.Samples, up) {
				failed = errors.New("no server answered")
			}
			if hosts == nil {
				return failed
			}
		}
		before = frame
	}
}

// lines returns a line for each target, with rates since the previous frame.
func (c *statusCommand) lines(before, frame engine.Frame, header bool) ([]byte, error) {
	var b strings.Builder
	names := nameWidth(frame)
	var all []statusLine
	for i := range frame.Samples {
		all = append(all, newStatusLine(find(before, frame.Samples[i].Target.Name), &frame.Samples[i]))
	}
	if c.format == text && header {
		c.columns = fitting(all, c.width, names)
		writeHeader(&b, c.columns, names)
	}
	for _, line := range all {
		if c.format == text {
			line.write(&b, c.columns, names)
			continue
		}
		data, err := json.Marshal(line)
		if err != nil {
			return nil, fmt.Errorf("encode status: %w", err)
		}
		b.Write(append(data, '\n'))
	}
	return []byte(b.String()), nil
}

// printHosts writes a line for each machine, and reports whether the output still has a reader.
func (c *statusCommand) printHosts(before, frame *engine.Frame, out io.Writer) bool {
	var b strings.Builder
	for i := range frame.Samples {
		line := newStatusLine(find(*before, frame.Samples[i].Target.Name), &frame.Samples[i])
		line.Target, line.Host = "", line.Target
		if c.format == jsonFormat {
			data, err := json.Marshal(line)
			if err != nil {
				continue // its values are numbers
			}
			b.Write(append(data, '\n'))
		} else {
			line.writeHost(&b)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err == nil
}

func find(f engine.Frame, target string) *engine.Sample {
	for i := range f.Samples {
		if f.Samples[i].Target.Name == target {
			return &f.Samples[i]
		}
	}
	return &engine.Sample{}
}

// statusLine is one target at one tick. In JSON it has a field for each measure
// that is known, see [measure.Measure.Field].
type statusLine struct {
	Time   time.Time `json:"time"`
	Target string    `json:"target,omitempty"`
	// Host is the name of a machine, in the lines of --hosts. These have no target.
	Host  string `json:"host,omitempty"`
	Up    bool   `json:"up"`
	Error string `json:"error,omitempty"`

	now *engine.Window
}

func newStatusLine(before, s *engine.Sample) statusLine {
	line := statusLine{Time: s.Tick, Target: s.Target.Name, Up: s.Up(), now: engine.NewWindow(before, s)}
	if s.Err != nil {
		line.Error = table.Plain(s.Err.Error())
	}
	return line
}

// MarshalJSON implements json.Marshaler.
func (l statusLine) MarshalJSON() ([]byte, error) {
	type plain statusLine
	if !l.Up {
		return json.Marshal(plain(l))
	}
	var fields []table.Field
	scope := measure.Server
	if l.Host != "" {
		scope = measure.Host
	}
	for _, m := range measure.All(scope) {
		if m != engine.Answered && m.Summary != measure.Cost { // Up
			fields = append(fields, table.Field{Name: m.Field(), Value: series.Number(l.now.Now(m))})
		}
	}
	return table.MarshalFields(plain(l), fields)
}

func nameWidth(f engine.Frame) int {
	width := len("Target")
	for i := range f.Samples {
		width = max(width, len(f.Samples[i].Target.Name))
	}
	return width
}

// statusMeasures returns the measures that have a column.
func statusMeasures() []*measure.Measure {
	return slices.DeleteFunc(measure.All(measure.Server), func(m *measure.Measure) bool { return m.Short == "" })
}

// fitting returns the measures whose columns fit into a terminal beside the names of targets; width 0: all. Columns
// without a value of any target go first, then the ones that others explain.
func fitting(lines []statusLine, width, names int) []*measure.Measure {
	columns := statusMeasures()
	needed := lineStart + names
	for _, m := range columns {
		needed += 1 + columnWidth(m)
	}
	var spare []*measure.Measure
	for _, m := range slices.Backward(columns) {
		if !slices.ContainsFunc(lines, func(l statusLine) bool { return l.now.Now(m).Known }) {
			spare = append(spare, m)
		}
	}
	spare = append(spare, engine.TransactionRate, engine.RoundTrip, engine.RollbackRate, engine.ReplicationQueue,
		engine.LagTransactions, engine.RunningThreads, engine.OpenConnections, engine.CommitRate, engine.FlowControl, engine.LagSeconds)
	for _, m := range spare {
		if width == 0 || needed <= width {
			break
		}
		if i := slices.Index(columns, m); i >= 0 {
			needed -= 1 + columnWidth(m)
			columns = slices.Delete(columns, i, i+1)
		}
	}
	return columns
}

// lineStart is the width of the time and the blanks around it and the name.
const lineStart = len("15:04:05") + 3

// columnWidth leaves rates of millions in their columns.
func columnWidth(m *measure.Measure) int {
	if m.Unit == measure.PerSecond {
		return max(9, len(m.Short))
	}
	return max(7, len(m.Short))
}

func writeHeader(b *strings.Builder, columns []*measure.Measure, width int) {
	fmt.Fprintf(b, "%-8s  %-*s ", "Time", width, "Target")
	for _, m := range columns {
		fmt.Fprintf(b, " %*s", columnWidth(m), m.Short)
	}
	b.WriteByte('\n')
}

func (l *statusLine) write(b *strings.Builder, columns []*measure.Measure, width int) {
	fmt.Fprintf(b, "%-8s  %-*s ", l.Time.Local().Format("15:04:05"), width, l.Target)
	if !l.Up {
		fmt.Fprintf(b, " down: %s\n", l.Error)
		return
	}
	for _, m := range columns {
		fmt.Fprintf(b, " %*s", columnWidth(m), statusCell(m, l.now.Now(m)))
	}
	b.WriteByte('\n')
}

// writeHost writes the values of a machine, each with its name.
func (l *statusLine) writeHost(b *strings.Builder) {
	fmt.Fprintf(b, "%-8s  host %s:", l.Time.Local().Format("15:04:05"), l.Host)
	if !l.Up {
		fmt.Fprintf(b, " down: %s\n", l.Error)
		return
	}
	separator := " "
	for _, m := range measure.All(measure.Host) {
		v := l.now.Now(m)
		if !v.Known || m.NoChart && m != host.SoftIRQ || m.Summary == measure.Cost || v.Value == 0 && m != host.Busy {
			continue
		}
		fmt.Fprintf(b, "%s%s %s", separator, m.Label(), table.UnitOf(m).Signed(v.Value))
		if m.Unit == measure.Bytes && m.IsRate() {
			b.WriteString("/s")
		}
		separator = ", "
	}
	b.WriteByte('\n')
}

// statusCell prints shares and times as tables do, and everything else as whole numbers.
func statusCell(m *measure.Measure, v series.Optional[float64]) string {
	switch u := table.UnitOf(m); {
	case !v.Known:
		return "-"
	case m.Unit == measure.Ratio:
		return u.Format(v.Value) + u.Sign
	case m.Unit == measure.Seconds:
		return u.Format(v.Value)
	}
	return table.Count.Format(v.Value)
}
