package replication

import (
	"context"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// The appliers of a replica, with the transaction or statement that each applies. MariaDB has them in its list of
// processes only.
const (
	listAppliers = `SELECT w.CHANNEL_NAME AS channel, w.WORKER_ID AS worker, w.SERVICE_STATE AS service, w.APPLYING_TRANSACTION AS applying,
w.LAST_ERROR_MESSAGE AS failure, t.PROCESSLIST_ID AS id, t.PROCESSLIST_STATE AS state, t.PROCESSLIST_TIME AS seconds,
(SELECT s.DIGEST_TEXT FROM performance_schema.events_statements_current s WHERE s.THREAD_ID = w.THREAD_ID ORDER BY s.EVENT_ID DESC LIMIT 1) AS text
FROM performance_schema.replication_applier_status_by_worker w LEFT JOIN performance_schema.threads t ON t.THREAD_ID = w.THREAD_ID LIMIT 64`
	listThreads = `SELECT ID AS id, COMMAND AS channel, STATE AS state, TIME_MS / 1000 AS seconds, LEFT(INFO, 1000) AS text
FROM information_schema.PROCESSLIST WHERE USER = 'system user' AND COMMAND LIKE 'Slave%' LIMIT 64`
	missingAppliers = "appliers (SELECT on performance_schema.replication_applier_status_by_worker)"
)

// Testify implements mysql.WitnessDetail: the channels of a replica, and what each applier does.
func (d *Detail) Testify(ctx context.Context, q mysql.Querier, server *mysql.Server, a *evidence.Answer) error {
	if server.Flavour == "tidb" {
		return nil
	}
	out := &engine.Status{}
	if err := d.readChannels(ctx, q, server, out); err != nil {
		return err
	}
	a.Missing = append(a.Missing, out.Missing...)
	if len(d.channels) == 0 {
		return nil
	}
	for i := range d.channels {
		d.channels[i].report(out)
	}
	for i := range out.Values {
		a.Set(out.Values[i].Name(), out.Values[i].V)
	}
	return TestifyAppliers(ctx, q, server, a)
}

// TestifyAppliers adds the appliers of a server to its answer.
func TestifyAppliers(ctx context.Context, q mysql.Querier, server *mysql.Server, a *evidence.Answer) error {
	statement := listAppliers
	if server.MariaDB() || !server.AtLeast(8, 0, 0) {
		statement = listThreads
	}
	rows, err := q.Rows(ctx, statement)
	if mysql.Refused(err) {
		a.Missing = append(a.Missing, missingAppliers)
		return nil
	}
	for _, row := range rows {
		if failure := row.Text("failure"); failure != "" {
			a.Say("applier of "+row.Text("channel"), engine.OneLine(failure))
		}
		id := row.Text("id")
		if id == "" || id == "0" { // it does not run
			continue
		}
		s := a.Add(id)
		if s == nil {
			break
		}
		s.User, s.State = "applier", engine.OneLine(strings.TrimSpace(row.Text("channel")+" "+row.Text("state")))
		s.Statement = evidence.Digest(row.Text("text"))
		if seconds, ok := row.Number("seconds"); ok && seconds >= 0 {
			s.Seconds = series.Some(seconds)
		}
	}
	return err
}
