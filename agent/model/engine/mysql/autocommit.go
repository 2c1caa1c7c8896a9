package mysql

import "strings"

// autocommits counts the transactions that were committed without a COMMIT
// statement, which no counter of the server does: Com_commit leaves them out, and
// Handler_commit counts each statement once per engine, twice with a binary log
// (MariaDB 10.11: 24 for a read-write transaction of sysbench, 2 for an update).
//
// With a binary log they are the transactions in it (Binlog_cache_use) beyond the
// COMMIT statements; transactions that only read make that a lower bound. Without
// one they are the statements that write, in samples between which no client used
// BEGIN or COMMIT.
type autocommits struct {
	total float64
	last  autocommitCounters
	// ahead are COMMIT statements of which the transaction comes with the next
	// sample: the server does not read its counters at one instant.
	ahead float64
}

type autocommitCounters struct {
	known                   bool
	uptime, commits, begins float64
	logged, written         float64
}

// mostAhead bounds ahead: COMMIT statements of transactions that only read have
// nothing in the binary log, now or later.
const mostAhead = 16

// autocommitNames are the status variables that are read beside those of metrics.
var autocommitNames = []string{"Binlog_cache_use", "wsrep_local_state"}

var writeStatements = strings.Fields("Com_insert Com_insert_select Com_update Com_update_multi Com_delete Com_delete_multi Com_replace Com_replace_select")

// read adds what was committed since the previous sample and returns the total;
// false for servers on which the counters have another meaning: those of a Galera
// node count what it applies, and it counts commits itself.
func (a *autocommits) read(server *Server, status Values) (float64, bool) {
	_, galera := status.Number("wsrep_local_state")
	now := autocommitCounters{known: true}
	var ok [4]bool
	now.uptime, ok[0] = status.Number("Uptime")
	now.commits, ok[1] = status.Number("Com_commit")
	now.begins, ok[2] = status.Number("Com_begin")
	now.logged, ok[3] = status.Number("Binlog_cache_use")
	if galera || server.Flavour == "tidb" || ok != [4]bool{true, true, true, true} {
		return 0, false
	}
	for _, name := range writeStatements {
		if n, ok := status.Number(name); ok {
			now.written += n
		}
	}
	was := a.last
	a.last = now
	if !was.known || now.uptime < was.uptime || now.commits < was.commits || now.logged < was.logged {
		a.ahead = 0
		return a.total, true // the first sample, or the counters were reset
	}
	if logBin, _ := boolean(server.Variables["log_bin"]); !logBin {
		if now.commits == was.commits && now.begins == was.begins {
			a.total += max(0, now.written-was.written)
		}
		return a.total, true
	}
	more := now.logged - was.logged - (now.commits - was.commits) + a.ahead
	a.ahead = max(min(more, 0), -mostAhead)
	a.total += max(0, more)
	return a.total, true
}
