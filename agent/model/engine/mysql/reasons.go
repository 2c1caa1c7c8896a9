package mysql

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// What the status of a server says during a stall.
const (
	pagesFlushed       = "Innodb_buffer_pool_pages_flushed"
	refusedConnections = "Connection_errors_max_connections"
	historyList        = "Innodb_history_list_length"
	purgeLimit         = "innodb_max_purge_lag"
)

// Reasons for stalls that the status of a server proves. Who waits for whom is explained for every engine.
var _ = evidence.Declare(evidence.Rules{
	Engine: Name,
	Reasons: []evidence.Reason{
		{Name: "checkpoint", Reads: "InnoDB's checkpoint age and its limit, pages flushed, sessions that execute statements",
			Part: func(l *evidence.Look) float64 {
				if !(checkpointShare(l) >= highCheckpoint) {
					return 0
				}
				return l.Executing()
			}, Text: checkpointText},
		{Name: "connection limit", Reads: "`Connection_errors_max_connections`, `Threads_connected` and `max_connections`",
			Part: refusedPart, Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%s refused %s connections/s: %.0f were in use, and max_connections is %.0f", s.Target,
					table.Rounded(s.Increase(refusedConnections)), worst.Number("Threads_connected"), worst.Number("max_connections"))
			}},
		{Name: "purge", Reads: "InnoDB's history list and `innodb_max_purge_lag`, sessions that execute statements",
			Part: func(l *evidence.Look) float64 {
				if limit := l.Number(purgeLimit); !(limit > 0 && l.Number(historyList) > limit) {
					return 0
				}
				return l.Executing()
			}, Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("writes were delayed for purge: the history list of %s had %s entries, more than innodb_max_purge_lag = %s",
					s.Target, table.Rounded(worst.Number(historyList)), table.Rounded(worst.Number(purgeLimit)))
			}},
	},
})

// checkpointText says that writes waited for pages to be flushed, since the redo log was at its limit.
func checkpointText(s *evidence.Scene, _ *evidence.Look) string {
	_, share := s.Worst(checkpointShare)
	text := fmt.Sprintf("checkpoint; the redo log of %s was at %s of its limit at %s", s.Target, table.Share(min(1, share)),
		s.Count(func(l *evidence.Look) bool { return checkpointShare(l) >= highCheckpoint }))
	if pages := s.Increase(pagesFlushed); pages >= 0 {
		text += fmt.Sprintf(", with up to %s pages/s flushed", table.Rounded(pages))
	}
	return text
}

// checkpointShare is the checkpoint age as a share of its limit; unknown if the server does not report it.
func checkpointShare(l *evidence.Look) float64 {
	age, limit := l.Number("Innodb_checkpoint_age"), l.Number("Innodb_checkpoint_max_age")
	if !(limit > 0) {
		age = l.Number("Innodb_redo_log_current_lsn") - l.Number("Innodb_redo_log_checkpoint_lsn")
		limit = l.Number("Innodb_redo_log_capacity_resized")
	}
	return age / limit
}

// refusedPart is the share of the clients without a session, while the server has no connection left and refuses some.
func refusedPart(l *evidence.Look) float64 {
	if !(l.Increase(refusedConnections) > 0) || !(l.Number("Threads_connected") >= l.Number("max_connections")) {
		return 0
	}
	return 1 - l.Share(float64(l.Active))
}
