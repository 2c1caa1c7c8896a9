package figures

import (
	"fmt"
	"strings"
	"testing"
)

// ycsbTables are the tables of the article, one line per run: threads, rows, seconds, ops/s, reads,
// their mean in µs, inserts, their mean in µs.
var ycsbTables = map[string]string{
	"sharded": `
1 1000000 1199 833 599849 1151 400151 1262
10 1000000 145 6916 600565 1486 399435 1274
20 1000000 71 14097 598887 1357 401113 1377
20 1000000 105 9472 600002 1506 399998 1409
30 1000000 52 19102 599719 1495 400281 1521
50 1000000 52 19126 600574 2833 399426 1835
50 1000000 151 6596 600413 8572 399587 2526
50 1000000 173 5758 600193 9140 399807 2600
80 1000000 69 14470 599662 4440 400338 2553
100 1000000 42 23628 599939 3981 400061 3827
150 1000000 141 7066 599882 6373 400118 4007
150 1000000 45 21845 601056 5593 398944 4284
200 1000000 47 20879 599388 6972 400612 5275
300 1000000 81 12336 599795 10121 400205 8441`,
	"unsharded": `
100 1000000 189 5279 600016 7094 399984 2572
100 1000000 38 26168 600205 4076 399795 2696
150 1000000 39 25371 600090 5650 399910 5884
150 1000000 85 11764 599122 6058 400878 3877`,
}

// TestYCSB is two tables with a line for each run, since the repeats differ by factors.
func TestYCSB(t *testing.T) {
	l := newLab(t)
	want := map[string][]string{}
	for collection, rows := range ycsbTables {
		n := 0
		for line := range strings.Lines(strings.TrimSpace(rows)) {
			var threads, count, reads, inserts int
			var seconds, rate, read, insert float64
			if _, err := fmt.Sscan(line, &threads, &count, &seconds, &rate, &reads, &read, &inserts, &insert); err != nil {
				t.Fatal(err)
			}
			n++
			l.log(fmt.Sprintf("%s/workload_s6_run_%d.%d.result", collection, threads, n), `mongo client connection created with mongodb://127.0.0.1:27357/ycsb?w=1
[OVERALL], RunTime(ms), %.0f
[OVERALL], Throughput(ops/sec), %.1f
[READ], Operations, %d
[READ], AverageLatency(us), %.1f
[READ], MinLatency(us), 121
[READ], MaxLatency(us), 3321855
[READ], 95thPercentileLatency(us), %[5]d
[READ], 99thPercentileLatency(us), %[6]d
[READ], Return=OK, %[3]d
[CLEANUP], Operations, %[7]d
[CLEANUP], AverageLatency(us), 664.42
[CLEANUP], MinLatency(us), 0
[CLEANUP], MaxLatency(us), 66367
[CLEANUP], 95thPercentileLatency(us), 2
[CLEANUP], 99thPercentileLatency(us), 3
[INSERT], Operations, %[8]d
[INSERT], AverageLatency(us), %.1[9]f
[INSERT], MinLatency(us), 199
[INSERT], MaxLatency(us), 3340287
[INSERT], 95thPercentileLatency(us), %[10]d
[INSERT], 99thPercentileLatency(us), %[11]d
[INSERT], Return=OK, %[8]d
`, seconds*1000, rate, reads, read, int(read*3), int(read*5), threads, inserts, insert, int(insert*3), int(insert*5))
			want[collection] = append(want[collection], fmt.Sprintf("%d %.0f %.2f %d %.2f %d %.2f", threads, seconds, rate, reads, read/1000, inserts, insert/1000))
		}
	}
	l.run("runs", "import", "--label-from={collection}/workload_s6_run_{threads}.{repeat_of}.result", l.logs)
	for collection, lines := range want {
		command := []string{"compare", "collection=" + collection, "--x=threads", "--measure=duration,tps,read_count,read_avg,insert_count,insert_avg"}
		text := l.run(append(command, "--lines=run")...)
		for _, line := range lines {
			fields := strings.Fields(line)
			found := false
			for row := range strings.Lines(text) {
				f := strings.Fields(row)
				if len(f) == 8 && f[0] == fields[0] && near(f[2], fields[1]) && strings.Join(f[3:], " ") == strings.Join(fields[2:], " ") {
					found = true
				}
			}
			if !found {
				t.Errorf("no run %q in\n%s", line, text)
			}
		}
		// The other way: a line for each number of threads, with the extremes.
		spread := l.run(append(command, "--lines=collection")...)
		if collection == "sharded" {
			l.wants(spread, "threads duration s tps read count read avg ms insert count insert avg ms\n", "50 151.0 [52.00 … 173.0] 6596.00 [5758.00 … 19126.00] ")
		}
	}
	l.figure("ycsb-tps", "compare", "collection=sharded", "collection=unsharded", "--x=threads", "--lines=collection")
	l.figure("ycsb-read", "compare", "collection=sharded", "collection=unsharded", "--x=threads", "--lines=collection", "--measure=read_avg")
}

// near reports whether two numbers begin alike: 52.00 and 52.
func near(a, b string) bool { return strings.Split(a, ".")[0] == b }
