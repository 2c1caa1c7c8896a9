package goycsb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

func parse(text string) tooltest.Result {
	return tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text)))
}

// rendered returns the reports of text as text.
func rendered(text string) []string {
	var all []string
	for _, r := range parse(text).Reports {
		all = append(all, tooltest.Render(r))
	}
	return all
}

// rest is the end of a row, which intervals ignore.
const rest = ", Avg(us): 2, Min(us): 1, Max(us): 9, 50th(us): 2, 90th(us): 3, 95th(us): 4, 99th(us): 5, 99.9th(us): 6, 99.99th(us): 7\n"

const (
	read1  = "READ   - Takes(s): 1.0, Count: 100, OPS: 100.0" + rest
	total1 = "TOTAL  - Takes(s): 1.0, Count: 100, OPS: 100.0" + rest
	read2  = "READ   - Takes(s): 2.0, Count: 250, OPS: 125.0" + rest
	total2 = "TOTAL  - Takes(s): 2.0, Count: 250, OPS: 125.0" + rest
	want1  = `{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"phase":"measure","rates":{"transaction":100,"read":100},"counts":{"transaction":100,"read":100}}`
	want2  = `{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"phase":"measure","rates":{"transaction":150,"read":150},"counts":{"transaction":150,"read":150}}`
)

func TestIntervals(t *testing.T) {
	stars := strings.Repeat("*", 46) + "\n"
	tests := []struct {
		name, text string
		want       []string
		malformed  int
	}{
		{"two blocks", read1 + total1 + read2 + total2, []string{want1, want2}, 0},
		{"a message between blocks", read1 + total1 + "write exception: x\n" + read2 + total2, []string{want1, want2}, 0},
		{"an operation that begins later", read1 + total1 + read2 + strings.Replace(total2, "250", "260", 1) + "UPDATE - Takes(s): 0.2, Count: 10, OPS: 50.0" + rest,
			[]string{want1, `{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"phase":"measure","rates":{"transaction":160,"read":150,"update":10},"counts":{"transaction":160,"read":150,"update":10}}`}, 0},
		{"an operation that pauses", read1 + total1 + strings.Replace(read2, "Count: 250, OPS: 125.0", "Count: 100, OPS: 50.0", 1) + strings.Replace(total2, "Count: 250, OPS: 125.0", "Count: 100, OPS: 50.0", 1),
			[]string{want1, `{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"phase":"measure","rates":{"transaction":0,"read":0},"counts":{"transaction":0,"read":0}}`}, 0},
		{"times rounded to 0.1 s: count / OPS tells more",
			"TOTAL  - Takes(s): 0.9, Count: 949, OPS: 1000.0" + rest + "TOTAL  - Takes(s): 2.0, Count: 1951, OPS: 1000.0" + rest,
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":0.9,"interval_seconds":0.949,"phase":"measure","rates":{"transaction":1000},"counts":{"transaction":949}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1.002,"phase":"measure","rates":{"transaction":1000},"counts":{"transaction":1002}}`}, 0},
		{"a read-modify-write is one transaction, its parts are in TOTAL",
			"READ   - Takes(s): 1.0, Count: 100, OPS: 100.0" + rest + "READ_MODIFY_WRITE - Takes(s): 1.0, Count: 40, OPS: 40.0" + rest +
				"TOTAL  - Takes(s): 1.0, Count: 140, OPS: 140.0" + rest + "UPDATE - Takes(s): 1.0, Count: 40, OPS: 40.0" + rest,
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"phase":"measure","rates":{"transaction":100,"read":100,"read_modify_write":40,"update":40},"counts":{"transaction":100,"read":100,"read_modify_write":40,"update":40}}`}, 0},
		{"which failed reads were parts is not told",
			"READ   - Takes(s): 1.0, Count: 100, OPS: 100.0" + rest + "READ_ERROR - Takes(s): 1.0, Count: 5, OPS: 5.0" + rest + "READ_MODIFY_WRITE - Takes(s): 1.0, Count: 40, OPS: 40.0" + rest +
				"TOTAL  - Takes(s): 1.0, Count: 138, OPS: 138.0" + rest + "UPDATE - Takes(s): 1.0, Count: 38, OPS: 38.0" + rest,
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"phase":"measure","rates":{"read":100,"read_modify_write":40,"update":38},"counts":{"read":100,"read_error":5,"read_modify_write":40,"update":38,"error":5},"errors_per_second":5}`}, 0},
		{"errors only", "READ_ERROR - Takes(s): 1.0, Count: 50, OPS: 50.0" + rest,
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"phase":"measure","rates":{"transaction":0},"counts":{"transaction":0,"read_error":50,"error":50},"errors_per_second":50}`}, 0},
		{"a cut row", read1 + total1[:60] + "\n" + read2 + total2,
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"phase":"measure","rates":{"read":100},"counts":{"read":100}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"phase":"measure","rates":{"read":150},"counts":{"transaction":250,"read":150}}`}, 1},
		{"fewer columns than before", read1 + total1 + strings.Replace(read2, ", 99.99th(us): 7", "", 1) + total2,
			[]string{want1, `{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"phase":"measure","rates":{"transaction":150},"counts":{"transaction":150}}`}, 1},
		{"two rows in one line", read1 + strings.TrimSuffix(total1, "\n") + read2 + total2,
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":1,"interval_seconds":1,"phase":"measure","rates":{"read":100},"counts":{"read":100}}`,
				`{"kind":"interval","run":1,"elapsed_seconds":2,"phase":"measure","counts":{"transaction":250}}`}, 1},
		{"numbers out of range", strings.Replace(read1, "Count: 100", "Count: 99999999999999999999999", 1) + strings.Replace(read1, "1.0,", "1e999,", 1), nil, 2},
		{"counts that fall are another run", read2 + total2 + read1 + total1,
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":2,"phase":"measure","rates":{"transaction":125,"read":125},"counts":{"transaction":250,"read":250}}`, strings.Replace(want1, `"run":1`, `"run":2`, 1)}, 0},
		{"the final block is no interval", read1 + total1 + stars + "Run finished, takes 1m2.5s\n" + read2 + total2,
			[]string{want1, `{"kind":"summary","run":1,"elapsed_seconds":62.5,"checkpoint":false,"rates":{"read":125,"transaction":125},"counts":{"read":250,"transaction":250},` +
				`"latency_seconds":{"read":{"avg":0.000002,"min":0.000001,"max":0.000009,"p50":0.000002,"p90":0.000003,"p95":0.000004,"p99":0.000005,"p99.9":0.000006,"p99.99":0.000007},` +
				`"transaction":{"avg":0.000002,"min":0.000001,"max":0.000009,"p50":0.000002,"p90":0.000003,"p95":0.000004,"p99":0.000005,"p99.9":0.000006,"p99.99":0.000007}}}`}, 0},
		{"the final block is in a file", read1 + total1 + "Run finished, takes 2s\n", []string{want1, `{"kind":"summary","run":1,"elapsed_seconds":2,"checkpoint":false}`}, 0},
		{"a duration that is none", "Run finished, takes 2 parsecs\n", nil, 1},
		{"JSON", `[{"50th(us)":"2","Avg(us)":"2","Count":"100","Max(us)":"9","Min(us)":"1","OPS":"100.0","Operation":"READ","Takes(s)":"1.0"},{"50th(us)":"2","Avg(us)":"2","Count":"100","Max(us)":"9","Min(us)":"1","OPS":"100.0","Operation":"TOTAL","Takes(s)":"1.0"}]` + "\n",
			[]string{want1}, 0},
		{"JSON cut", `[{"50th(us)":"2","Avg(us)":"2","Count":"100","Max(us)":"9","Min(us)":"1","OPS":"100.0","Operation":"READ","Takes(s)":"1.0"},{"50th(us)":"2","Avg` + "\n", nil, 1},
		{"JSON of something else", `[{"Operation":"READ"}]` + "\n", nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			res := parse(test.text)
			if diff := cmp.Diff(test.want, rendered(test.text)); diff != "" {
				t.Error(diff)
			}
			if res.Malformed != test.malformed {
				t.Errorf("%d malformed, want %d", res.Malformed, test.malformed)
			}
		})
	}
}

// tablewriter writes a table in pieces, so messages can appear between its rows and within a row.
func TestTable(t *testing.T) {
	const (
		rule = "+-----------+----------+-------+-------+---------+---------+---------+----------+\n"
		head = "| OPERATION | TAKES(S) | COUNT |  OPS  | AVG(US) | MIN(US) | MAX(US) | 50TH(US) |\n"
		read = "| READ      |      1.0 |   100 | 100.0 |       2 |       1 |       9 |        2 |\n"
		all  = "| TOTAL     |      1.0 |   100 | 100.0 |       2 |       1 |       9 |        2 |\n"
	)
	for name, text := range map[string]string{
		"whole":                    rule + head + rule + read + all + rule,
		"messages between":         rule + head + "operation err: a\n" + rule + read + "b\n" + all + rule,
		"without the closing rule": rule + head + rule + read + all,
	} {
		var got []string
		for _, s := range rendered(text) {
			if !strings.Contains(s, `"error"`) {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff([]string{want1}, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	res := parse(rule + head + rule + "| READ      |   operation err: x\n   1.0 |   100 | 100.0 |       2 |       1 |       9 |        2 |\n" + all + rule)
	if res.Malformed != 1 || len(res.Reports) != 1 || res.Reports[0].Count("read").Known || res.Reports[0].Count(tool.Transaction).Value != 100 {
		t.Errorf("a broken row: %s", res)
	}
}

// Flush reports a complete block when no more bytes follow, and does not change what is reported.
func TestFlush(t *testing.T) {
	text := read1 + total1 + read2 + total2 + strings.Replace(read2, "2.0", "3.0", 1) + strings.Replace(total2, "2.0", "3.0", 1)
	want := rendered(text)
	var got []string
	emit := func(r *tool.Report) { got = append(got, tooltest.Render(r)) }
	p := Tool.NewParser(tool.Description{})
	var at []int // number of reports after each line
	for _, l := range tooltest.Lines(tool.Stdout, []byte(text)) {
		p.Parse(l, emit)
		p.(tool.Flusher).Flush(emit)
		at = append(at, len(got))
	}
	p.Close(emit)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 0, 1, 2, 2, 3}, at); diff != "" {
		t.Errorf("reports after each line:\n%s", diff)
	}
}

// No report contains a password that go-ycsb dumps.
func TestNoSecrets(t *testing.T) {
	const text = "***************** properties *****************\n" +
		"\"mysql.password\"=\"geheim1\"\n" +
		"\"mongodb.url\"=\"mongodb://u:geheim2@h/db\"\n" +
		"\"command\"=\"run\"\n" +
		"**********************************************\n" +
		"operation err: cannot log in with geheim1 at mongodb://u:geheim2@h/db\n" +
		"operation err: geheim2\n"
	res := parse(text)
	if len(res.Reports) != 3 || strings.Contains(res.String(), "geheim") {
		t.Error(res)
	}
}

// Runs appended to one file.
func TestRuns(t *testing.T) {
	const dump = "Using request distribution 'uniform' a keyrange of [0 99]\n***************** properties *****************\n\"command\"=\"load\"\n**********************************************\n"
	res := parse(dump + read1 + total1 + "Run finished, takes 2s\n" + read2 + total2 + dump + read1 + total1 + dump + dump[:120] + "\n" + dump)
	var got []string
	for _, r := range res.Reports {
		got = append(got, strings.Repeat("#", r.Run)+" "+string(r.Kind))
	}
	want := []string{"# start", "# interval", "# summary", "## start", "## interval", "### start", "#### start", "##### start"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
