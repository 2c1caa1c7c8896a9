package mysql

import "strings"

// autocommits counts transactions that were committed without a COMMIT statement, for which the
// server has no counter: Com_commit leaves them out, and Handler_commit counts each statement once
// per engine, twice with a binary log (MariaDB 10.11: 24 for a read-write transaction of sysbench,
// 2 for an update).
//
// With a binary log they are the transactions in it (Binlog_cache_use) minus the COMMIT statements;
// because of read-only transactions this is a lower bound. Without one they are the writing
// statements, in samples between which no client used BEGIN or COMMIT.
type autocommits struct {
	total float64
	last  autocommitCounters
	// ahead is the number of COMMIT statements whose transaction appears only in the next sample,
	// since the server does not read its counters at one instant.
	ahead float64
}

type autocommitCounters struct {
	known                   bool
	uptime, commits, begins float64
	logged, written         float64
}

// mostAhead limits ahead: the COMMIT of a read-only transaction never adds anything to the binary
// log.
const mostAhead = 16

// autocommitNames are the status variables to read besides the metrics'.
var autocommitNames = []string{"Binlog_cache_use", "wsrep_local_state"}

var writeStatements = strings.Fields("Com_insert Com_insert_select Com_update Com_update_multi Com_delete Com_delete_multi Com_replace Com_replace_select")

// read adds the commits since the previous sample and returns the total. It returns false for
// servers whose counters have another meaning: a Galera node counts what it applies, and counts
// commits itself.
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
