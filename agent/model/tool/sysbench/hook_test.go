package sysbench

import (
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

const (
	csv10  = "1,4,10.50,210.00,147.00,42.00,21.00,1.04,0.00,0.00"
	sample = `  {
    "time":    1,
    "threads": 4,
    "tps": 10.50,
    "qps": {
      "total": 210.00,
      "reads": 147.00,
      "writes": 42.00,
      "other": 21.00
    },
    "latency": 1.04,
    "errors": 0.00,
    "reconnects": 0.00
  }`
)

func csvAt(second string) string  { return second + csv10[1:] }
func jsonAt(second string) string { return replace(sample, "   1,", "   "+second+",") }

// total returns json10 as a summary.
func total(seconds int) string {
	s := replace(after(json10, seconds), `"kind":"interval"`, `"kind":"summary"`)
	s = replace(s, `"interval_seconds":1,`, "")
	return replace(s, `"phase":"measure",`, `"checkpoint":false,`)
}

func checkpointed(report string) string {
	return replace(report, `"checkpoint":false`, `"checkpoint":true`)
}

func TestHooks(t *testing.T) {
	withoutIntervals := lines("Running the test with following options:", "Number of threads: 4", "Threads started!")
	afterCheckpoint := replace(replace(sql10JSON, `"checkpoint":false`, `"checkpoint":true`), `2.0004,`, `2.0004,"interval_seconds":2.0004,`)
	for _, c := range []struct {
		name, input string
		want        []string
		malformed   int
	}{
		{"CSV for intervals", lines(banner10, options10+csv10, csvAt("2")) + sql10, []string{start10, json10, after(json10, 2), sql10JSON}, 0},
		{"JSON for intervals", lines(banner10, options10+"[", sample+",", jsonAt("2"), "]") + sql10, []string{start10, json10, after(json10, 2), sql10JSON}, 0},
		{"JSON of a process that was killed", lines(banner10, options10+"[", sample+",") + jsonAt("2"), []string{start10, json10, after(json10, 2)}, 0},
		{"what is printed next is glued to JSON",
			lines(banner10, options10+"[", sample+"FATAL: x", ",", jsonAt("2")+"[ 2s ] Checkpoint report:") + sql10 + lines(",", jsonAt("3")),
			[]string{start10, json10, `{"kind":"error","run":1,"message":"FATAL: x"}`, after(json10, 2), afterCheckpoint, after(json10, 3)}, 0},
		{"a damaged JSON object gives no report, its neighbours do",
			lines(banner10, options10+"[", sample+",", replace(jsonAt("2"), "210.00", "1e999")+",", replace(jsonAt("3"), `    "errors": 0.00,`+"\n", "")+",", replace(jsonAt("4"), "10.50", "10.5")+",", jsonAt("5")),
			[]string{start10, json10, after(json10, 5)}, 5},
		{"a key of JSON twice", lines(banner10, options10+"[", replace(sample, `"errors": 0.00,`, `"errors": 0.00,`+"\n"+`    "tps": 1.00,`)), []string{start10}, 2},
		{"interval lines between the lines of JSON",
			lines(banner10, options10+"[", replace(jsonAt("2"), `"qps": {`, `"qps": {`+"\n"+line10)),
			[]string{start10, json10, total(2)}, 0},
		{"CSV in place of the summary, no interval reports", lines(banner10, withoutIntervals+csvAt("9")), []string{start10, total(9)}, 0},
		{"JSON in place of the summary, no interval reports", lines(banner10, withoutIntervals+"[", jsonAt("9"), "]"), []string{start10, total(9)}, 0},
		{"CSV in place of the summary, usual intervals", lines(banner10, options10+line10, at(line10, 2), csvAt("3")), []string{start10, json10, after(json10, 2), total(3)}, 0},
		{"CSV for both", lines(banner10, options10+csv10, csvAt("2"), csvAt("2")), []string{start10, json10, after(json10, 2), total(2)}, 0},
		{"JSON for both", lines(banner10, options10+"[", sample+",", jsonAt("2"), "]", "[", jsonAt("2"), "]"), []string{start10, json10, after(json10, 2), total(2)}, 0},
		{"sysbench.report_default in place of the summary", lines(banner10, options10+line10, strings.Replace(at(line10, 2), "err/s:", "err/s", 1)), []string{start10, json10, total(2)}, 0},
		{"the same second twice, and then the run goes on", lines(banner10, options10+csv10, csv10, csvAt("2")),
			[]string{start10, json10, replace(json10, `"interval_seconds":1,`, ""), after(json10, 2)}, 0},
		{"the same second twice before the summary", lines(banner10, options10+csv10, csv10) + sql10,
			[]string{start10, json10, replace(json10, `"interval_seconds":1,`, ""), sql10JSON}, 0},
		{"each interval printed in two forms", lines(banner10, options10+line10, csv10, at(line10, 2), csvAt("2")) + sql10, []string{start10, json10, after(json10, 2), sql10JSON}, 0},
		{"each interval printed in two forms, no summary", lines(banner10, options10+line10, csv10, at(line10, 2), csvAt("2")), []string{start10, json10, after(json10, 2)}, 0},
		{"CSV in place of checkpoints and summary",
			lines(banner10, options10+line10, "[ 2s ] Checkpoint report:", csvAt("2"), at(line10, 2), at(line10, 3), csvAt("3")),
			[]string{start10, json10, checkpointed(total(2)), after(json10, 2), after(json10, 3), total(3)}, 0},
		{"an interval in CSV between a checkpoint's heading and its summary",
			lines(banner10, options10+csv10, "[ 2s ] Checkpoint report:", csvAt("2")) + sql10,
			[]string{start10, json10, after(json10, 2), afterCheckpoint}, 0},
		{"the next run in the same file", lines(banner10, withoutIntervals+csvAt("9"), banner10),
			[]string{start10, total(9), `{"kind":"start","run":2,"tool":"sysbench","tool_version":"1.0.20"}`}, 0},
		{"other tables", lines(banner10, options10+csv10, "1,2,3", "1,4,10.50", "1,4,1.5,x", "4.5,1,2"), []string{start10, json10}, 1},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.input, c.want, c.malformed) })
	}
}

// CSV and JSON don't name their percentile; the command line does.
func TestHookPercentile(t *testing.T) {
	outputs := map[string]string{
		"CSV":  lines(banner10, options10+csv10, banner10, options10+csv10),
		"JSON": lines(banner10, options10+"[", sample+",", "]", banner10, options10+"[", sample+",", "]"),
	}
	for _, c := range []struct {
		name, options, latency string
	}{
		{"default", "", `"latency_seconds":{"transaction":{"p95":0.00104}}`},
		{"asked for", "--percentile=99", `"latency_seconds":{"transaction":{"p99":0.00104}}`},
		{"switched off", "--percentile=0", ""},
		{"a list", "--percentile=99,95", `"latency_seconds":{"transaction":{"p95":0.00104}}`},
	} {
		d := Describe(tool.Invocation{Args: append(strings.Fields("oltp_read_write "+c.options), "run")})
		for form, text := range outputs {
			res := tooltest.ParseOf(Tool, d, tooltest.Lines(tool.Stdout, []byte(text)))
			intervals := 0
			for got := range strings.Lines(res.JSON()) {
				if !strings.Contains(got, `"kind":"interval"`) {
					continue
				}
				intervals++
				if has := strings.Contains(got, "latency"); has != (c.latency != "") || !strings.Contains(got, c.latency) {
					t.Errorf("%s, %s: %s", c.name, form, got)
				}
			}
			if intervals != 2 { // of two runs in one output
				t.Errorf("%s, %s: %d intervals", c.name, form, intervals)
			}
		}
	}
}

func TestRuns(t *testing.T) {
	const start = `{"kind":"start","run":1,"tool":"sysbench"}`
	second := func(report string) string { return replace(report, `"run":1,`, `"run":2,`) }
	without := func(report string) string { return replace(report, `"interval_seconds":1,`, "") }
	for _, c := range []struct {
		name, input string
		want        []string
		malformed   int
	}{
		{"nothing", "", nil, 0},
		{"other text", "+ sysbench oltp_read_write run\nsysbench 1.0.20\nsysbench is running\nthe end\n\n\x00\xff\n", nil, 0},
		{"a banner", lines(banner10), []string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20"}`}, 0},
		{"a banner of a development version with LuaJIT bundled", lines("sysbench 1.1.0-df89d34 (using bundled LuaJIT 2.1.0-beta2)", "sysbench v0.4.10:  multi-threaded system evaluation benchmark"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.1.0-df89d34"}`, `{"kind":"start","run":2,"tool":"sysbench","tool_version":"0.4.10"}`}, 0},
		{"an error before the number of threads is known", lines(banner04, "ALERT: x", "Number of threads: 4", "Threads started!", "OLTP test statistics:", "    deadlocks:                           1      (0.50 per sec.)"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"0.4.12"}`, `{"kind":"error","run":1,"message":"ALERT: x"}`,
				`{"kind":"summary","run":1,"threads":4,"checkpoint":false,"counts":{"error":1},"errors_per_second":0.5}`}, 0},
		{"a damaged number of threads", lines(banner10, "Number of threads: 4x", "Report intermediate results every x", "Threads started!"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20"}`}, 2},
		{"no banner, two runs one after the other, without summary", lines(line10, at(line10, 2), line10, at(line10, 2)),
			[]string{start, without(json10), after(json10, 2), second(start), second(without(json10)), second(after(json10, 2))}, 0},
		{"no banner, the second run is behind a summary", lines(at(line10, 10), at(line10, 20)) + sql10 + lines(at(line10, 20)),
			[]string{start, without(after(json10, 10)), replace(after(json10, 20), `"interval_seconds":1,`, `"interval_seconds":10,`), replace(sql10JSON, `"threads":4,`, ""), second(start), second(without(after(json10, 20)))}, 0},
		{"two processes that write into one file are not torn apart", lines(at(line10, 20), at(line10, 19), at(line10, 21), at(line10, 20)),
			[]string{start, without(after(json10, 20)), without(after(json10, 19)), replace(after(json10, 21), `"interval_seconds":1,`, `"interval_seconds":2,`), without(after(json10, 20))}, 0},
		{"no banner, but options", lines("Running the test with following options:", "Number of threads: 4", "Running the test with following options:", "Number of threads: 5"),
			[]string{replace(start, "}", `,"threads":4}`), second(replace(start, "}", `,"threads":5}`))}, 0},
		{"the head of the log is missing", lines(at(line10, 57), at(line10, 58)), []string{start, without(after(json10, 57)), after(json10, 58)}, 0},
		{"lines are missing behind the banner", lines(banner10, options10+at(line10, 57)), []string{start10, after(json10, 57)}, 0},
		{"prepare", lines(banner10, "", "Creating table 'sbtest1'...", "Inserting 20000 records into 'sbtest1'", "Creating a secondary index on 'sbtest1'..."),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20","command":"prepare"}`}, 0},
		{"a script that creates a table while it runs", lines(banner10, options10+"Creating table 'x'..."), []string{start10}, 0},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.input, c.want, c.malformed) })
	}
}
