package hammerdb

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

func TestGolden(t *testing.T) {
	for _, dir := range tooltest.Cases(t, "testdata/*/*") {
		t.Run(strings.TrimPrefix(dir, "testdata/"), func(t *testing.T) {
			tooltest.Golden(t, filepath.Join(dir, "golden.txt"), tooltest.Parse(Tool, tooltest.Recorded(t, dir)).String())
		})
	}
}

func parse(text string) string {
	return tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text))).String()
}

// TestVariants reads what other versions and databases print, and what people keep of it.
func TestVariants(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"version 3", "Vuser 1:Timing test period of 2 in minutes\nVuser 1:Test complete, Taking end AWR snapshot.\nVuser 1:5 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 64341 Oracle TPM at 27975 NOPM\n",
			`{"kind":"start","run":1,"tool":"hammerdb"}
{"kind":"summary","run":1,"elapsed_seconds":120,"threads":5,"checkpoint":false,"rates":{"transaction":1072.35,"new_order":466.25},"nopm":27975,"tpm":64341}
lines: 4 reported, 0 ignored, 0 malformed
`},
		{"results only", "Vuser 1:TEST RESULT : System achieved 600 NOPM from 1200 SQL Server TPM\nVuser 1:TEST RESULT : System achieved 660 NOPM from 1320 SQL Server TPM\n",
			`{"kind":"start","run":1,"tool":"hammerdb"}
{"kind":"summary","run":1,"checkpoint":false,"rates":{"transaction":20,"new_order":10},"nopm":600,"tpm":1200}
{"kind":"start","run":2,"tool":"hammerdb","workload":"tproc-c"}
{"kind":"summary","run":2,"checkpoint":false,"rates":{"transaction":22,"new_order":11},"nopm":660,"tpm":1320}
lines: 2 reported, 0 ignored, 0 malformed
`},
		{"TPROC-H", "Vuser 1:Executing Query 14 (1 of 22)\nVuser 1:query 14 returned 1 rows\nVuser 1:query 14 completed in 0.5 seconds\nVuser 1:query 2 completed in 1.5 seconds\n" +
			"Vuser 1:Completed 1 query set(s) in 2 seconds\nVuser 1:Geometric mean of query times returning rows (2) is 0.86603\nVuser 1:FINISHED SUCCESS\nALL VIRTUAL USERS COMPLETE\n",
			`{"kind":"start","run":1,"tool":"hammerdb"}
{"kind":"summary","run":1,"elapsed_seconds":2,"checkpoint":false,"rates":{"q2":0.5,"q14":0.5,"transaction":1},"counts":{"q2":1,"q14":1,"transaction":2},"latency_seconds":{"q2":{"min":1.5,"avg":1.5,"max":1.5},"q14":{"min":0.5,"avg":0.5,"max":0.5}},"query_geometric_mean_seconds":0.86603}
lines: 5 reported, 3 ignored, 0 malformed
`},
		{"a failed user after the result", "3 Virtual Users Created with Monitor VU\nVuser 1:TEST RESULT : System achieved 600 NOPM from 1200 MariaDB TPM\nError in Virtual User 2: ERROR:  could not serialize\nDETAIL:  x\n\nVuser 2:FINISHED FAILED\nALL VIRTUAL USERS COMPLETE\n",
			`{"kind":"start","run":1,"tool":"hammerdb","command":"run","threads":2}
{"kind":"error","run":1,"failed":true,"message":"virtual user 2 failed: ERROR:  could not serialize DETAIL:  x"}
{"kind":"summary","run":1,"threads":2,"checkpoint":false,"rates":{"transaction":20,"new_order":10},"nopm":600,"tpm":1200}
lines: 6 reported, 1 ignored, 0 malformed
`},
		{"the counter's log, with times", "Hammerdb Transaction Counter Log @ Thu Jun 30 21:18:31 UTC 2022\n+-+-+\n0 PostgreSQL tpm @ Thu Jun 30 21:18:31 UTC 2022\n" +
			"193290 PostgreSQL tpm @ Thu Jun 30 21:18:41 UTC 2022\n6000 PostgreSQL tpm @ Thu Jun 30 21:18:52 UTC 2022\n",
			`{"kind":"start","run":1,"tool":"hammerdb","command":"run"}
{"kind":"interval","run":1,"elapsed_seconds":10,"interval_seconds":10,"rates":{"transaction":3221.5}}
{"kind":"interval","run":1,"elapsed_seconds":21,"interval_seconds":11,"rates":{"transaction":100}}
lines: 3 reported, 2 ignored, 0 malformed
`},
		{"the counter's log", "Hammerdb Transaction Counter Log @ Thu Jun 30 21:18:31 UTC 2022\n0 MariaDB tpm\n193290 MariaDB tpm\n",
			`lines: 0 reported, 3 ignored, 0 malformed
`},
		{"the counter runs on", "ALL VIRTUAL USERS COMPLETE\n35028 MariaDB tpm\n", `lines: 0 reported, 2 ignored, 0 malformed
`},
	} {
		if diff := cmp.Diff(test.want, parse(test.text)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

func TestDamagedOutput(t *testing.T) {
	for _, text := range []string{
		"Vuser 1:TEST RESULT : System achieved x NOPM from 1 MariaDB TPM\n", "Vuser 1:TEST RESULT : System achieved 1 NOPM from 99999999999999999999 MariaDB TPM\n",
		"Vuser 1:TEST RESULT : System achieved 12 NO\n", "Vuser 1:query 99 completed in 1 seconds\n", "Vuser 1:query 2 completed in -1 seconds\n",
		"MariaDB Hammerdb Time Profile Report @ Fri Nov 27 14:12:57 UTC 2026\n>>>>> SUMMARY OF 2 ACTIVE\n>>>>> PROC: NEWORD\nCALLS: 1\tMIN: nanms\n",
	} {
		if res := tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, []byte(text))); res.Malformed != 1 {
			t.Errorf("%q: %s", text, res)
		}
	}
}

func TestSniff(t *testing.T) {
	tooltest.Sniffs(t, Tool, 70, tooltest.Cases(t, "testdata/*/*/stdout.txt"), "10 tpm\n", "Vuser\n", "TEST RESULT: ok\n")
}

func FuzzParser(f *testing.F) { tooltest.Fuzz(f, Tool) }

func TestNoAllocation(t *testing.T) {
	p := NewParser()
	emit := func(*tool.Report) {}
	p.Parse(tool.Line{Text: []byte("Vuser 1:RUNNING")}, emit)
	line := tool.Line{Text: []byte("\r15552 MariaDB tpm")}
	if n := testing.AllocsPerRun(100, func() { p.Parse(line, emit) }); n > 0 {
		t.Errorf("%v allocations per interval line", n)
	}
}

func BenchmarkInterval(b *testing.B) {
	p := NewParser()
	emit := func(*tool.Report) {}
	line := tool.Line{Text: []byte("15552 MariaDB tpm")}
	b.ReportAllocs()
	for b.Loop() {
		p.Parse(line, emit)
	}
}
