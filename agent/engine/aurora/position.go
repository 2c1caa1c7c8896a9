package aurora

import (
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// position is the moment up to which an instance sees the cluster's volume: its
// last report, less the lag of a reader. Both are times of the writer's table.
// Transactions between two positions can't be counted.
type position struct {
	cluster string
	at      time.Time
}

// Behind returns 0 if p has everything that other has; else false.
func (p position) Behind(other engine.Position) (uint64, bool) { return 0, p.Reaches(other) }

// Reaches reports whether p has everything that goal has.
func (p position) Reaches(goal engine.Position) bool {
	g, ok := goal.(position)
	return ok && g.cluster == p.cluster && !p.at.Before(g.at)
}

// Scalar is the moment in Unix seconds.
func (p position) Scalar() float64 { return float64(p.at.UnixMicro()) / 1e6 }

func (p position) String() string { return p.at.Format("2006-01-02T15:04:05.000000") }
