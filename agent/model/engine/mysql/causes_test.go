package mysql

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

type values map[*measure.Measure]float64

// view is a run of 20 s by 4 clients with 1,000 transactions of one statement a second.
func view(limit cause.Limit, grown values, settings map[string]string, executed ...cause.Statement) *cause.View {
	return &cause.View{Limit: limit, Share: 0.8, Seconds: 20, Threads: 4, Throughput: 1000, Statements: 1, ServerCores: 1.5, ForeignShare: math.NaN(),
		Executed: executed, Record: &causetest.Record{
			Over: map[*measure.Measure][]float64{engine.QueryRate: {1000, 1000}, engine.OpenedConnections: {grown[engine.OpenedConnections]}}, Grown: grown, Settings: settings}}
}

func statement(text string, share float64, c measure.StatementCounts) cause.Statement {
	if c.Executions == 0 {
		c.Executions = 20000
	}
	c.Seconds = 40
	return cause.Statement{Text: text, Share: share, StatementCounts: c}
}

// TestCauses guards which causes evidence shows, and that they are silent where it is too little.
func TestCauses(t *testing.T) {
	for name, c := range map[string]struct {
		find func(*cause.View) (cause.Found, bool)
		view *cause.View
		part float64 // 0: silent
		text string
	}{
		"a scan":                              {withoutIndex, view(cause.SharedCPU, nil, nil, statement("SELECT a", 0.9, measure.StatementCounts{FullScans: 20000, RowsExamined: 4e8, RowsSent: 20000})), 0.9, "20000 rows read for 1 sent"},
		"a scan of a small table":             {withoutIndex, view(cause.SharedCPU, nil, nil, statement("SELECT a", 0.9, measure.StatementCounts{FullScans: 20000, RowsExamined: 2e6})), 0, ""},
		"a scan without statements":           {withoutIndex, view(cause.SharedCPU, values{tableScans: 20000, joinScans: 0, rowsRead: 4e8, rowsSent: 20000}, nil), 1, "the counters by statement do not show which"},
		"the same while statements are known": {withoutIndex, view(cause.SharedCPU, values{tableScans: 20000, joinScans: 0, rowsRead: 4e8, rowsSent: 20000}, nil, statement("SELECT b", 1, measure.StatementCounts{RowsExamined: 20000})), 0, ""},
		"an aggregate of a range":             {manyRows, view(cause.SharedCPU, nil, nil, statement("SELECT SUM ( k )", 0.3, measure.StatementCounts{RowsExamined: 2e6, RowsSent: 20000})), 0, ""},
		"a poor index":                        {manyRows, view(cause.SharedCPU, nil, nil, statement("SELECT a", 0.7, measure.StatementCounts{RowsExamined: 4e8, RowsSent: 20000})), 0.7, "read 20000 rows for 1"},
		"tables opened":                       {tablesOpened, view(cause.SharedCPU, values{opened: 19000}, map[string]string{"table_open_cache": "10"}), 0.475, "table_open_cache is 10"},
		"tables opened at first":              {tablesOpened, view(cause.SharedCPU, values{opened: 400}, nil), 0, ""},
		"flushed commits":                     {flushedCommits, view(cause.Commit, values{commitsInBinlog: 20000, groupsInBinlog: 10000}, map[string]string{"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1"}), 1, "500 group commits a second, with 2 transactions each"},
		"commits without flush":               {flushedCommits, view(cause.Commit, nil, map[string]string{"innodb_flush_log_at_trx_commit": "2", "log_bin": "OFF", "sync_binlog": "1"}), 0, ""},
		"connections":                         {connecting, view(cause.SharedCPU, values{engine.OpenedConnections: 1000}, nil), 0.5, "1000 connections a second, 1 for each transaction of 1 statement"},
		"connections that stay":               {connecting, view(cause.SharedCPU, values{engine.OpenedConnections: 0.2}, nil), 0, ""},
		"deadlocks":                           {deadlocked, view(cause.RowLocks, values{engine.Deadlocks: 1000}, nil), 0.5, "one for each 20 transactions"},
		"few deadlocks":                       {deadlocked, view(cause.RowLocks, values{engine.Deadlocks: 3}, nil), 0, ""},
		"a statement that computes":           {computing, view(cause.SharedCPU, nil, nil, statement("SELECT BENCHMARK ( ... )", 1, measure.StatementCounts{Executions: 400, RowsSent: 400})), 1, "about"},
		"a commit that waits":                 {computing, view(cause.SharedCPU, nil, nil, statement("COMMIT", 1, measure.StatementCounts{Executions: 400})), 0, ""},
		"short statements":                    {computing, view(cause.SharedCPU, nil, nil, statement("SELECT a", 1, measure.StatementCounts{Executions: 200000, RowsSent: 200000})), 0, ""},
	} {
		found, is := c.find(c.view)
		if is != (c.part > 0) || is && (math.Abs(found.Part-c.part) > 0.01 || !strings.Contains(found.Evidence, c.text)) {
			t.Errorf("%s: %v %+v, want %v", name, is, found, c.part)
		}
	}
}
