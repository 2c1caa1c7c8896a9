package figures

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// tidbTables are the tables of the article: threads, tps, qps, min, avg, 95th, max.
var tidbTables = map[string]string{
	"oltp_point_select": `
64 148098.00 148098.00 0.26 0.43 0.52 276.54
128 257760.00 257760.00 0.27 0.50 0.65 261.51
256 343215.00 343215.00 0.28 0.75 1.89 253.23
512 448683.00 448683.00 0.29 1.14 3.55 290.85
1024 567063.00 567063.00 0.30 1.80 5.57 70.21
2048 663217.00 663217.00 0.29 3.08 8.90 330.19
4096 736094.00 736094.00 0.33 5.55 15.00 431.72`,
	"oltp_read_only": `
64 5984.48 95751.60 7.87 10.69 14.21 85.24
128 9741.39 155862.00 7.64 13.14 18.28 236.37
256 13080.20 209284.00 9.22 19.56 28.16 99.79
512 15678.40 250854.00 10.40 32.62 49.34 115.78
1024 17691.40 283063.00 10.87 57.73 87.56 378.12
2048 19086.60 305386.00 7.68 107.12 164.45 710.91`,
	"oltp_update_index": `
64 19232.10 19232.10 1.75 3.33 4.74 274.86
128 25898.20 25898.20 1.67 4.94 7.98 330.88
256 31214.00 31214.00 1.67 8.20 14.73 5189.46
512 36213.50 36213.50 1.74 14.13 27.66 5487.91
1024 40731.20 40731.20 1.74 25.12 52.89 7395.50
2048 44423.50 44423.50 1.77 46.04 99.33 5563.36`,
	"oltp_write_only": `
64 7882.92 47297.50 3.05 8.12 12.52 341.78
128 9780.01 58680.10 3.07 13.08 21.50 504.41
256 11450.20 68701.20 3.12 22.34 36.89 6874.97
512 13330.00 79979.20 3.04 38.39 65.65 6316.33
1024 14761.20 88567.40 3.30 68.39 118.92 5426.65
2048 16825.20 100951.00 3.25 121.50 223.34 5551.31`,
	"oltp_read_write": `
64 2698.01 53960.20 13.91 23.72 29.72 321.56
128 4066.40 81328.10 12.19 31.47 42.85 411.31
256 4915.23 98304.50 12.94 52.06 70.55 626.57
512 5988.96 119779.00 12.99 85.42 121.08 5023.20
1024 7260.19 145204.00 13.25 140.67 196.89 5767.52
2048 8228.84 164577.00 13.96 248.19 376.49 5475.98`,
}

// sysbench10 is the summary of sysbench 1.0.
func sysbench10(threads int, seconds, tps, qps, least, avg, p95, most float64) string {
	return fmt.Sprintf(`sysbench 1.0.14 (using system LuaJIT 2.1.0-beta2)

Running the test with following options:
Number of threads: %d
Report intermediate results every 10 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

SQL statistics:
    queries performed:
        read:                            %.0[2]f
        write:                           0
        other:                           0
        total:                           %.0[2]f
    transactions:                        %.0[3]f (%.2[4]f per sec.)
    queries:                             %.0[2]f (%.2[5]f per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          %.4[6]fs
    total number of events:              %.0[3]f

Latency (ms):
         min:                                 %.2[7]f
         avg:                                 %.2[8]f
         max:                                 %.2[9]f
         95th percentile:                     %.2[10]f
         sum:                                 %.2[11]f

Threads fairness:
    events (avg/stddev):           100.0000/1.00
    execution time (avg/stddev):   59.9461/0.00
`, threads, qps*seconds, tps*seconds, tps, qps, seconds, least, avg, most, p95, avg*tps*seconds)
}

// tidbServers are loaded at the same time, by a generator each; the article adds their results.
const tidbServers = 6

// part is a generator's part of a number with two decimals; all parts add up to the number.
func part(whole float64, generator int) float64 {
	each := math.Round(whole*100/tidbServers) / 100
	if generator < tidbServers-1 {
		return each
	}
	return whole - each*(tidbServers-1)
}

// wantsNumbers fails unless the text has a line of these numbers. The counts in the logs are whole numbers, so rates
// may differ accordingly.
func (l *lab) wantsNumbers(text, row string) {
	l.Helper()
	want := strings.Fields(row)
	for line := range strings.Lines(text) {
		got := strings.Fields(line)
		same := len(got) == len(want)
		for i := 0; same && i < len(want); i++ {
			a, err1 := strconv.ParseFloat(got[i], 64)
			b, err2 := strconv.ParseFloat(want[i], 64)
			same = err1 == nil && err2 == nil && math.Abs(a-b) <= 0.06
		}
		if same {
			return
		}
	}
	l.Errorf("no line %q in\n%s", row, text)
}

// TestTiDB is five tables of all statistics over threads, and a chart with each. Each run is a group: one
// generator for each server.
func TestTiDB(t *testing.T) {
	l := newLab(t)
	for workload, rows := range tidbTables {
		for line := range strings.Lines(strings.TrimSpace(rows)) {
			var threads int
			var tps, qps, least, avg, p95, most float64
			if _, err := fmt.Sscan(line, &threads, &tps, &qps, &least, &avg, &p95, &most); err != nil {
				t.Fatal(err)
			}
			for generator := range tidbServers {
				own := threads / tidbServers
				if generator == tidbServers-1 {
					own = threads - own*(tidbServers-1)
				}
				// One has the extremes; the others are a little better.
				low, high, late := least*1.5, most*0.9, p95*0.95
				if generator == 1 {
					low, high, late = least, most, p95
				}
				l.log(fmt.Sprintf("%s/%d/tidb%d.log", workload, threads, generator), "%s", sysbench10(own, 60, part(tps, generator), part(qps, generator), low, avg, late, high))
			}
		}
	}
	l.run("runs", "import", "--label-from={workload}/*/tidb{generator}.log", l.logs)
	for workload, rows := range tidbTables {
		command := []string{"compare", "workload=" + workload, "--x=threads"}
		text := l.run(append(command, "--measure=tps,qps,min,avg,p95,max")...)
		l.wants(text, "threads tps qps min ms avg ms worst generator's p95 ms max ms\n")
		for row := range strings.Lines(strings.TrimSpace(rows)) {
			l.wantsNumbers(text, row)
		}
		l.figure("tidb-"+workload, command...)
		l.figure("tidb-"+workload+"-p95", append(command, "--measure=p95")...)
	}
}
