package mysql

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Reasons for stalls that the status of a server proves. Who waits for whom is explained for every engine.
var _ = evidence.Declare(evidence.Rules{
	Engine: Name,
	Reasons: []evidence.Reason{
		{Name: "checkpoint", Reads: "InnoDB's checkpoint age and its limit, pages flushed", Find: checkpointStall},
		{Name: "connection limit", Reads: "`Connection_errors_max_connections`, `Threads_connected` and `max_connections`", Find: refusedStall},
		{Name: "purge", Reads: "InnoDB's history list and `innodb_max_purge_lag`", Find: purgeStall},
	},
})

// checkpointStall finds that writes waited for pages to be flushed, since the redo log was at its limit.
func checkpointStall(s *evidence.Scene) (evidence.Found, bool) {
	worst, share := s.Worst(checkpointShare)
	high := 0
	for _, a := range s.Answers {
		if checkpointShare(a) >= highCheckpoint {
			high++
		}
	}
	if worst == nil || high*2 < len(s.Answers) || high == 0 {
		return evidence.Found{}, false
	}
	text := fmt.Sprintf("checkpoint; the redo log of %s was at %s of its limit at %d of %s", s.Target, table.Share(min(1, share)), high,
		table.Plural(len(s.Answers), "look"))
	if pages := s.Increase("Innodb_buffer_pool_pages_flushed"); pages >= 0 {
		text += fmt.Sprintf(", with %s pages/s flushed", table.Rounded(pages))
	}
	return evidence.Found{Share: min(1, share) * 0.7, Text: text}, true
}

// checkpointShare is the checkpoint age as a share of its limit; unknown if the server does not report it.
func checkpointShare(a *evidence.Answer) float64 {
	age, limit := a.Number("Innodb_checkpoint_age"), a.Number("Innodb_checkpoint_max_age")
	if !(limit > 0) {
		age = a.Number("Innodb_redo_log_current_lsn") - a.Number("Innodb_redo_log_checkpoint_lsn")
		limit = a.Number("Innodb_redo_log_capacity_resized")
	}
	return age / limit
}

// refusedStall finds that the server refused connections.
func refusedStall(s *evidence.Scene) (evidence.Found, bool) {
	refused := s.Increase("Connection_errors_max_connections")
	if !(refused > 0) {
		return evidence.Found{}, false
	}
	last := s.Answers[len(s.Answers)-1]
	return evidence.Found{Share: 0.75, Text: fmt.Sprintf("%s refused %s connections/s: %.0f of max_connections = %.0f were in use", s.Target,
		table.Rounded(refused), last.Number("Threads_connected"), last.Number("max_connections"))}, true
}

// purgeStall finds that a long history list delayed writes.
func purgeStall(s *evidence.Scene) (evidence.Found, bool) {
	worst, length := s.Worst(func(a *evidence.Answer) float64 { return a.Number("Innodb_history_list_length") })
	if worst == nil {
		return evidence.Found{}, false
	}
	limit := worst.Number("innodb_max_purge_lag")
	if !(limit > 0 && length > limit) {
		return evidence.Found{}, false
	}
	return evidence.Found{Share: 0.6, Text: fmt.Sprintf("writes were delayed for purge: the history list of %s had %s entries, more than innodb_max_purge_lag = %s",
		s.Target, table.Rounded(length), table.Rounded(limit))}, true
}
