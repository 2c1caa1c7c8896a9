package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Who holds the metadata and global locks that sessions wait for: the same answer as during a stall, asked every two
// seconds while sessions wait for such locks.

// mostSteps bounds the way from a session that waits to the one that it waits for in the end.
const mostSteps = 10

// readMetadata adds the holders of the locks that some sessions wait for.
func (d *Detail) readMetadata(ctx context.Context, q mysql.Querier, tick *mysql.Tick, waiting float64, out *engine.Status) error {
	if waiting > 0 && time.Since(d.held.metadata.at) >= locksEvery {
		seconds := d.held.metadata.since(locksEvery)
		a := &evidence.Answer{}
		if err := d.Testify(ctx, q, tick.Server, a); err != nil {
			return err
		}
		for _, missing := range a.Missing {
			out.Missing = append(out.Missing, "who holds "+missing)
		}
		roots := rootsOf(a)
		all := 0.0
		for _, n := range roots {
			all += n
		}
		for name, n := range roots {
			d.held.metadata.add(name, waiting*seconds*n/max(all, waiting))
		}
	}
	d.held.metadata.set(out, mysql.MetadataHeldSeconds)
	return nil
}

// rootsOf counts the sessions that wait for each holder in the end: the session that waits for nothing itself and has
// done the same for more than a second.
func rootsOf(a *evidence.Answer) map[string]float64 {
	roots := map[string]float64{}
	for i := range a.Sessions {
		s := &a.Sessions[i]
		if s.Waits == nil || s.Waits.Kind == evidence.RowLock {
			continue
		}
		for steps := 0; s != nil && s.Waits != nil && steps < mostSteps; steps++ {
			if s.Waits.Likely || len(s.Waits.By) == 0 {
				s = nil
				break
			}
			s = a.Session(s.Waits.By[0])
		}
		if s != nil && s.Waits == nil && s.Seconds.Value >= 1 && !s.Own {
			roots[nameOf(s.User, s.Idle, s.Statement)]++
		}
	}
	return roots
}

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Causes: []cause.Cause{{
		Name: "the holder of a metadata lock", Of: []cause.Limit{cause.Locks},
		Reads: "the sessions that held locks of tables, metadata or the server for more than a second, every two seconds while clients wait",
		Find:  metadataHolder, Test: "end this session's transaction or statement earlier, or repeat without it",
	}},
})

// metadataHolder finds the session that held what most of the clients waited for.
func metadataHolder(v *cause.View) (cause.Found, bool) {
	name, _, _ := most(v.IncreaseBy(mysql.MetadataHeld, "holder"))
	part := mysql.HeldMetadata(v)
	if name == "" || !(part > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: name, Part: part, Evidence: fmt.Sprintf("%s held what clients waited for in %s of the time that they waited for locks", name, table.Share(part))}, true
}
