package cause

import (
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// View is what a cause can read: one server over the run, with what is known of the run. A cause that is declared
// without an engine gets a view of the run, without a server. Unknown numbers are as in package series.
type View struct {
	// Limit is the finding to explain, Share its share of the clients' time, Of the program or server that it names.
	Limit Limit
	Share float64
	Of    string

	Target, Engine, Version string

	Tool string
	// Seconds is how long the run took. Threads is the number of clients, Rate the configured transactions per second.
	Seconds, Threads, Rate float64
	// Throughput is in transactions per second. Statements and Opened, new connections, are for each transaction.
	// FailedShare is the part that failed.
	Throughput, Statements, Opened, FailedShare float64
	// ForeignShare is the share of statements that the tool did not send.
	ForeignShare float64
	// CPU is who used the cores of the tool's machine, ServerCores how many cores the servers on the machine of this one
	// used on average.
	CPU         CPUUse
	ServerCores float64
	// FullCores is the share of the time in which nearly all cores of this server's machine were in use.
	FullCores float64
	// ToolCores is how many cores the tool used. RoundTrip is the least time in seconds to a server and back if the tool
	// connects to sampled servers, not to a proxy; else unknown.
	ToolCores, RoundTrip float64
	// Silent describes the servers of the run that mostly did not answer, by name.
	Silent map[string]string

	// Executed are the statements that the server executed for the run, the longest first: none if they are unknown,
	// belong to another load, or took so little time that they explain nothing. InStatements is their time as a share
	// of the clients' time.
	Executed     []Statement
	InStatements float64
	// States are the sessions by class and the server's name of their state, on average.
	States []StateSessions

	// Record has the recorded values.
	Record Record
}

// StateSessions is how many sessions were in a state, on average.
type StateSessions struct {
	Class, Name string
	Sessions    float64
}

// CPUUse is who used the cores of a machine, as shares of what was used: together 1. Other is unknown if the processes
// are.
type CPUUse struct{ Tool, Servers, Other, Kernel float64 }

// Statement is what the server counted of one kind of statement.
type Statement struct {
	Text string
	// Share is the share of the time of all statements. IsSum: it is several statements without a text.
	Share float64
	IsSum bool
	measure.StatementCounts
}

// Record reads what was recorded of a server, or of the tool's machine in a view of the run.
type Record interface {
	// Values returns the values of a measure over the run, thinned.
	Values(m *measure.Measure) []float64
	// Tally returns the summary of a measure's values.
	Tally(m *measure.Measure) series.Tally
	// Increase returns how much the counters of a measure grew.
	Increase(m *measure.Measure) float64
	// IncreaseBy is Increase for each value of a label.
	IncreaseBy(m *measure.Measure, label string) map[string]float64
	// Cluster returns the sum of Increase over the servers of the run.
	Cluster(m *measure.Measure) float64
	// Setting returns a setting as it was read during the run; empty if it was not.
	Setting(name string) string
}

// Mean returns the mean of a measure over the run.
func (v *View) Mean(m *measure.Measure) float64 {
	if v.Record == nil {
		return series.Unknown()
	}
	t := v.Record.Tally(m)
	return t.Mean()
}

// Max returns the largest value of a measure.
func (v *View) Max(m *measure.Measure) float64 {
	if v.Record == nil {
		return series.Unknown()
	}
	return v.Record.Tally(m).Max
}

// Last returns the last value of a measure.
func (v *View) Last(m *measure.Measure) float64 {
	if v.Record == nil {
		return series.Unknown()
	}
	return v.Record.Tally(m).Last
}

// Increase returns how much the counters of a measure grew over the run.
func (v *View) Increase(m *measure.Measure) float64 {
	if v.Record == nil {
		return series.Unknown()
	}
	return v.Record.Increase(m)
}

// IncreaseBy is Increase for each value of a label.
func (v *View) IncreaseBy(m *measure.Measure, label string) map[string]float64 {
	if v.Record == nil {
		return nil
	}
	return v.Record.IncreaseBy(m, label)
}

// Cluster returns how much the counters of a measure grew on all servers of the run together.
func (v *View) Cluster(m *measure.Measure) float64 {
	if v.Record == nil {
		return series.Unknown()
	}
	return v.Record.Cluster(m)
}

// Values returns the values of a measure over the run, thinned.
func (v *View) Values(m *measure.Measure) []float64 {
	if v.Record == nil {
		return nil
	}
	return v.Record.Values(m)
}

// Ends returns the mean of a measure over the first and over the last third of the run, unknown if there are too few values.
func (v *View) Ends(m *measure.Measure) (first, last float64) {
	var known []float64
	for _, value := range v.Values(m) {
		if series.IsKnown(value) {
			known = append(known, value)
		}
	}
	third := len(known) / 3
	if third < 2 {
		return series.Unknown(), series.Unknown()
	}
	for i := range third {
		first, last = first+known[i]/float64(third), last+known[len(known)-1-i]/float64(third)
	}
	return first, last
}

// Reports reports whether there are values of a measure.
func (v *View) Reports(m *measure.Measure) bool {
	if v.Record == nil {
		return false
	}
	t := v.Record.Tally(m)
	return t.Count > 0
}

// PerSecond returns how fast the counters of a measure grew.
func (v *View) PerSecond(m *measure.Measure) float64 { return v.Increase(m) / v.Seconds }

// PerTransaction returns the mean of a rate for each of the run's transactions.
func (v *View) PerTransaction(m *measure.Measure) float64 { return v.Mean(m) / v.Throughput }

// Setting returns a setting as it was read during the run; empty if it was not.
func (v *View) Setting(name string) string {
	if v.Record == nil {
		return ""
	}
	return v.Record.Setting(name)
}

// Number returns a setting as a number, unknown if it is not a number or was not read.
func (v *View) Number(setting string) float64 {
	n, err := strconv.ParseFloat(v.Setting(setting), 64)
	if err != nil {
		return series.Unknown()
	}
	return n
}

// SessionsIn returns how many sessions were in states whose name begins so, on average.
func (v *View) SessionsIn(state string) (sessions float64) {
	for _, s := range v.States {
		if strings.HasPrefix(strings.ToLower(s.Name), state) {
			sessions += s.Sessions
		}
	}
	return sessions
}

// InState returns the sessions in states whose name begins so, as a share of all sessions of the same class.
func (v *View) InState(state string) float64 {
	class, all := "", 0.0
	for _, s := range v.States {
		if strings.HasPrefix(strings.ToLower(s.Name), state) {
			class = s.Class
		}
	}
	for _, s := range v.States {
		if s.Class == class {
			all += s.Sessions
		}
	}
	if class == "" || all == 0 {
		return 0
	}
	return v.SessionsIn(state) / all
}

// OrZero returns a value that is never negative, such as an increase, a rate or a share; 0 if it is unknown.
func OrZero(v float64) float64 {
	if v > 0 {
		return v
	}
	return 0
}
