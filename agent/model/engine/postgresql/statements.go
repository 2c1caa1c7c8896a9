package postgresql

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const (
	// statementTexts is the number of statements whose text is read, longestText the number of characters
	// read from a text.
	statementTexts, longestText = 50, 1000
	blockSize                   = 8192
)

// What is missing if there are no counts by statement.
const (
	noExtension = "statements: the extension pg_stat_statements: shared_preload_libraries = 'pg_stat_statements' in " +
		"postgresql.conf, a restart of the server, CREATE EXTENSION pg_stat_statements in the database %s"
	noSight = "statements: GRANT pg_monitor TO %s"
)

// statementCounts adds up the users of a statement. Texts are not read: the server would read its whole
// file of texts.
const statementCounts = `SELECT d.datname AS schema, s.queryid, sum(s.calls) AS calls, sum(s.total_exec_time) AS time, sum(s.total_plan_time) AS planning, sum(s.rows) AS rows,
sum(s.shared_blks_hit) AS hit, sum(s.shared_blks_read) AS read, sum(s.temp_blks_read + s.temp_blks_written) AS temp, sum(s.wal_bytes) AS wal, %s AS jit, %s AS first,
extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS uptime
FROM %s.pg_stat_statements(false) s LEFT JOIN pg_database d ON d.oid = s.dbid
WHERE s.toplevel AND s.queryid IS NOT NULL GROUP BY 1, 2 ORDER BY time DESC LIMIT 15000`

// firstSeen is when the server began to count a statement: since 17 its own time, before the last reset.
func firstSeen(major int, schema string) string {
	if major >= 17 {
		return "extract(epoch FROM max(s.stats_since))"
	}
	return "(SELECT extract(epoch FROM i.stats_reset) FROM " + schema + ".pg_stat_statements_info() i)"
}

// compileTime is the time of JIT compilation, for a version of the extension, which may be older than the server.
func compileTime(extension string) string {
	major, minor, _ := strings.Cut(extension, ".")
	a, err := strconv.Atoi(major)
	b, minorErr := strconv.Atoi(minor)
	if err != nil || minorErr != nil || a == 1 && b < 10 {
		return "0"
	}
	return "sum(s.jit_generation_time + s.jit_inlining_time + s.jit_optimization_time + s.jit_emission_time)"
}

// Statements implements engine.StatementReader.
func (p *prober) Statements(ctx context.Context, before *engine.StatementReading) (*engine.StatementReading, error) {
	switch {
	case p.target.Options[engine.OptionStatements] == engine.Off:
		return nil, engine.ErrSwitchedOff
	case p.conn == nil:
		return nil, errNotConnected
	case p.server.statements == "":
		return nil, engine.MissingError(fmt.Sprintf(noExtension, p.server.database))
	}
	p.budget.Renew()
	schema := p.server.statements
	r := &engine.StatementReading{}
	err := p.ask(ctx, statement{name: "statements", text: fmt.Sprintf(statementCounts, compileTime(p.server.extension), firstSeen(p.server.major, schema), schema),
		read: func(row row) { readStatement(r, row) }})
	if err != nil {
		return nil, err
	}
	if before == nil {
		return r, nil
	}
	top := topStatements(r, before)
	if len(top) == 0 {
		return r, nil
	}
	var digests []string
	for digest := range top {
		digests = append(digests, digest)
	}
	slices.Sort(digests)
	err = p.ask(ctx, statement{name: "texts", text: fmt.Sprintf(
		"SELECT DISTINCT ON (queryid) queryid, left(query, %d) AS text FROM %s.pg_stat_statements(true) WHERE queryid IN (%s)", longestText, schema, strings.Join(digests, ",")),
		read: func(row row) {
			for _, s := range top[row.text("queryid")] {
				s.Text = normalised(row.text("text"))
			}
		}})
	r.Statements = slices.DeleteFunc(r.Statements, func(s engine.Statement) bool { return strings.Contains(s.Text, mark) })
	return r, err
}

// ask runs one statement outside of a tick. A refusal is an error.
func (p *prober) ask(ctx context.Context, s statement) error {
	delete(p.conn.refused, s.name)
	if err := p.conn.ask(ctx, []statement{s}); err != nil {
		err = p.budget.Check(err)
		at := p.connector.at
		p.drop()
		return explain(&p.target, at, err)
	}
	refusal := p.conn.refused[s.name]
	if refusal == nil {
		return nil
	}
	delete(p.conn.refused, s.name)
	if refusal.Code == insufficientPrivilege {
		return engine.MissingError(fmt.Sprintf(noSight, p.server.role))
	}
	return engine.MissingError("statements: " + engine.OneLine(refusal.Message)) // not preloaded
}

func readStatement(r *engine.StatementReading, row row) {
	n := func(name string) float64 {
		v, _ := row.number(name)
		return v
	}
	s := engine.Statement{Schema: row.text("schema"), Digest: row.text("queryid"), FirstSeen: n("first"), StatementCounts: engine.StatementCounts{
		Executions: n("calls"), Seconds: (n("time") + n("planning")) / milli, PlanSeconds: n("planning") / milli, JITSeconds: n("jit") / milli, Rows: n("rows"),
		Blocks: n("hit") + n("read"), BlocksRead: n("read"), TemporaryBytes: n("temp") * blockSize, LogBytes: n("wal"),
	}}
	r.UptimeSeconds = n("uptime")
	r.Statements = append(r.Statements, s)
}

// topStatements returns the statements that took the most time since the earlier reading, by digest.
func topStatements(r, before *engine.StatementReading) map[string][]*engine.Statement {
	was := map[[2]string]float64{}
	for i := range before.Statements {
		s := &before.Statements[i]
		was[[2]string{s.Schema, s.Digest}] = s.Seconds
	}
	var all []*engine.Statement
	since := map[*engine.Statement]float64{}
	for i := range r.Statements {
		s := &r.Statements[i]
		if _, err := strconv.ParseInt(s.Digest, 10, 64); err != nil {
			continue // nothing else may get into a statement
		}
		if since[s] = s.Seconds - was[[2]string{s.Schema, s.Digest}]; since[s] > 0 {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *engine.Statement) int { return cmp.Compare(since[b], since[a]) })
	top := map[string][]*engine.Statement{}
	for _, s := range all[:min(len(all), statementTexts)] {
		top[s.Digest] = append(top[s.Digest], s)
	}
	return top
}

// literals are texts in quotes, perhaps cut, and bodies of functions.
var literals = regexp.MustCompile(`(?s)'(?:[^']|'')*(?:'|$)|\$[A-Za-z_]*\$.*`)

// normalised returns a text as one line. The server replaces values by $1 in statements that read or
// change rows, but not in others, such as CREATE USER.
func normalised(text string) string {
	return strings.Join(strings.Fields(literals.ReplaceAllString(text, "?")), " ")
}
