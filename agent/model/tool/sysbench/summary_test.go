package sysbench

import (
	"testing"
)

const (
	fairnessLines = `
Threads fairness:
    events (avg/stddev):           2.0000/0.00
    execution time (avg/stddev):   2.0000/0.00
`
	latencyLines = `
Latency (ms):
         min:                                    0.07
         avg:                                    1.04
         max:                                  503.12
         95th percentile:                        1.23
` + fairnessLines
	latencyJSON = `"latency_seconds":{"transaction":{"min":0.00007,"avg":0.00104,"max":0.50312,"p95":0.00123}}`

	sql10 = `SQL statistics:
    queries performed:
        read:                            140
        write:                           40
        other:                           20
        total:                           200
    transactions:                        10     (5.00 per sec.)
    queries:                             200    (100.00 per sec.)
    ignored errors:                      1      (0.50 per sec.)
    reconnects:                          2      (1.00 per sec.)

General statistics:
    total time:                          2.0004s
    total number of events:              10
` + latencyLines
	sql10Values = `"rates":{"transaction":5,"query":100},"counts":{"transaction":10,"query":200,"read":140,"write":40,"other":20,"error":1,"reconnect":2},` +
		latencyJSON + `,"errors_per_second":0.5,"reconnects_per_second":1}`
	sql10JSON = `{"kind":"summary","run":1,"elapsed_seconds":2.0004,"threads":4,"checkpoint":false,` + sql10Values
)

func TestSummaries(t *testing.T) {
	const start = `{"kind":"start","run":1,"tool":"sysbench"}`
	for _, c := range []struct {
		name, input string
		want        []string
		malformed   int
	}{
		{"1.0", lines(banner10, options10) + sql10, []string{start10, sql10JSON}, 0},
		{
			"large counts keep one blank, none is lost",
			"SQL statistics:\n    transactions:                        1000000 (123456.78 per sec.)\n" + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"checkpoint":false,"rates":{"transaction":123456.78},"counts":{"transaction":1000000}}`}, 0,
		},
		{
			"fileio of 0.4.12: its requests and its volume per second",
			"Operations performed:  0 Read, 4096 Write, 4096 Other = 8192 Total\nRead 0b  Written 4Gb  Total transferred 4Gb  (91.604Mb/sec)\n   91.60 Requests/sec executed\n" +
				"\nTest execution summary:\n    total time:                          44.7140s\n    total number of events:              4096\n" + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":44.714,"checkpoint":false,"rates":{"transaction":91.6,"byte":96053755.904},` +
				`"counts":{"transaction":4096,"read":0,"write":4096,"fsync":4096}}`}, 0,
		},
		{
			"cpu of Apple's M1: the mean is the sum of all latencies over their number",
			"CPU speed:\n    events per second: 13373155.28\n\nGeneral statistics:\n    total time:                          10.0004s\n    total number of events:              133738547\n" +
				"\nLatency (ms):\n         min:                                    0.00\n         avg:                                    0.00\n         max:                                    0.26\n         sum:                                 3725.42\n" + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":10.0004,"checkpoint":false,"rates":{"transaction":13373155.28},"counts":{"transaction":133738547},` +
				`"latency_seconds":{"transaction":{"min":0,"avg":2.7855992782694133e-08,"max":0.00026}}}`}, 0,
		},
		{
			"cpu of 1.1: the number of events per second stands twice",
			"CPU speed:\n    events per second:   457.92\n\nThroughput:\n    events/s (eps):                      457.9199\n    time elapsed:                        5.0573s\n    total number of events:              2316\n" + latencyLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":5.0573,"checkpoint":false,"rates":{"transaction":457.92},"counts":{"transaction":2316},` + latencyJSON + `}`}, 0,
		},
		{
			"threads of 1.1",
			"\nThroughput:\n    events/s (eps):                      457.9199\n    time elapsed:                        5.0573s\n    total number of events:              2316\n" + latencyLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":5.0573,"checkpoint":false,"rates":{"transaction":457.9199},"counts":{"transaction":2316},` + latencyJSON + `}`}, 0,
		},
		{
			"threads and mutex of 1.0",
			"\nGeneral statistics:\n    total time:                          5.0573s\n    total number of events:              2316\n" + latencyLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":5.0573,"checkpoint":false,"counts":{"transaction":2316},` + latencyJSON + `}`}, 0,
		},
		{
			"fileio of 1.1 ends with its latencies",
			`
Throughput:
         read:  IOPS=11916.62 186.20 MiB/s (195.24 MB/s)
         write: IOPS=7944.41 124.13 MiB/s (130.16 MB/s)
         fsync: IOPS=796.01

Latency (ms):
         min:                                  0.00
         avg:                                  0.09
         max:                                108.38
         95th percentile:                      0.01
         sum:                               9931.39

FATAL: something else
`,
			[]string{start, `{"kind":"summary","run":1,"checkpoint":false,"rates":{"read":11916.62,"write":7944.41,"fsync":796.01,"read_byte":195244851.2,"write_byte":130159738.88},` +
				`"latency_seconds":{"transaction":{"min":0,"avg":0.00009,"max":0.10838,"p95":0.00001}}}`,
				`{"kind":"error","run":1,"message":"FATAL: something else"}`}, 0,
		},
		{
			"memory of 0.x",
			"Operations performed: 3439883 (842504.14 ops/sec)\n\n2.50 MB transferred (1.50 MB/sec)\n\n\nGeneral statistics:\n    total time:                          4.0826s\n    total number of events:              3439883\n    total time taken by event execution: 3.0070\n    response time:\n         min:                                  0.00ms\n         avg:                                  0.00ms\n         max:                                216.23ms\n         approx.  95th percentile:             0.00ms\n" + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":4.0826,"checkpoint":false,"rates":{"transaction":842504.14,"byte":1572864},"counts":{"transaction":3439883},"latency_seconds":{"transaction":{"min":0,"avg":0,"max":0.21623,"p95":0}}}`}, 0,
		},
		{
			"fileio of 0.4",
			"Operations performed:  316439 Read, 210961 Write, 10548 Other = 537948 Total\nRead 4.8285Gb  Written 3.219Gb  Total transferred 8.0475Gb  (2.0117Gb/sec)\n131840.77 Requests/sec executed\n\nTest execution summary:\n    total time:                          4.0003s\n    total number of events:              527400\n    total time taken by event execution: 1.7590\n    per-request statistics:\n         min:                            0.0001s\n         avg:                            0.0020s\n         max:                            1.5000s\n         approx.  95 percentile:         0.0030s\n" + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":4.0003,"checkpoint":false,"rates":{"transaction":131840.77,"byte":2160046427.3408},"counts":{"transaction":527400,"read":316439,"write":210961,"fsync":10548},"latency_seconds":{"transaction":{"min":0.0001,"avg":0.002,"max":1.5,"p95":0.003}}}`}, 0,
		},
		{
			"no event ended: there are no latencies",
			"SQL statistics:\n    transactions:                        0      (0.00 per sec.)\n\nGeneral statistics:\n    total time:                          4.0003s\n    total number of events:              0\n\nLatency (ms):\n         min:                            18446744073709.55\n         avg:                                    0.00\n         max:                                    0.00\n         95th percentile:                        0.00\n" + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"elapsed_seconds":4.0003,"checkpoint":false,"rates":{"transaction":0},"counts":{"transaction":0}}`}, 0,
		},
		{
			"a division by zero is no rate",
			"SQL statistics:\n    transactions:                        0      (-nan per sec.)\n    queries:                             1      (inf per sec.)\n" + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"checkpoint":false,"counts":{"transaction":0,"query":1}}`}, 0,
		},
		{
			"damaged lines are left out, their neighbours are not",
			`SQL statistics:
    queries performed:
        read:                            140
        write:                           4FATAL: x
        other:                           20
    transactions:                        10     (5.00 per
    queries:                             200    (1e9.00 per sec.)
    ignored errors:                      99999999999999999999999 (0.50 per sec.)
    reconn
    total time:                          2.0s
` + fairnessLines,
			[]string{start, `{"kind":"summary","run":1,"checkpoint":false,"counts":{"read":140,"other":20}}`}, 6,
		},
		{
			"a summary that is cut off is reported as far as it goes",
			"SQL statistics:\n    queries performed:\n        read:                            140\n",
			[]string{start, `{"kind":"summary","run":1,"checkpoint":false,"counts":{"read":140}}`}, 0,
		},
		{
			"a heading without values is no summary",
			lines(banner10, "General statistics:", "Threads fairness:"),
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"1.0.20"}`}, 0,
		},
		{
			"messages and intervals may stand in a summary",
			lines(banner10, options10+"SQL statistics:", "    transactions:                        10     (5.00 per sec.)", "FATAL: x", line10, "    queries:                             200    (100.00 per sec.)") + fairnessLines,
			[]string{start10, `{"kind":"error","run":1,"message":"FATAL: x"}`, json10,
				`{"kind":"summary","run":1,"threads":4,"checkpoint":false,"rates":{"transaction":5,"query":100},"counts":{"transaction":10,"query":200}}`}, 0,
		},
		{
			"forced shutdown",
			"FATAL: The --max-time limit has expired, forcing shutdown...\nSQL statistics:\n    transactions:                        10     (5.00 per sec.)\n\nNumber of unfinished transactions on forced shutdown: 4\n\nGeneral statistics:\n    total time:                          2.0004s\n    total number of events:              10\n" + latencyLines,
			[]string{start, `{"kind":"error","run":1,"message":"FATAL: The --max-time limit has expired, forcing shutdown..."}`,
				`{"kind":"summary","run":1,"elapsed_seconds":2.0004,"checkpoint":false,"rates":{"transaction":5},"counts":{"transaction":10},` + latencyJSON + `}`}, 0,
		},
		{
			"indented lines outside of a summary are nothing",
			"    transactions:                        10     (5.00 per sec.)\n        read:                            140\n   \n",
			nil, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.input, c.want, c.malformed) })
	}
}

func TestCheckpoints(t *testing.T) {
	const summary05 = `OLTP test statistics:
    transactions:                        10     (5.00 per sec.)

General statistics:
    total time:                          2.0004s
    total number of events:              10
    response time:
` + fairnessLines
	const values05 = `"checkpoint":%s,"rates":{"transaction":5},"counts":{"transaction":10}}`
	for _, c := range []struct {
		name, input string
		want        []string
	}{
		{
			"1.x: the interval goes on, its latency is gone",
			lines(banner10, options10+line10, "[ 2s ] Checkpoint report:") + sql10 +
				lines("[ 2s ] thds: 4 tps: 10.50 qps: 210.00 (r/w/o: 147.00/42.00/21.00) lat (ms,95%): 0.00 err/s: 0.00 reconn/s: 0.00") + sql10,
			[]string{start10, json10,
				`{"kind":"summary","run":1,"elapsed_seconds":2.0004,"interval_seconds":2.0004,"threads":4,"checkpoint":true,` + sql10Values,
				`{"kind":"interval","run":1,"elapsed_seconds":2,"interval_seconds":1,"threads":4,"phase":"measure",` +
					`"rates":{"transaction":10.5,"query":210,"read":147,"write":42,"other":21},"errors_per_second":0,"reconnects_per_second":0}`,
				`{"kind":"summary","run":1,"elapsed_seconds":2.0004,"interval_seconds":0,"threads":4,"checkpoint":false,` + sql10Values},
		},
		{
			"0.5: counting begins anew, the next interval is of unknown length",
			lines(banner05, options10+line05, "[   2s] Checkpoint report:") + summary05 + lines(at(line05, 2), at(line05, 3)) + summary05,
			[]string{`{"kind":"start","run":1,"tool":"sysbench","tool_version":"0.5","threads":4}`, json05,
				`{"kind":"summary","run":1,"elapsed_seconds":2.0004,"interval_seconds":2.0004,"threads":4,` + sprintf(values05, "true"),
				replace(after(json05, 2), `"interval_seconds":1,`, ``), after(json05, 3),
				`{"kind":"summary","run":1,"elapsed_seconds":2.0004,"interval_seconds":2.0004,"threads":4,` + sprintf(values05, "false")},
		},
		{
			"an interval may come between the heading and the summary",
			lines(banner10, options10+"[ 1s ] Checkpoint report:", line10) + sql10,
			[]string{start10, json10, `{"kind":"summary","run":1,"elapsed_seconds":2.0004,"interval_seconds":2.0004,"threads":4,"checkpoint":true,` + sql10Values},
		},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.input, c.want, 0) })
	}
}

// TestTransactionsOf05 guards the difference between a workload without COMMIT, which appears to
// have no transactions, and a workload that has none at the moment.
func TestTransactionsOf05(t *testing.T) {
	line := func(seconds int, tps, reads, writes, latency string) string {
		return sprintf("[%4ds] threads: 1, tps: %s, reads: %s, writes: %s, response time: %sms (95%%), errors: 0.00, reconnects:  0.00", seconds, tps, reads, writes, latency)
	}
	report := func(seconds int, length, transactions, reads, writes, queries, latency string) string {
		s := sprintf(`{"kind":"interval","run":1,"elapsed_seconds":%d,%s"threads":1,"phase":"measure","rates":{"transaction":%s,"read":%s,"write":%s,"query":%s},`, seconds, length, transactions, reads, writes, queries)
		if latency != "" {
			s += `"latency_seconds":{"transaction":{"p95":` + latency + `}},`
		}
		return s + `"errors_per_second":0,"reconnects_per_second":0}`
	}
	const second = `"interval_seconds":1,`
	const start = `{"kind":"start","run":1,"tool":"sysbench","tool_version":"0.5"}`
	const nothing = `OLTP test statistics:
    transactions:                        0      (0.00 per sec.)
    read/write requests:                 70     (35.10 per sec.)
    other operations:                    0      (0.00 per sec.)

General statistics:
    total number of events:              %s
` + fairnessLines
	const summary = `{"kind":"summary","run":1,"checkpoint":false,"rates":{"transaction":%s,"other":0},"counts":{"transaction":%s,"other":0}}`
	for _, c := range []struct {
		name, input string
		want        []string
	}{
		{
			"no COMMIT at all",
			lines(banner05, line(1, "0.00", "10.10", "25.20", "2.00"), line(2, "0.00", "10.00", "0.00", "0.00")) + sprintf(nothing, "70"),
			[]string{start, report(1, "", "35.3", "10.1", "25.2", "35.3", "0.002"), report(2, second, "10", "10", "0", "10", ""), sprintf(summary, "35.1", "70")},
		},
		{
			"no COMMIT, nothing but a summary",
			lines(banner05) + sprintf(nothing, "70"),
			[]string{start, sprintf(summary, "35.1", "70")},
		},
		{
			"no event of a transactional workload has ended yet",
			lines(banner05, line(1, "0.00", "10.00", "5.00", "0.00"), line(2, "1.00", "10.00", "5.00", "900.00"), line(3, "0.00", "10.00", "5.00", "0.00"), line(4, "0.00", "10.00", "5.00", "1.00")),
			[]string{start, report(1, "", "0", "10", "5", "15", ""), report(2, second, "1", "10", "5", "15", "0.9"), report(3, second, "0", "10", "5", "15", ""), report(4, second, "0", "10", "5", "15", "0.001")},
		},
		{
			"a summary before the first event ended",
			lines(banner05) + sprintf(nothing, "0"),
			[]string{start, sprintf(summary, "0", "0")},
		},
		{
			"behind a checkpoint the latency proves nothing",
			lines(banner05, "[   1s] Checkpoint report:", line(1, "0.00", "10.00", "5.00", "9.00"), line(2, "0.00", "10.00", "5.00", "9.00")),
			[]string{start, report(1, "", "0", "10", "5", "15", "0.009"), report(2, second, "15", "10", "5", "15", "0.009")},
		},
		{
			"0.4 counts transactions itself",
			lines(banner04, "[   1s] threads: 1, tps: 0.00, reads/s: 10.00, writes/s: 5.00 response time: 1.00ms (95%)", "[   2s] threads: 1, tps: 0.00, reads/s: 10.00, writes/s: 5.00 response time: 1.00ms (95%)") + sprintf(nothing, "1"),
			[]string{replace(start, `"0.5"`, `"0.4.12"`),
				replace(report(1, "", "0", "10", "5", "15", "0.001"), `,"errors_per_second":0,"reconnects_per_second":0`, ""),
				replace(report(2, second, "0", "10", "5", "15", "0.001"), `,"errors_per_second":0,"reconnects_per_second":0`, ""),
				sprintf(summary, "0", "0")},
		},
		{
			"early 2011: the line has no latency",
			lines(banner05, "[   1s] threads: 1, tps: 0.00, reads/s: 10.00, writes/s: 5.00"),
			[]string{start, `{"kind":"interval","run":1,"elapsed_seconds":1,"threads":1,"phase":"measure","rates":{"transaction":15,"read":10,"write":5,"query":15}}`},
		},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.input, c.want, 0) })
	}
}
