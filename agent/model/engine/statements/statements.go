// Package statements reads the counts by statement digest of MySQL servers from performance_schema,
// twice for each run instead of at each tick. Digests have no literals.
package statements

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

const (
	// Most limits the digests that are read. The server's own table has 10,000 by default.
	Most = 20_000
	// texts is the number of statements whose text is read, histograms the number whose latency
	// distribution is read, which has 450 rows.
	texts, histograms = 50, 10
	// longestText is the number of characters read from a text.
	longestText = 1000
	// slack is by how many seconds the time of the first reading may differ.
	slack = 5
)

// The required rights.
const (
	missingDigests = "statements: the right SELECT on performance_schema.events_statements_summary_by_digest"
	switchedOff    = "statements: performance_schema is off on the server"
	notCounted     = "statements: the consumer statements_digest of performance_schema is off on the server"
)

// counters are the columns to read, in the order of the fields of StatementCounts.
const counters = `COUNT_STAR AS executions, SUM_TIMER_WAIT AS time, SUM_LOCK_TIME AS locked, SUM_ERRORS AS errors,
SUM_ROWS_EXAMINED AS examined, SUM_ROWS_SENT AS sent, SUM_ROWS_AFFECTED AS affected,
SUM_CREATED_TMP_TABLES AS tables, SUM_CREATED_TMP_DISK_TABLES AS disk_tables, SUM_NO_INDEX_USED AS scans,
SUM_SELECT_FULL_JOIN AS joins, SUM_SORT_ROWS AS sorted, SUM_SORT_MERGE_PASSES AS merges`

const (
	fromStatus   = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_stmt_execute','Questions','Uptime')"
	fromPrepared = "SELECT " + counters + " FROM performance_schema.events_statements_summary_global_by_event_name WHERE EVENT_NAME = 'statement/com/Execute'"
	fromGlobal   = "SELECT BUCKET_TIMER_LOW AS low, BUCKET_TIMER_HIGH AS high, COUNT_BUCKET AS n FROM performance_schema.events_statements_histogram_global WHERE COUNT_BUCKET > 0"
)

// Detail reads the statements of one server.
type Detail struct{}

// New returns the detail of one prober.
func New() mysql.Detail { return &Detail{} }

// Needs implements mysql.Detail.
func (*Detail) Needs() mysql.Needs {
	return mysql.Needs{
		Variables: []string{"performance_schema"},
		Options:   engine.OptionChecks{engine.OptionStatements: engine.OneOf(engine.On, engine.Off, engine.Cluster)},
	}
}

// Read implements mysql.Detail. It reads nothing at ticks.
func (*Detail) Read(context.Context, mysql.Querier, *mysql.Tick, *engine.Status) error { return nil }

// ReadStatements implements mysql.StatementDetail.
func (*Detail) ReadStatements(ctx context.Context, q mysql.Querier, target *engine.Target,
	server *mysql.Server, before *engine.StatementReading) (*engine.StatementReading, error) {
	if target.Options[engine.OptionStatements] == engine.Off || server.Flavour == "tidb" { // package tidb reads its own counts
		return nil, engine.ErrSwitchedOff
	}
	if on, known := server.Variables.Bool("performance_schema"); known && !on {
		return nil, engine.MissingError(switchedOff)
	}
	r, err := readStatus(ctx, q)
	if err != nil {
		return nil, err
	}
	if r.Statements, err = readDigests(ctx, q, server, before); err != nil {
		return nil, err
	}
	if rows, err := q.Rows(ctx, fromPrepared); err == nil && len(rows) == 1 {
		s := engine.Statement{Digest: engine.DigestPrepared, StatementCounts: countsOf(rows[0])}
		if s.Executions > 0 {
			r.Statements = append(r.Statements, s)
		}
	} else if err != nil && !mysql.Refused(err) {
		return nil, err
	}
	top := Top(r, before)
	if before != nil {
		if err := ReadTexts(ctx, q, "performance_schema.events_statements_summary_by_digest", top); err != nil {
			return nil, err
		}
	}
	if !server.MariaDB() && server.AtLeast(8, 0, 3) {
		if err := readLatencies(ctx, q, r, top[:min(len(top), histograms)]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func readStatus(ctx context.Context, q mysql.Querier) (*engine.StatementReading, error) {
	rows, err := q.Rows(ctx, fromStatus)
	if err != nil {
		return nil, err
	}
	r := &engine.StatementReading{}
	for _, row := range rows {
		n, ok := row.Number("Value", "VARIABLE_VALUE")
		if !ok {
			continue
		}
		switch row.Text("Variable_name", "VARIABLE_NAME") {
		case "Uptime":
			r.UptimeSeconds = n
		case "Questions":
			r.Questions = series.Some(n)
		case "Com_stmt_execute":
			r.Prepared = series.Some(n)
		}
	}
	return r, nil
}

// readDigests reads the counts of all statements or, after an earlier reading, of the statements
// executed since.
func readDigests(ctx context.Context, q mysql.Querier, server *mysql.Server,
	before *engine.StatementReading) ([]engine.Statement, error) {
	where := ""
	if before != nil {
		where = fmt.Sprintf(" WHERE LAST_SEEN >= FROM_UNIXTIME(UNIX_TIMESTAMP() - %.0f)",
			math.Ceil(time.Since(before.At).Seconds()+slack))
	}
	rows, err := q.Rows(ctx, bounded(server, "SCHEMA_NAME AS name, DIGEST AS digest, UNIX_TIMESTAMP(FIRST_SEEN) AS first, "+counters+
		fmt.Sprintf(" FROM performance_schema.events_statements_summary_by_digest%s LIMIT %d", where, Most)))
	switch {
	case mysql.Refused(err):
		return nil, engine.MissingError(missingDigests)
	case err != nil:
		return nil, err
	case len(rows) == 0:
		// They would include the agent's own statements.
		return nil, engine.MissingError(notCounted)
	}
	all := make([]engine.Statement, 0, len(rows))
	for _, row := range rows {
		s := engine.Statement{Schema: row.Text("name"), Digest: row.Text("digest"), StatementCounts: countsOf(row)}
		s.FirstSeen, _ = row.Number("first")
		all = append(all, s)
	}
	return all, nil
}

// bounded returns a SELECT that the server itself ends if it takes too long.
func bounded(server *mysql.Server, columns string) string {
	if server.MariaDB() {
		if server.AtLeast(10, 1, 2) {
			return "SET STATEMENT max_statement_time=1 FOR SELECT " + columns
		}
		return "SELECT " + columns
	}
	return "SELECT /*+ MAX_EXECUTION_TIME(1000) */ " + columns
}

const picosecond = 1e-12

func countsOf(row mysql.Row) engine.StatementCounts {
	n := func(name string) float64 {
		v, _ := row.Number(name)
		return v
	}
	return engine.StatementCounts{
		Executions: n("executions"), Seconds: n("time") * picosecond, LockSeconds: n("locked") * picosecond, Errors: n("errors"),
		RowsExamined: n("examined"), RowsSent: n("sent"), RowsAffected: n("affected"),
		TemporaryTables: n("tables"), TemporaryDiskTables: n("disk_tables"), FullScans: n("scans"),
		FullJoins: n("joins"), SortRows: n("sorted"), SortMerges: n("merges"),
	}
}

// isDigest matches hashes that are safe to put into statements.
var isDigest = regexp.MustCompile(`^[0-9a-fA-F]{16,64}$`)

// Top returns the statements that took the most time since the earlier reading, or so far.
func Top(r, before *engine.StatementReading) []*engine.Statement {
	seconds := map[*engine.Statement]float64{}
	was := map[[2]string]float64{}
	if before != nil {
		for i := range before.Statements {
			s := &before.Statements[i]
			was[[2]string{s.Schema, s.Digest}] = s.Seconds
		}
	}
	var all []*engine.Statement
	for i := range r.Statements {
		s := &r.Statements[i]
		if isDigest.MatchString(s.Digest) {
			seconds[s] = s.Seconds - was[[2]string{s.Schema, s.Digest}]
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *engine.Statement) int { return cmp.Compare(seconds[b], seconds[a]) })
	return all[:min(len(all), texts)]
}

// ReadTexts adds texts to statements from one of the server's tables.
func ReadTexts(ctx context.Context, q mysql.Querier, table string, top []*engine.Statement) error {
	if len(top) == 0 {
		return nil
	}
	digests := make([]string, len(top))
	for i, s := range top {
		digests[i] = "'" + s.Digest + "'"
	}
	rows, err := q.Rows(ctx, fmt.Sprintf("SELECT SCHEMA_NAME AS name, DIGEST AS digest, LEFT(DIGEST_TEXT, %d) AS text FROM %s WHERE DIGEST IN (%s)",
		longestText, table, strings.Join(digests, ",")))
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, s := range top {
			if s.Digest == row.Text("digest") {
				s.Text = strings.Join(strings.Fields(row.Text("text")), " ")
			}
		}
	}
	return nil
}

// readLatencies adds latency distributions to a reading and to some of its statements. If the
// server refuses, there are none.
func readLatencies(ctx context.Context, q mysql.Querier, r *engine.StatementReading, of []*engine.Statement) error {
	rows, err := q.Rows(ctx, fromGlobal)
	if err != nil {
		return ignored(err)
	}
	r.Latency = engine.LatencyBuckets{}
	for _, row := range rows {
		if b, ok := bucketOf(row); ok {
			r.Latency = append(r.Latency, b)
		}
	}
	for _, s := range of {
		// One statement at a time: the table's index is a hash over both columns.
		rows, err := q.Rows(ctx, "SELECT BUCKET_TIMER_LOW AS low, BUCKET_TIMER_HIGH AS high, COUNT_BUCKET AS n FROM performance_schema.events_statements_histogram_by_digest WHERE SCHEMA_NAME "+
			equals(s.Schema)+" AND DIGEST = '"+s.Digest+"' AND COUNT_BUCKET > 0")
		if err != nil {
			return ignored(err)
		}
		s.Latency = engine.LatencyBuckets{}
		for _, row := range rows {
			if b, ok := bucketOf(row); ok {
				s.Latency = append(s.Latency, b)
			}
		}
	}
	return nil
}

// equals compares with a text that may be anything.
func equals(schema string) string {
	if schema == "" {
		return "IS NULL"
	}
	return fmt.Sprintf("= _utf8mb4 x'%x'", schema)
}

func ignored(err error) error {
	if mysql.Refused(err) {
		return nil
	}
	return err
}

// noBound is the upper bound of the last bucket, in picoseconds.
const noBound = 1e19

func bucketOf(row mysql.Row) (histogram.Bucket, bool) {
	low, ok1 := row.Number("low")
	high, ok2 := row.Number("high")
	n, ok3 := row.Uint("n")
	if high >= noBound {
		high = math.Inf(1)
	}
	return histogram.Bucket{Low: low * picosecond, High: high * picosecond, N: n}, ok1 && ok2 && ok3
}
