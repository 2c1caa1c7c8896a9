package replication

import (
	"context"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// Applier measures lag in seconds from MySQL 8's table of applier workers, which contains commit
// times on the source in microseconds. These times are from the source's clock, all others from the
// replica's.
//
// It remembers the last applied transaction, since the table keeps its row: a replica that applies
// nothing, or is stopped, would show the lag of its last transaction for hours.
type Applier struct {
	last string // the last applied transaction at the previous tick
}

const askWorkers = "SELECT CHANNEL_NAME, SERVICE_STATE, APPLYING_TRANSACTION, LAST_APPLIED_TRANSACTION," +
	" UNIX_TIMESTAMP(NOW(6)) AS server_now," +
	" UNIX_TIMESTAMP(APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) AS applying_committed," +
	" UNIX_TIMESTAMP(LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP) AS applied_committed," +
	" UNIX_TIMESTAMP(LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP) AS applied_end" +
	" FROM performance_schema.replication_applier_status_by_worker"

// Read sets the lag of the channel without the configured delay, unless it is already set. Servers
// before MySQL 8 lack the table.
func (a *Applier) Read(ctx context.Context, q mysql.Querier, channel string, out *engine.Status) error {
	lag, err := a.lag(ctx, q, channel)
	if err != nil {
		return mysql.Optional(err, out, "SELECT ON performance_schema.replication_applier_status_by_worker: lag finer than a second")
	}
	if lag.Known && !out.LagSeconds.Known {
		out.LagSeconds = series.Some(max(0, lag.Value-out.Delay.Seconds()))
	}
	return nil
}

// lag returns the age in seconds of the oldest transaction being applied. If there is none, but one
// was applied since the last call, it returns the age of that one at its end. Otherwise the lag is
// unknown. An empty channel means all channels except those of Group Replication.
func (a *Applier) lag(ctx context.Context, q mysql.Querier, channel string) (series.Optional[float64], error) {
	unknown := series.Optional[float64]{}
	statement := askWorkers + " WHERE CHANNEL_NAME NOT LIKE 'group\\_replication\\_%'"
	if channel != "" {
		statement = askWorkers + " WHERE CHANNEL_NAME = '" + channel + "'"
	}
	rows, err := q.Rows(ctx, statement)
	if err != nil {
		return unknown, err
	}
	var running, finished series.Optional[float64]
	var newest float64
	last := ""
	for _, row := range rows {
		now, ok := row.Number("server_now")
		if !ok {
			continue
		}
		// An unset time is the year 0, for which UNIX_TIMESTAMP returns 0.
		if id := row.Text("APPLYING_TRANSACTION"); id != "" {
			if committed, ok := row.Number("applying_committed"); ok && committed > 0 {
				running = series.Some(max(running.Value, now-committed))
			}
		}
		end, ok1 := row.Number("applied_end")
		committed, ok2 := row.Number("applied_committed")
		if !ok1 || !ok2 || end <= 0 || committed <= 0 || end < newest {
			continue
		}
		newest = end
		last = row.Text("LAST_APPLIED_TRANSACTION")
		finished = series.Some(max(0, end-committed))
	}
	fresh := a.last != "" && last != a.last
	a.last = last
	switch {
	case running.Known:
		return running, nil
	case fresh:
		return finished, nil
	}
	return unknown, nil
}
