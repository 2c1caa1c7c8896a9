package record

import (
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// status01 is a line of status.jsonl as version 0.1 wrote it, beside what a header
// holds: an object a tick, with the name of each value. Both forms may be in one
// file, when the agent was upgraded while the run went on.
type status01 struct {
	Tick            time.Time                `json:"tick"`
	Asked           time.Time                `json:"asked"`
	Answered        time.Time                `json:"answered"`
	Up              bool                     `json:"up"`
	Error           string                   `json:"error"`
	Restarts        uint64                   `json:"restarts"`
	LagTransactions series.Optional[float64] `json:"lag_transactions"`
	LagSeconds      series.Optional[float64] `json:"lag_seconds"`
	Values          map[string]float64       `json:"values"`
}

// add01 adds a line in the form of version 0.1; false if it is unreadable.
func (d *statusReader) add01(header *statusHeader, line *status01) bool {
	if line.Tick.IsZero() {
		return false
	}
	s := d.server(header)
	answer := tickAnswer{
		tick: line.Tick, asked: line.Asked, answered: line.Answered, up: line.Up, err: line.Error, restarts: float64(line.Restarts),
		role: header.Role, version: header.Version, flavour: header.Flavour,
	}
	if !d.addTick(s, &answer) {
		return true
	}
	s.Set(engine.ReplicationLagSeconds.Name, series.Number(line.LagSeconds))
	s.Set(engine.ReplicationLagTransactions.Name, series.Number(line.LagTransactions))
	for name, v := range line.Values {
		if d.kept(name) {
			s.Set(name, v)
		}
	}
	return true
}
