package ycsb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// A flood of messages is reported as the first one, the last one and their number.
func TestErrorFlood(t *testing.T) {
	var b strings.Builder
	const n = 38000
	for i := range n {
		fmt.Fprintf(&b, "Error in processing insert to table: usertablejava.sql.SQLException: (conn=71) Duplicate entry 'user%d'\n", i)
		if i%1000 == 0 {
			b.WriteString(at0)
		}
	}
	res := parse(tool.Stderr, b.String())
	var messages []string
	intervals := 0
	for _, r := range res.Reports {
		switch r.Kind {
		case tool.Error:
			messages = append(messages, r.Message)
		case tool.Interval:
			intervals++
		}
	}
	if len(messages) != 2 || !strings.Contains(messages[0], "'user0'") ||
		!strings.Contains(messages[1], "'user37999'") || !strings.Contains(messages[1], "last of 38000") {
		t.Errorf("messages: %q", messages)
	}
	if intervals != n/1000 {
		t.Errorf("%d intervals, want %d", intervals, n/1000)
	}
}

// No report contains a password that YCSB prints.
func TestNoSecrets(t *testing.T) {
	const text = "Command line: -db site.ycsb.db.MongoDbClient -p mongodb.url=mongodb://bench:geheim1@h/ycsb -p db.passwd=geheim2 -load\n" +
		"YCSB Client 0.17.0\n" +
		"Starting test.\n" +
		"Error in database operation: cannot open mongodb://bench:geheim1@h/ycsb\n" +
		"Error: access denied with geheim2\n" +
		"com.mongodb.MongoException: auth failed for geheim1, password=geheim3\n"
	for _, stream := range []tool.Stream{tool.Stdout, tool.Stderr} {
		res := parse(stream, text)
		if len(res.Reports) < 3 || strings.Contains(res.String(), "geheim") {
			t.Errorf("stream %d:\n%s", stream, res)
		}
	}
}

func TestVerdict(t *testing.T) {
	const overall = "[OVERALL], RunTime(ms), 1000\n[OVERALL], Throughput(ops/sec), 100.0\n"
	tests := []struct {
		name, rows string
		errors     uint64
		message    string
	}{
		{"good", overall + "[READ], Operations, 100\n[READ], Return=OK, 100\n", 0, ""},
		{"batched", overall + "[INSERT], Operations, 100\n[INSERT], Return=OK, 10\n[INSERT], Return=BATCHED_OK, 90\n", 0, ""},
		{"some rows are missing", overall + "[READ], Return=OK, 90\n[READ], Return=NOT_FOUND, 10\n", 10, ""},
		{"all rows are missing", overall + "[READ], Return=NOT_FOUND, 100\n", 100, "no operation succeeded: read NOT_FOUND 100"},
		{"some failed", overall + "[READ], Return=OK, 95\n[UPDATE], Return=ERROR, 5\n", 5, "5 operations failed: update ERROR 5"},
		{"all failed", overall + "[READ], Return=ERROR, 60\n[UPDATE], Return=UNEXPECTED_STATE, 40\n", 100, "no operation succeeded: read ERROR 60, update UNEXPECTED_STATE 40"},
		{"no returns", overall + "[READ], Operations, 90\n[READ-FAILED], Operations, 10\n", 10, "no operation succeeded"},
		{"nothing done", "[OVERALL], RunTime(ms), 1000\n[OVERALL], Throughput(ops/sec), 0.0\n", 0, "no operation ended"},
		{"a thread died", "site.ycsb.DBException: refused\n\tat x\n" + overall + "[READ], Return=OK, 100\n", 0, "stopped by site.ycsb.DBException: refused"},
	}
	for _, test := range tests {
		res := parse(tool.Stdout, test.rows)
		if len(res.Reports) != 1 {
			t.Errorf("%s: %s", test.name, res)
			continue
		}
		r := res.Reports[0]
		if r.Count("error").Value != test.errors || r.Message != test.message || r.Failed != (test.message != "") {
			t.Errorf("%s: %s", test.name, tooltest.Render(r))
		}
	}
}

func TestSummaryRows(t *testing.T) {
	const rows = "[OVERALL], RunTime(ms), 2000\n" +
		"[OVERALL], Throughput(ops/sec), 50.0\n" +
		"[TOTAL_GCS_G1_Young_Generation], Count, 3\n" +
		"[MAX_MEM_USED], MBs, 19\n" +
		"[THREAD_COUNT], Operations, 7\n" +
		"[THREAD_COUNT], AverageLatency(us), 12.0\n" +
		"[READ], Operations, 100\n" +
		"[READ], AverageLatency(us), 3.0081024E7\n" +
		"[READ], LatencyVariance(us), 3.8E7\n" +
		"[READ], MinLatency(us), 0\n" +
		"[READ], 1stPercentileLatency(us), 1\n" +
		"[READ], 22ndPercentileLatency(us), 2\n" +
		"[READ], 43rdPercentileLatency(us), 3\n" +
		"[READ], 99thPercentileLatency(us), 4\n" +
		"[READ], 99.9PercentileLatency(us), 5\n" +
		"[READ], Return=OK, 100\n" +
		"[READ], 0, 17\n" +
		"[READ], 1, 18\n" +
		"[READ], >1000, 19\n" +
		"[UPDATE], Operations, 0\n" +
		"[UPDATE], AverageLatency(us), NaN\n" +
		"[UPDATE], MinLatency(us), 9223372036854775807\n" +
		"[SCAN], Operations, 1\n" +
		"[SCAN], AverageLatency(us), 1e999\n" +
		"[DELETE], Operations, -1\n" +
		"[Intended-READ], Operations, 100\n" +
		"[Intended-READ], AverageLatency(us), 8.5\n"
	const want = `{"kind":"summary","run":1,"elapsed_seconds":2,"checkpoint":false,"rates":{"transaction":50,"read":50,"update":0,"scan":0.5},` +
		`"counts":{"transaction":100,"read":100,"update":0,"scan":1,"intended_read":100,"error":0},` +
		`"latency_seconds":{"read":{"avg":30.081024,"min":0,"p1":0.000001,"p22":0.000002,"p43":0.000003,"p99":0.000004,"p99.9":0.000005},"intended_read":{"avg":0.0000085}}}` +
		"\nlines: 18 reported, 7 ignored, 2 malformed\n"
	if got := parse(tool.Stdout, rows).String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := parse(tool.Stdout, strings.TrimPrefix(rows, "[OVERALL], RunTime(ms), 2000\n")); len(got.Reports) != 0 {
		t.Errorf("without a beginning: %s", got)
	}
}

// The exporter's objects can be spread over any number of lines.
func TestJSONOnOneLine(t *testing.T) {
	const text = `[{"metric":"OVERALL","measurement":"RunTime(ms)","value":2000},{"metric":"OVERALL","measurement":"Throughput(ops/sec)","value":"NaN"},` +
		`{"metric":"READ","measurement":"Operations","value":7},{"metric":"READ","measurement":"Return=OK","value":7}]`
	const want = `{"kind":"summary","run":1,"elapsed_seconds":2,"checkpoint":false,"rates":{"read":3.5},"counts":{"read":7,"error":0}}`
	if got := parse(tool.Stdout, text); len(got.Reports) != 1 || tooltest.Render(got.Reports[0]) != want {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{`{"metric":"x"`, `{"metric" : `, `"value" : 3`, `{"level":"info"}`, `"metric" : "a\"b"`, `[`, `}`} {
		if got := parse(tool.Stdout, text); len(got.Reports) != 0 || got.Malformed != 0 {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestSeverity(t *testing.T) {
	for text, want := range map[string]severity{
		"java.lang.ArithmeticException: / by zero":                                     exception,
		"java.lang.OutOfMemoryError":                                                   exception,
		"Exception in thread \"main\" java.lang.NumberFormatException: For input":      exception,
		"\tat site.ycsb.Client.main(Client.java:302)":                                  harmless,
		"Caused by: java.net.ConnectException: Connection refused":                     harmless,
		"Could not wait until max specified time, TerminatorThread interrupted.":       harmless,
		"Could not initialize MongoDB connection pool for Loader: java.lang.X":         failure,
		"01:54:05.536 [Thread-9] ERROR org.mongodb.driver.connection - lost":           failure,
		"01:54:05.536 [Thread-9] WARN  org.mongodb.driver.connection - lost":           harmless,
		"usage: ycsb [-h] command database":                                            harmless,
		"ycsb: error: argument database: invalid choice: 'nosuch'":                     deadly,
		"[ERROR]  Command failed. Is java installed and on your PATH?":                 deadly,
		"Unknown DB site.ycsb.db.Nosuch":                                               deadly,
		"READ,1795225435285,15103":                                                     harmless,
		"org.slf4j.Logger":                                                             harmless,
		"Warning: the threadcount is bigger than recordcount, the threadcount will be": harmless,
	} {
		if got := severityOf([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
