package postgresql

import (
	"cmp"
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// blockers asks for the holders of up to three locks for which sessions have waited for at least a second. It
// reads the waits of these sessions only, not all locks.
const blockers = `SELECT b.application_name, coalesce(b.backend_type, '') AS backend_type, coalesce(b.state, '') AS state, left(b.query, 200) AS query, count(*) AS n
FROM (SELECT pid FROM pg_stat_get_activity(NULL) WHERE wait_event_type = 'Lock' AND clock_timestamp() - query_start > '1 s' ORDER BY query_start LIMIT 3) w
CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS p(pid) JOIN LATERAL pg_stat_get_activity(p.pid) b ON true
WHERE b.wait_event_type IS DISTINCT FROM 'Lock' GROUP BY 1, 2, 3, 4 LIMIT 10`

const (
	// blockersEvery is the interval for asking.
	blockersEvery = 2 * time.Second
	// mostHolders limits the label values of one server.
	mostHolders = 16
)

// waits adds up the time that sessions waited for something that has a name.
type waits struct {
	at      time.Time
	seconds map[string]float64
}

// add adds the time since the last tick for n sessions. The sampled time of a long pause does not count.
func (w *waits) add(name string, sessions float64, since time.Duration) {
	if w.seconds == nil {
		w.seconds = map[string]float64{}
	}
	if _, known := w.seconds[name]; !known && len(w.seconds) >= mostHolders {
		name = engine.Other
	}
	w.seconds[name] += sessions * min(since, 2*blockersEvery).Seconds()
}

// set sets a metric to the sums.
func (w *waits) set(out *engine.Status, m *metricOf) {
	for name, seconds := range w.seconds {
		out.Set(m, seconds, name)
	}
}

// block adds the time that sessions waited for locks, by holder. It asks only while sessions wait at two ticks in
// a row.
func (p *prober) block(ctx context.Context, t *tick) error {
	waiting := 0.0
	for state, n := range t.activity.counts {
		if strings.HasPrefix(state.Event, "Lock:") && state.Event != "Lock:extend" {
			waiting += n
		}
	}
	before := p.waiting
	p.waiting = waiting > 0
	if since := time.Since(p.blocked.at); waiting > 0 && before && since >= blockersEvery {
		first := p.blocked.at.IsZero()
		p.blocked.at = time.Now()
		holders, all := map[string]float64{}, 0.0
		err := p.conn.ask(ctx, []statement{{name: "blockers", text: blockers, read: func(r row) {
			n, _ := r.number("n")
			holders[holderOf(r)] += n
			all += n
		}}})
		if err != nil {
			return err
		}
		if first {
			since = blockersEvery
		}
		for name, n := range holders {
			p.blocked.add(name, waiting*n/all, since)
		}
	}
	p.blocked.set(t.out, blockedTime)
	return nil
}

// numbers are values in the text of a statement.
var numbers = regexp.MustCompile(`\b[0-9][0-9.]*\b`)

// holderOf names the holder of a lock.
func holderOf(r row) string {
	program := cmp.Or(r.text("application_name"), r.text("backend_type"), "a session")
	if kind := r.text("backend_type"); kind != clientBackend {
		program = cmp.Or(kind, program)
	}
	text := normalised(numbers.ReplaceAllString(r.text("query"), "?"))
	if runes := []rune(text); len(runes) > 80 {
		text = string(runes[:80]) + "…"
	}
	state := r.text("state")
	switch {
	case text == "" || strings.HasPrefix(text, "<insufficient"):
		return program
	case strings.HasPrefix(state, "idle"):
		return program + " (" + state + " after " + text + ")"
	}
	return program + " (" + text + ")"
}

// waitForStandbys adds the time that commits wait for the synchronous standby that lacks the most WAL.
func (p *prober) waitForStandbys(t *tick) {
	now := time.Now()
	since := now.Sub(p.standbys.at)
	first := p.standbys.at.IsZero()
	p.standbys.at = now
	n := t.activity.counts[engine.SessionState{Class: engine.Replication, Event: syncRep}]
	if n > 0 && !first {
		slowest, most := "", -1.0
		for name, s := range t.senders {
			if v := s.bytes["flush"]; s.synchronous && v > most {
				slowest, most = name, v
			}
		}
		p.standbys.add(cmp.Or(slowest, "none connected"), n, since)
	}
	p.standbys.set(t.out, standbyWait)
}

const syncRep = "IPC:SyncRep"
