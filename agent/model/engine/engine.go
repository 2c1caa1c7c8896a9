// Package engine samples databases. Each kind of database is one package below this one: an
// [Engine] whose [Prober] reads one server and returns a [Status], with the metrics and measures of
// its servers.
//
// A [Sampler] asks all targets at the same tick, each with a deadline, and publishes their answers
// as one [Frame]. The answers belong to one instant and their positions to one history, so the
// sampler also measures how far each server is behind the most advanced one of its cluster. The
// package knows nothing about benchmark runs.
package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Target is one server (or proxy) to sample. Its password is never printed.
type Target struct {
	Name    string // label `target`, unique
	Engine  string // as configured: mysql, mongodb, tidb, atlas …
	Address string // host:port, or the path of a unix socket
	Cluster string // label `cluster`: targets that replicate from each other
	Behind  string // for a proxy: the cluster of the servers behind it
	Role    string // label `role` if configured; empty: as the server reports
	// Nodename is the configured name of the machine; empty: as the server reports.
	Nodename string

	User     string
	Password Secret
	// ReadPassword returns the current password if it can change while the agent runs; nil: it
	// can't.
	ReadPassword func() (Secret, error)
	TLS          *tls.Config // nil: no TLS
	// TLSOptional: a server that does not offer TLS is sampled without.
	TLSOptional bool
	// Options are the engine's own settings. The engine checks them.
	Options map[string]string

	// Discover: the other members of its cluster are wanted, so the engine asks for those that it would
	// not ask for otherwise.
	Discover bool
	// Hearsay: only another server named this address, so that it may be anyone's. The engine proves
	// that it has the password by a challenge, and never sends the password itself, whether clear or
	// encrypted, with or without TLS. If the server wants it, the engine returns an error.
	Hearsay bool
}

// OptionChecks are the options of an engine. Each function reports what is wrong with a value; nil
// accepts any value.
type OptionChecks map[string]func(value string) error

// Check reports what is wrong with the options of t. An empty value counts as not set.
func (c OptionChecks) Check(t *Target) error {
	for name, value := range t.Options {
		check, known := c[name]
		if name == OptionCapture {
			check, known = OneOf(On, Off), true
		}
		if !known {
			names := append(slices.Collect(maps.Keys(c)), OptionCapture)
			slices.Sort(names)
			return fmt.Errorf("unknown option %q; known are %s", name, strings.Join(names, ", "))
		}
		if check == nil || value == "" {
			continue
		}
		if err := check(value); err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
	}
	return nil
}

// Options that switch off a part of sampling, for engines that have it.
const (
	// OptionSessions controls the sampling of what clients' sessions are waiting for.
	OptionSessions = "sessions"
	// OptionStatements controls the reading of the server's counters by statement.
	OptionStatements = "statements"
	// Values of these options. Cluster is On for a server that answers for all servers of its
	// cluster.
	On, Off, Cluster = "on", "off", "cluster"
)

// OneOf returns a check for one of several values.
func OneOf(values ...string) func(value string) error {
	return func(value string) error {
		if !slices.Contains(values, value) {
			return fmt.Errorf("expected %s, found %q", strings.Join(values, " or "), value)
		}
		return nil
	}
}

// Secret is a value that must not be printed.
type Secret string

// String blanks the secret wherever it would be formatted.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString blanks the secret under %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue blanks the secret in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText blanks the secret in JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Prober asks one target. It keeps at most one connection, opens it when needed and after an error,
// and is used by one goroutine at a time.
type Prober interface {
	// Probe reads the server once and returns a new Status. ctx has the tick's deadline, which also
	// covers connecting. After an error the state of the target is unknown.
	Probe(ctx context.Context) (*Status, error)
	// Close ends the connection.
	Close() error
}

// Engine is one kind of database. The registry lists all engines.
type Engine struct {
	// Name is the value of `engine` in the configuration.
	Name string
	// Also are other databases that it samples.
	Also []string
	// DefaultPort is used for an address without a port.
	DefaultPort string
	// Proxy: its targets are proxies, in front of servers.
	Proxy bool
	// ClientOption is the target's option with the address for clients, for engines that are
	// sampled at a different address.
	ClientOption string
	// DatabaseOption is the target's option with the database to connect to, for engines whose sessions
	// belong to one.
	DatabaseOption string
	// Socket returns the paths at which a server of this machine may listen instead of a port, for tools that connect to
	// localhost with or without a password; nil: tools use the port.
	Socket func(port string, password bool) []string
	// Dumps are read beside an imported log; nil: the engine has none.
	Dumps *Dumps
	// Switch changes settings of servers; nil: the engine's settings can't be changed by statements.
	Switch *Switch
	// Open checks the target's settings and returns a prober. It does not connect.
	Open func(Target, *slog.Logger) (Prober, error)
}

// Status is what one server reported at one tick.
type Status struct {
	// Version is the server's own text. Flavour is in lower case: mysql, mariadb, percona, aurora,
	// tidb, mongodb, atlas …
	Version string
	Flavour string
	// Role as the server reports it: primary, replica, member, … or empty.
	Role string
	// Nodename is the name of the server's machine as `uname -n` prints it; empty if the server
	// does not report it.
	Nodename string
	// Uptime distinguishes restarts from counters that were reset; 0: unknown.
	Uptime time.Duration

	// Encrypted: the connection of this answer has TLS.
	Encrypted bool

	// Membership is who the server is and who else is in its cluster.
	Membership

	// RoundTrip is the time for an exchange in which the server has nothing to do, as measured by
	// the agent; 0: not measured.
	RoundTrip time.Duration

	// Position is how far the server is in the history that its cluster shares; nil if it has none.
	Position Position
	// Received is the position of the server's only source, according to the data received from it;
	// nil if unknown or if the connection is lost.
	Received Position
	// Replicating is false for a node that is up but currently not comparable with the others
	// (joining, partitioned). No lag is computed for it.
	Replicating bool
	// Channels are a replica's connections to its sources, if those can be known by their positions.
	Channels []Channel
	// NoData is set for a member of a cluster without the cluster's data, such as an arbiter or a
	// router. It never has a position.
	NoData bool

	// NotReady is the state of a server that is no full member of its cluster, such as joining; empty
	// otherwise, and if the engine does not report it.
	NotReady string

	// LagSeconds is the engine's own measure of lag, if the engine has a better one than the
	// history of positions (worker tables, Aurora's lag table). If it is unknown, the sampler
	// computes the lag.
	LagSeconds series.Optional[float64]
	// CoarseLagSeconds is the lag in whole seconds that the server itself reports
	// (Seconds_Behind_Source). It is used only if positions give no lag.
	CoarseLagSeconds series.Optional[float64]
	// Delay is how long the server is configured to wait before it applies a transaction. It is not
	// lag: LagSeconds and CoarseLagSeconds exclude it.
	Delay time.Duration

	// Values are the metrics, each at most once per set of label values.
	Values []Value

	// Missing lists what could not be read and why, mostly because the user lacks a privilege. Each text is logged
	// once.
	Missing []string
}

// Position is a point in a replicated history: a Galera seqno, a GTID set, an optime.
type Position interface {
	// Behind returns how many transactions of other are missing at this position; false if they
	// can't be counted or compared (another cluster or kind).
	Behind(other Position) (uint64, bool)
	// Scalar returns a number that grows with the position, for display and for
	// `replication_position`.
	Scalar() float64
	// String returns the position in the server's own notation.
	String() string
}

// Reacher is a Position, such as an optime, that can be compared although transactions can't be
// counted.
type Reacher interface {
	// Reaches reports whether the position has everything that goal has.
	Reaches(goal Position) bool
}

// ByteCounter is a Position in a log whose bytes can be counted.
type ByteCounter interface {
	// BytesBehind returns how many bytes of other's log are missing at this position; false if they
	// can't be compared.
	BytesBehind(other Position) (uint64, bool)
}

// Reached reports whether position has everything that goal has; false if they can't be compared.
func Reached(position, goal Position) bool {
	if r, ok := position.(Reacher); ok {
		return r.Reaches(goal)
	}
	missing, ok := position.Behind(goal)
	return ok && missing == 0
}

// SameHistory reports whether two positions can be compared.
func SameHistory(a, b Position) bool {
	_, ok := a.Behind(b)
	return ok || Reached(a, b) || Reached(b, a)
}

// Value is one sample of a metric.
type Value struct {
	Metric *measure.Metric
	Labels []string
	V      float64
}

// Set adds a value. labels are the values of Metric.Labels, in their order.
func (s *Status) Set(m *measure.Metric, v float64, labels ...string) {
	s.Values = append(s.Values, Value{Metric: m, Labels: labels, V: v})
}

// SetBool adds 1 for true and 0 for false.
func (s *Status) SetBool(m *measure.Metric, on bool, labels ...string) {
	v := 0.0
	if on {
		v = 1
	}
	s.Set(m, v, labels...)
}

// Get returns the value of m with the given label values.
func (s *Status) Get(m *measure.Metric, labels ...string) (float64, bool) {
	for i := range s.Values {
		if v := &s.Values[i]; v.Metric == m && slices.Equal(v.Labels, labels) {
			return v.V, true
		}
	}
	return 0, false
}

// Sample is the answer or failure of one target at one tick.
type Sample struct {
	Target *Target
	// Tick is the common instant; Asked and Answered are the target's own times.
	Tick     time.Time
	Asked    time.Time
	Answered time.Time

	Status *Status // nil if Err is set
	Err    error

	// Restarts counts the restarts since the sampler started.
	Restarts uint64
	// Settings are the settings as last read, perhaps long ago; nil: never read.
	Settings *SettingsReading

	// Source is set for the only primary of its cluster, from which the others replicate. It can't
	// be behind.
	Source bool
	// Lag relative to the most advanced member of the target's cluster at the same tick. It is
	// unknown in a cluster of one and for the Source.
	LagTransactions, LagSeconds, LagBytes series.Optional[float64]
	// Channels is the lag of each channel of a replica with several sources.
	Channels []ChannelLag
}

// Up reports whether the target answered.
func (s *Sample) Up() bool { return s.Err == nil && s.Status != nil }

// All yields every value of a sample: first the values that the sampler adds, then, if the target
// answered, the values that it reported. A Value is valid until the next one.
func (s *Sample) All(yield func(*Value) bool) {
	up := 0.0
	if s.Up() {
		up = 1
	}
	added := []Value{{Metric: Up, V: up}, {Metric: RestartsTotal, V: float64(s.Restarts)}}
	if s.Up() {
		if s.Status.RoundTrip > 0 {
			added = append(added, Value{Metric: RoundTripSeconds, V: s.Status.RoundTrip.Seconds()})
		}
		if s.LagSeconds.Known {
			added = append(added, Value{Metric: ReplicationLagSeconds, V: s.LagSeconds.Value})
		}
		if s.LagTransactions.Known {
			added = append(added, Value{Metric: ReplicationLagTransactions, V: s.LagTransactions.Value})
		}
		if s.LagBytes.Known {
			added = append(added, Value{Metric: ReplicationLagBytes, V: s.LagBytes.Value})
		}
		for _, c := range s.Channels {
			if c.Transactions.Known {
				added = append(added, Value{Metric: ReplicationChannelLagTransactions, Labels: []string{c.Channel}, V: c.Transactions.Value})
			}
			if c.Seconds.Known {
				added = append(added, Value{Metric: ReplicationChannelLagSeconds, Labels: []string{c.Channel}, V: c.Seconds.Value})
			}
		}
		if s.Status.Position != nil {
			added = append(added, Value{Metric: ReplicationPosition, V: s.Status.Position.Scalar()})
		}
	}
	for i := range added {
		if !yield(&added[i]) {
			return
		}
	}
	if !s.Up() {
		return
	}
	for i := range s.Status.Values {
		if !yield(&s.Status.Values[i]) {
			return
		}
	}
}

// Frame contains the answers of all targets at one tick, in the order of the configuration. If a
// target did not answer within the tick, its sample has Err set. A target has no sample if the
// sampler did not run or did not ask it.
type Frame struct {
	Tick time.Time
	// Interval is the distance between ticks. There may be an extra tick between two.
	Interval time.Duration
	// Missed is the number of ticks missed before this one.
	Missed  int
	Samples []Sample
}

// Sample returns the sample of a target, nil if the frame has none.
func (f *Frame) Sample(target string) *Sample {
	for i := range f.Samples {
		if f.Samples[i].Target.Name == target {
			return &f.Samples[i]
		}
	}
	return nil
}

// WithShare limits ctx to a share of its remaining time. It is for optional readings: if they take
// too long, the sample is kept.
func WithShare(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}
