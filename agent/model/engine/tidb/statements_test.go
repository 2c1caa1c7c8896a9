package tidb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

const (
	summaryColumns = "since|name|digest|plan_id|instance|executions|latency|errors|affected|examined|sent"
	selects        = "e6f07d43b5c21db0fbb9a31feac2dc599787763393dd5acbfad80e247eb02ad5"
	updates        = "8a8ba1dbc1e4a3d2bd5ab0e9ea0d1d2ed16ecf0e1d2d8c9b2a6e0cbbd5a6b0aa"
)

// reading reads with the rows of the current period and of all periods.
func reading(t *testing.T, d *Detail, options map[string]string, at time.Time, before *engine.StatementReading, uptime string, present, all []mysql.Row) (*engine.StatementReading, *answers, error) {
	t.Helper()
	texts := rows("name|digest|text", "sbtest|"+selects+"|select `c` from `sbtest` where `id` = ?", "sbtest|"+updates+"|update `sbtest` set  `c` = ?")
	q := &answers{byPart: map[string][]mysql.Row{
		"Variable_name = 'Uptime'": rows("Variable_name|Value", "Uptime|"+uptime),
		"STATEMENTS_SUMMARY LIMIT": present, "STATEMENTS_SUMMARY_HISTORY LIMIT": all,
		"DIGEST_TEXT": texts,
	}}
	r, err := d.ReadStatements(t.Context(), q, &engine.Target{Options: options}, tick(t, &engine.Target{}).Server, before)
	if r != nil {
		r.At = at
	}
	return r, q, err
}

// TestStatements guards the executions of a run within one of the server's periods, and across the
// start of another. The answers are composed after TiDB's documentation.
func TestStatements(t *testing.T) {
	d := newDetail(t)
	begin := time.Unix(1_800_000_100, 0)
	first := rows(summaryColumns,
		"1800000000|sbtest|"+selects+"|p1|NULL|100|50000000|0|0|1|1",
		"1800000000|sbtest|"+updates+"|p2|NULL|10|20000000|1|1|1|0",
		"1800000000|NULL|NULL|NULL|NULL|5|1000|0|0|0|0") // statements for which there was no room
	before, q, err := reading(t, d, nil, begin, nil, "500", first, nil)
	if err != nil || len(before.Statements) != 3 || before.Statements[0].Text != "" {
		t.Fatalf("%+v, %v", before, err)
	}
	for _, statement := range q.asked {
		if strings.Contains(statement, "HISTORY") || strings.Contains(statement, "CLUSTER_") || strings.Contains(statement, "SAMPLE_TEXT") {
			t.Errorf("asked %s", statement)
		}
	}
	check := func(after *engine.StatementReading, err error, executions, seconds float64) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		delta, err := engine.StatementsBetween(before, after)
		if err != nil {
			t.Fatal(err)
		}
		if len(delta.Statements) != 1 {
			t.Fatalf("%+v", delta.Statements)
		}
		s := delta.Statements[0]
		if s.Executions != executions || s.Seconds < seconds-1e-9 || s.Seconds > seconds+1e-9 || s.RowsSent != executions || s.Schema != "sbtest" || s.Text != "select `c` from `sbtest` where `id` = ?" {
			t.Errorf("%+v", s)
		}
	}
	same := rows(summaryColumns,
		"1800000000|sbtest|"+selects+"|p1|NULL|150|80000000|0|0|1|1",
		"1800000000|sbtest|"+selects+"|p3|NULL|7|7000000|0|0|1|1", // another plan
		"1800000000|sbtest|"+updates+"|p2|NULL|10|20000000|1|1|1|0")
	after, _, err := reading(t, d, nil, begin.Add(time.Minute), before, "560", same, nil)
	check(after, err, 57, 0.037)

	// Half an hour later: some versions have the current period in both tables.
	present := rows(summaryColumns, "1800001800|sbtest|"+selects+"|p1|NULL|30|9000000|0|0|1|1")
	all := rows(summaryColumns,
		"1799998200|sbtest|"+selects+"|p1|NULL|99999|1|0|0|1|1", // before the run
		"1800000000|sbtest|"+selects+"|p1|NULL|170|90000000|0|0|1|1",
		"1800000000|sbtest|"+updates+"|p2|NULL|10|20000000|1|1|1|0",
		"1800001800|sbtest|"+selects+"|p1|NULL|29|8900000|0|0|1|1")
	after, _, err = reading(t, d, nil, begin.Add(30*time.Minute), before, "2300", present, all)
	check(after, err, 100, 0.049)

	if _, err := engine.StatementsBetween(before, &engine.StatementReading{At: begin.Add(time.Minute), UptimeSeconds: 3}); !errors.Is(err, engine.ErrStatementsRestart) {
		t.Error(err)
	}
	after, _, err = reading(t, d, nil, begin.Add(time.Minute), before, "560", rows(summaryColumns, "1800000000|sbtest|"+selects+"|p1|NULL|3|1|0|0|1|1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.StatementsBetween(before, after); !errors.Is(err, engine.ErrStatementsReset) {
		t.Error(err)
	}
}

// TestRoundedMeans guards that a lower number of rows, caused by a mean that the server rounds
// down, is not taken for a reset.
func TestRoundedMeans(t *testing.T) {
	d, begin := newDetail(t), time.Unix(1_800_000_100, 0)
	before, _, err := reading(t, d, nil, begin, nil, "500", rows(summaryColumns, "1800000000|s|"+selects+"|p|NULL|100|1000|0|0|2|2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := reading(t, d, nil, begin.Add(time.Second), before, "501", rows(summaryColumns, "1800000000|s|"+selects+"|p|NULL|101|2000|0|0|1|1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if delta, err := engine.StatementsBetween(before, after); err != nil || delta.Total().Executions != 1 {
		t.Errorf("%+v, %v", delta, err)
	}
}

// TestNoStatements guards the reasons for missing counts.
func TestNoStatements(t *testing.T) {
	d := newDetail(t)
	if _, _, err := reading(t, d, nil, time.Time{}, nil, "1", nil, nil); !errors.Is(err, engine.MissingError(notCounted)) {
		t.Error(err)
	}
	if _, _, err := reading(t, d, map[string]string{engine.OptionStatements: engine.Off}, time.Time{}, nil, "1", nil, nil); !errors.Is(err, engine.ErrSwitchedOff) {
		t.Error(err)
	}
	d.members.denied = true
	if _, _, err := reading(t, d, nil, time.Time{}, nil, "1", nil, nil); !errors.Is(err, engine.MissingError(missingStatements)) {
		t.Error(err)
	}
}

// TestStatementsOfCluster guards that one server is asked for all servers if that is configured.
func TestStatementsOfCluster(t *testing.T) {
	q := &answers{byPart: map[string][]mysql.Row{
		"Variable_name = 'Uptime'": rows("Variable_name|Value", "Uptime|9"),
		"INSTANCE AS instance":     nil, "CLUSTER_STATEMENTS_SUMMARY LIMIT": rows(summaryColumns,
			"1800000000|s|"+selects+"|p|tidb0:10080|100|1000|0|0|1|1", "1800000000|s|"+selects+"|p|tidb1:10080|50|1000|0|0|1|1"),
	}}
	target := &engine.Target{Options: map[string]string{engine.OptionStatements: engine.Cluster}}
	r, err := newDetail(t).ReadStatements(t.Context(), q, target, tick(t, target).Server, nil)
	if err != nil || len(r.Statements) != 1 || r.Statements[0].Executions != 150 {
		t.Errorf("%+v, %v", r, err)
	}
}
