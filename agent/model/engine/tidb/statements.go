package tidb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/statements"
)

const (
	missingStatements = "statements: the right PROCESS"
	notCounted        = "statements: tidb_enable_stmt_summary is off on the server"
)

// The server counts statements in periods of half an hour (tidb_stmt_summary_refresh_interval). One
// table has the current period, the other one the periods that have ended and, in some versions,
// the current one. Sums over all periods from a certain one on are counters.
const (
	summary = `SELECT /*+ MAX_EXECUTION_TIME(1000) */ UNIX_TIMESTAMP(SUMMARY_BEGIN_TIME) AS since, SCHEMA_NAME AS name, DIGEST AS digest, PLAN_DIGEST AS plan_id, %[1]s AS instance,
EXEC_COUNT AS executions, SUM_LATENCY AS latency, SUM_ERRORS AS errors, AVG_AFFECTED_ROWS AS affected, AVG_PROCESSED_KEYS AS examined,
AVG_PROCESS_TIME AS storage, AVG_WAIT_TIME AS queue, AVG_BACKOFF_TIME AS backoff%[2]s
FROM information_schema.%[3]s LIMIT %[4]d`
	// resultRows is missing in versions before 6.
	resultRows    = ", AVG_RESULT_ROWS AS sent"
	presentPeriod = "STATEMENTS_SUMMARY"
	allPeriods    = "STATEMENTS_SUMMARY_HISTORY"
	uptime        = "SHOW GLOBAL STATUS WHERE Variable_name = 'Uptime'"
	nanosecond    = 1e-9
)

// ReadStatements implements mysql.StatementDetail.
func (d *Detail) ReadStatements(ctx context.Context, q mysql.Querier, target *engine.Target, server *mysql.Server, before *engine.StatementReading) (*engine.StatementReading, error) {
	switch {
	case server.Flavour != "tidb" || target.Options[engine.OptionStatements] == engine.Off:
		return nil, engine.ErrSwitchedOff
	case d.members.denied: // the server would only show the user's own statements
		return nil, engine.MissingError(missingStatements)
	}
	r := &engine.StatementReading{}
	rows, err := q.Rows(ctx, uptime)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		r.UptimeSeconds, _ = row.Number("Value", "VARIABLE_VALUE")
	}
	prefix := clusterPrefix(target, engine.OptionStatements)
	counted, err := readPeriods(ctx, q, prefix, presentPeriod)
	if err != nil {
		return nil, err
	}
	if len(counted) == 0 { // which would include the agent's own statements
		return nil, engine.MissingError(notCounted)
	}
	from := math.Inf(1)
	for p := range counted {
		from = min(from, p.since)
	}
	if before != nil {
		for i := range before.Statements {
			from = min(from, before.Statements[i].FirstSeen)
		}
	}
	// Unless everything is from one period.
	if slices.ContainsFunc(periodsOf(counted), func(since float64) bool { return since != from }) {
		ended, err := readPeriods(ctx, q, prefix, allPeriods)
		if err != nil {
			return nil, err
		}
		for p, c := range ended {
			if known, ok := counted[p]; p.since >= from && (!ok || c.Executions > known.Executions) {
				counted[p] = c
			}
		}
	}
	r.Statements = total(counted, from, before)
	if before != nil {
		if err := readTexts(ctx, q, prefix, r, before); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// period is a statement with one of its plans, on one server, in one period.
type period struct {
	since                          float64 // seconds of Unix time
	schema, digest, plan, instance string
}

func periodsOf(counted map[period]engine.StatementCounts) []float64 {
	var all []float64
	for p := range counted {
		if !slices.Contains(all, p.since) {
			all = append(all, p.since)
		}
	}
	return all
}

func readPeriods(ctx context.Context, q mysql.Querier, prefix, table string) (map[period]engine.StatementCounts, error) {
	instance := "NULL"
	if prefix != "" {
		instance = "INSTANCE"
	}
	statement := func(more string) string {
		return fmt.Sprintf(summary, instance, more, prefix+table, statements.Most)
	}
	rows, err := mysql.FirstSupported(ctx, q, statement(resultRows), statement(""))
	switch {
	case mysql.Denied(err):
		return nil, engine.MissingError(missingStatements)
	case err != nil:
		return nil, err
	}
	counted := make(map[period]engine.StatementCounts, len(rows))
	for _, row := range rows {
		n := func(name string) float64 {
			v, _ := row.Number(name)
			return v
		}
		p := period{n("since"), row.Text("name"), row.Text("digest"), row.Text("plan_id"), row.Text("instance")}
		executions := n("executions")
		counted[p] = engine.StatementCounts{
			Executions: executions, Seconds: n("latency") * nanosecond, Errors: n("errors"),
			// These are means, which some versions round down.
			RowsExamined: executions * n("examined"), RowsSent: executions * n("sent"), RowsAffected: executions * n("affected"),
			StorageSeconds: executions * n("storage") * nanosecond, QueueSeconds: executions * n("queue") * nanosecond, BackoffSeconds: executions * n("backoff") * nanosecond,
		}
	}
	return counted, nil
}

// total adds up the periods and plans of each statement. Sums of rounded means can fall, which
// counters must not.
func total(counted map[period]engine.StatementCounts, from float64, before *engine.StatementReading) []engine.Statement {
	sums := map[[2]string]*engine.Statement{}
	for p, c := range counted {
		key := [2]string{p.schema, p.digest}
		if sums[key] == nil {
			sums[key] = &engine.Statement{Schema: p.schema, Digest: p.digest, FirstSeen: from}
		}
		sums[key].Add(&c)
	}
	if before != nil {
		for i := range before.Statements {
			was := &before.Statements[i]
			if is := sums[[2]string{was.Schema, was.Digest}]; is != nil && is.Executions >= was.Executions {
				is.RowsExamined, is.RowsSent, is.RowsAffected = max(is.RowsExamined, was.RowsExamined), max(is.RowsSent, was.RowsSent), max(is.RowsAffected, was.RowsAffected)
				is.StorageSeconds, is.QueueSeconds, is.BackoffSeconds = max(is.StorageSeconds, was.StorageSeconds), max(is.QueueSeconds, was.QueueSeconds), max(is.BackoffSeconds, was.BackoffSeconds)
			}
		}
	}
	all := make([]engine.Statement, 0, len(sums))
	for _, s := range sums {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b engine.Statement) int {
		return strings.Compare(a.Schema+" "+a.Digest, b.Schema+" "+b.Digest)
	})
	return all
}

// readTexts adds texts to the statements that took the most time. The text of a statement last
// executed in an earlier period is with that period.
func readTexts(ctx context.Context, q mysql.Querier, prefix string, r, before *engine.StatementReading) error {
	top := statements.Top(r, before)
	for _, table := range []string{presentPeriod, allPeriods} {
		top = slices.DeleteFunc(top, func(s *engine.Statement) bool { return s.Text != "" })
		if err := statements.ReadTexts(ctx, q, "information_schema."+prefix+table, top); err != nil {
			return err
		}
	}
	return nil
}
