package tidb

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// TestTransactionsDuringStall: who waits for whom, from answers composed after TiDB's manual.
func TestTransactionsDuringStall(t *testing.T) {
	q := &answers{byPart: map[string][]mysql.Row{
		witnessCounts: rows("state|n", "LockWaiting|3", "Running|1"),
		witnessTransactions: rows("trx|instance|session|user|state|text|age|waited",
			"1001|a:1|7|app|Idle||20.5|", "1002|a:1|11|bench|LockWaiting|update t set v = ?|4.0|3.9",
			"1003|a:1|12|bench|LockWaiting|update t set v = ?|4.0|3.8", "1004|a:1|13|bench|LockWaiting|update t set v = ?|4.0|3.8"),
		witnessWaits: rows("waiting|holder|info|text",
			`1002|1001|{"db_name":"sbtest","table_name":"t","handle_type":"int","handle_value":"secret"}|`,
			`1003|1002|{"db_name":"sbtest","table_name":"t"}|`, `1004|1001|{"db_name":"sbtest","table_name":"t","index_name":"k"}|`),
		witnessDeadlocks: rows("n", "2"),
	}}
	a := &evidence.Answer{Target: "t1", Engine: mysql.Name, At: time.Unix(1, 0)}
	if err := (&Detail{}).Testify(t.Context(), q, &mysql.Server{Flavour: "tidb"}, a); err != nil {
		t.Fatal(err)
	}
	got := evidence.Explain(4, 5, []evidence.Moment{{Answers: []evidence.Answer{*a}}})
	if got.Reason != "row lock" || got.Text != "3 of 4 clients waited for the row lock that session 7 (idle, app, in a transaction of 20.5 s) held" {
		t.Errorf("%s: %s", got.Reason, got.Text)
	}
	if a.Values["deadlocks"] != 2 || a.Session("11").Waits.On != "sbtest.t" || a.Session("13").Waits.On != "sbtest.t index k" {
		t.Errorf("%+v", a)
	}
}
