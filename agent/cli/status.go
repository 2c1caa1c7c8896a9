package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/engine"
	engines "github.com/benchwatch/benchwatch/agent/engine/registry"
	"github.com/benchwatch/benchwatch/agent/series"
)

// linesPerHeader is after how many ticks the column names are printed again.
const linesPerHeader = 20

// statusCommand is one `benchwatch status`: what people use
// `mysqladmin extended-status | awk` for, on all servers at the same instant.
type statusCommand struct {
	configFlags
	logFlags
	target   config.Target
	interval *time.Duration
	once     *bool
	json     *bool
}

func addStatus(app *kingpin.Application) (string, action) {
	cmd := addCommand(app, "status", "Print one line per target and second: queries, commits, rollbacks, connections, flow control, lag.",
		"benchwatch status --engine=mysql --address=127.0.0.1:3306 --user=monitor --password-file=monitor.password")
	s := &statusCommand{configFlags: addConfigFlags(cmd), logFlags: addLogFlags(cmd, "error")}
	cmd.Flag("engine", "Engine of a server that is not in the configuration").PlaceHolder("ENGINE").StringVar(&s.target.Engine)
	cmd.Flag("address", "Address of that server, host:port").PlaceHolder("ADDR").StringVar(&s.target.Address)
	cmd.Flag("user", "User to connect as").PlaceHolder("NAME").StringVar(&s.target.User)
	cmd.Flag("password-file", "File with the password of the user").PlaceHolder("FILE").StringVar(&s.target.PasswordFile)
	s.interval = cmd.Flag("interval", "Time between two lines; at least 100ms").Short('i').Default("1s").Duration()
	s.once = cmd.Flag("once", "Print one line per target and exit").Bool()
	s.json = cmd.Flag("json", "Print one JSON object per line").Bool()
	return cmd.FullCommand(), s.run
}

func (c *statusCommand) run(s Streams) error {
	log := c.logger(s)
	conf, err := c.load()
	if err != nil {
		return err
	}
	if c.target.Engine != "" || c.target.Address != "" {
		if c.target.Engine == "" || c.target.Address == "" {
			return &exitError{Status: exitUsage, Err: errors.New("--engine and --address go together")}
		}
		if engines.ByName(c.target.Engine) == nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("unknown engine %q", c.target.Engine), Hint: "known are " + strings.Join(engines.Names(), ", ")}
		}
		c.target.Name = c.target.Address
		conf.Targets = []config.Target{c.target}
	}
	if len(conf.Targets) == 0 {
		return &exitError{Status: exitUsage, Err: errors.New("no servers to ask"), Hint: "use --config.file, or --engine and --address"}
	}
	if *c.interval < 100*time.Millisecond {
		return &exitError{Status: exitUsage, Err: fmt.Errorf("interval %s is too short", *c.interval), Hint: "100ms is the shortest"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	open := func(t engine.Target) (engine.Prober, error) { return config.Open(t, log) }
	sampler := engine.NewSampler(conf.EngineTargets(log), open, *c.interval, engine.Options{Logger: log})
	frames, unsubscribe := sampler.Subscribe(4)
	defer unsubscribe()
	var sampling sync.WaitGroup
	defer sampling.Wait()
	defer cancel()
	sampling.Go(func() { _ = sampler.Run(ctx) }) // it ends with ctx
	return c.print(frames, s.Out)
}

// print writes a block for each frame, rates against the frame before.
func (c *statusCommand) print(frames <-chan engine.Frame, out io.Writer) error {
	var before engine.Frame
	printed := 0
	for frame := range frames {
		if before.Samples == nil { // a rate needs two
			before = frame
			continue
		}
		var b strings.Builder
		if !*c.json && printed%linesPerHeader == 0 {
			writeHeader(&b, nameWidth(frame))
		}
		for i := range frame.Samples {
			line := statusLineOf(earlier(before, frame.Samples[i].Target.Name), &frame.Samples[i])
			if *c.json {
				data, err := json.Marshal(line)
				if err != nil {
					return fmt.Errorf("encode status: %w", err)
				}
				b.Write(append(data, '\n'))
			} else {
				line.write(&b, nameWidth(frame))
			}
		}
		if _, err := io.WriteString(out, b.String()); err != nil {
			return nil // the reader has gone, as `head` does
		}
		if printed++; *c.once {
			return nil
		}
		before = frame
	}
	return nil
}

func earlier(f engine.Frame, target string) *engine.Sample {
	for i := range f.Samples {
		if f.Samples[i].Target.Name == target {
			return &f.Samples[i]
		}
	}
	return &engine.Sample{}
}

// statusLine is one server at one tick. What is not known is absent.
type statusLine struct {
	Time      time.Time                `json:"time"`
	Target    string                   `json:"target"`
	Up        bool                     `json:"up"`
	Error     string                   `json:"error,omitempty"`
	Queries   series.Optional[float64] `json:"queries_per_second,omitzero"`
	Commits   series.Optional[float64] `json:"commits_per_second,omitzero"`
	Rollbacks series.Optional[float64] `json:"rollbacks_per_second,omitzero"`
	// Transactions are commits and rollbacks.
	Transactions series.Optional[float64] `json:"transactions_per_second,omitzero"`
	Connections  series.Optional[float64] `json:"connections,omitzero"`
	Running      series.Optional[float64] `json:"threads_running,omitzero"`
	// FlowControl is the share of the time that the server was paused, 0 to 1.
	FlowControl     series.Optional[float64] `json:"flow_control_ratio,omitzero"`
	LagTransactions series.Optional[float64] `json:"lag_transactions,omitzero"`
	LagSeconds      series.Optional[float64] `json:"lag_seconds,omitzero"`
	Queue           series.Optional[float64] `json:"replication_queue,omitzero"`
}

func statusLineOf(before, s *engine.Sample) statusLine {
	line := statusLine{Time: s.Tick, Target: s.Target.Name, Up: s.Up()}
	if !s.Up() {
		if s.Err != nil {
			line.Error = s.Err.Error()
		}
		return line
	}
	now := engine.NewWindow(before, s).Now
	line.Queries, line.Commits, line.Rollbacks = now(engine.QueryRate), now(engine.CommitRate), now(engine.RollbackRate)
	line.Transactions, line.Connections, line.Running = now(engine.TransactionRate), now(engine.OpenConnections), now(engine.RunningThreads)
	line.FlowControl, line.Queue = now(engine.FlowControl), now(engine.ReplicationQueue)
	line.LagTransactions, line.LagSeconds = s.LagTransactions, s.LagSeconds
	return line
}

func nameWidth(f engine.Frame) int {
	width := len("Target")
	for i := range f.Samples {
		width = max(width, len(f.Samples[i].Target.Name))
	}
	return width
}

const columns = "  %9s %9s %9s %9s %6s %5s %7s %9s %7s %7s\n"

func writeHeader(b *strings.Builder, width int) {
	fmt.Fprintf(b, "%-8s  %-*s"+columns, "Time", width, "Target", "QPS", "Commit", "Rollback", "TPS", "Conn", "Run", "Paused", "Lag(trx)", "Lag(s)", "Queue")
}

func (l *statusLine) write(b *strings.Builder, width int) {
	fmt.Fprintf(b, "%-8s  %-*s", l.Time.Local().Format("15:04:05"), width, l.Target)
	if !l.Up {
		fmt.Fprintf(b, "  down: %s\n", l.Error)
		return
	}
	paused := "-"
	if l.FlowControl.Known {
		paused = strconv.FormatFloat(l.FlowControl.Value*100, 'f', 1, 64) + "%"
	}
	fmt.Fprintf(b, columns, whole(l.Queries), whole(l.Commits), whole(l.Rollbacks), whole(l.Transactions), whole(l.Connections), whole(l.Running),
		paused, whole(l.LagTransactions), tenths(l.LagSeconds), whole(l.Queue))
}

func whole(v series.Optional[float64]) string { return decimals(v, 0) }

func tenths(v series.Optional[float64]) string { return decimals(v, 1) }

func decimals(v series.Optional[float64], n int) string {
	if !v.Known {
		return "-"
	}
	return strconv.FormatFloat(v.Value, 'f', n, 64)
}
