package galera

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// Position is a write set's number in the history of one cluster. All nodes
// number alike; changes of membership and DDL take numbers too.
type Position struct {
	// Cluster is the history's UUID (wsrep_cluster_state_uuid).
	Cluster string
	Seqno   uint64
}

// Behind implements engine.Position.
func (p Position) Behind(other engine.Position) (uint64, bool) {
	o, ok := other.(Position)
	if !ok || o.Cluster != p.Cluster {
		return 0, false
	}
	return o.Seqno - min(p.Seqno, o.Seqno), true
}

// Scalar implements engine.Position.
func (p Position) Scalar() float64 { return float64(p.Seqno) }

// String is the position as in grastate.dat and --wsrep_start_position.
func (p Position) String() string { return fmt.Sprintf("%s:%d", p.Cluster, p.Seqno) }
