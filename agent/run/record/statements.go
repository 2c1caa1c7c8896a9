package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// StatementsFile is the name of the file that holds what each server executed by
	// statement: a line per target, written when the run has ended.
	StatementsFile = "statements.jsonl"
	// statementsBegin holds the servers' counters when the run began, until its end.
	statementsBegin = ".statements.json"
	// keptStatements is how many statements of a server are recorded one by one, those that
	// took the most time.
	keptStatements = 50
	// longestBegin bounds what is read of statementsBegin, in bytes.
	longestBegin = 64 << 20
)

// ServerStatements is one line of statements.jsonl: what a target executed between two
// moments, by its own counters.
type ServerStatements struct {
	Target  string `json:"target"`
	Engine  string `json:"engine"`
	Cluster string `json:"cluster,omitempty"`
	// From and To are when the counters were read.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Questions is the number of statements that clients sent, Prepared how many of them executed a prepared statement.
	Questions series.Optional[float64] `json:"questions,omitzero"`
	Prepared  series.Optional[float64] `json:"prepared,omitzero"`
	// Statements are the statements that took the most time, Rest is the sum of all others, and RestKinds the number of
	// their kinds.
	Statements []engine.Statement      `json:"statements,omitempty"`
	Rest       *engine.StatementCounts `json:"rest,omitempty"`
	RestKinds  int                     `json:"rest_kinds,omitempty"`
	// Latency of all statements, as far as the server measured it.
	Latency engine.LatencyBuckets `json:"latency,omitempty"`
	// Error is why nothing was read.
	Error string `json:"error,omitempty"`
}

// StatementsBegun is what was read of a target when the run began.
type StatementsBegun struct {
	Engine  string                   `json:"engine"`
	Cluster string                   `json:"cluster,omitempty"`
	Reading *engine.StatementReading `json:"reading,omitempty"`
	Error   string                   `json:"error,omitempty"`
}

// WriteStatementsBegin keeps what was read when the run began, by target, until the run
// ends: also after a restart of this process.
func WriteStatementsBegin(d rundir.Directory, begun map[string]StatementsBegun) error {
	if space, err := rundir.SpaceOf(string(d)); err == nil && space.Low() {
		return ErrDiskLow
	}
	err := rundir.Replace(d.Path(statementsBegin), 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(begun) })
	if err != nil {
		return fmt.Errorf("write statements: %w", err)
	}
	return nil
}

// ReadStatementsBegin returns what WriteStatementsBegin kept. The error matches
// fs.ErrNotExist if there is nothing.
func ReadStatementsBegin(d rundir.Directory) (map[string]StatementsBegun, error) {
	f, err := rundir.Open(d.Path(statementsBegin))
	if err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	defer f.Close()
	var begun map[string]StatementsBegun
	if err := json.NewDecoder(io.LimitReader(f, longestBegin)).Decode(&begun); err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	return begun, nil
}

// WriteStatements writes what the servers executed, and drops what WriteStatementsBegin
// kept.
func WriteStatements(d rundir.Directory, all []ServerStatements) error {
	if space, err := rundir.SpaceOf(string(d)); err == nil && space.Low() {
		return ErrDiskLow
	}
	file := &lineFile{path: d.Path(StatementsFile)}
	defer file.close()
	var lines []any
	for i := range all {
		lines = append(lines, &all[i])
	}
	if err := file.appendJSON(lines...); err != nil {
		return fmt.Errorf("write statements: %w", err)
	}
	if err := os.Remove(d.Path(statementsBegin)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write statements: %w", err)
	}
	return nil
}

// NewServerStatements returns the line of a target.
func NewServerStatements(target string, begun *StatementsBegun, end engine.StatementsAnswer) ServerStatements {
	s := ServerStatements{Target: target, Engine: begun.Engine, Cluster: begun.Cluster, Error: begun.Error}
	if s.Error != "" {
		return s
	}
	if end.Err != nil {
		s.Error = secret.Text(end.Err.Error())
		return s
	}
	delta, err := engine.StatementsBetween(begun.Reading, end.StatementReading)
	if err != nil {
		s.Error = err.Error()
		return s
	}
	s.From, s.To, s.Questions, s.Prepared, s.Latency = delta.From, delta.To, delta.Questions, delta.Prepared, delta.Latency
	for i, one := range delta.Statements {
		// Those without a text are sums, or beyond the ones whose texts are read.
		if len(s.Statements) < keptStatements && (one.Text != "" || one.Digest == "" || one.Digest == engine.DigestPrepared) {
			one.Schema, one.Text, one.FirstSeen = secret.Text(one.Schema), secret.Text(one.Text), 0
			s.Statements = append(s.Statements, one)
			continue
		}
		if s.Rest == nil {
			s.Rest = &engine.StatementCounts{}
		}
		s.Rest.Add(&delta.Statements[i].StatementCounts)
		s.RestKinds++
	}
	return s
}

// Total is the sum over all statements.
func (s *ServerStatements) Total() engine.StatementCounts {
	d := engine.StatementsDelta{Statements: s.Statements}
	total := d.Total()
	if s.Rest != nil {
		total.Add(s.Rest)
	}
	return total
}

// ReadStatements returns what the servers executed, in the order of their names; nothing if
// that was not recorded. Damaged lines are left out. The error is for a file that can't be
// read.
func ReadStatements(d rundir.Directory) (all []ServerStatements, err error) {
	err = eachLine(d.Path(StatementsFile), func(line ServerStatements) {
		if line.Target == "" || len(all) == maxServers {
			return
		}
		line.Statements = line.Statements[:min(len(line.Statements), keptStatements+2)]
		if i := slices.IndexFunc(all, func(s ServerStatements) bool { return s.Target == line.Target }); i >= 0 {
			all[i] = line // written again after a restart
		} else {
			all = append(all, line)
		}
	})
	slices.SortFunc(all, func(a, b ServerStatements) int { return strings.Compare(a.Target, b.Target) })
	if err != nil {
		err = fmt.Errorf("read statements: %w", err)
	}
	return all, err
}
