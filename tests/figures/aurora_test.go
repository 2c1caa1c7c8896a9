package figures

import (
	"fmt"
	"strings"
	"testing"
)

// auroraTables are the tables of the article by workload and engine: concurrency, thousand queries
// per second, CPU in %, mean time in ms.
var auroraTables = map[string]string{
	"ro/mysql":  "400 112 98 39.27, 1000 108 99 103.08, 2000 95 99 230.70, 3000 88 99 365.23, 4000 44 90 974.83, 5000 17 57 4106.50, 6000 8.9 39 8076.35",
	"ro/aurora": "400 440 90 11.71, 1000 680 96 19.12, 2000 776 97 33.10, 3000 748 98 51.32, 4000 726 98 72.03, 5000 683 98 93.36, 6000 659 98 114.96",
	"rw/mysql":  "400 84 75 68.94, 1000 88 81 168.17, 2000 76 90 384.80, 3000 56 69 778.60, 4000 29 73 2073.83, 5000 28 81 2569.24, 6000 16 87 5815.39",
	"rw/aurora": "400 160 77 38.89, 1000 188 92 81.51, 2000 184 97 163.37, 3000 172 97 259.77, 4000 152 98 391.70, 5000 140 98 534.18, 6000 128 98 638.33",
}

// TestAurora is four generators as one run, the servers' CPU beside what the generators
// report, and settings across the top.
func TestAurora(t *testing.T) {
	l := newLab(t)
	for path, cells := range auroraTables {
		for cell := range strings.SplitSeq(cells, ", ") {
			var threads int
			var qps, busy, avg float64
			if _, err := fmt.Sscan(cell, &threads, &qps, &busy, &avg); err != nil {
				t.Fatal(err)
			}
			for generator := range 4 {
				tps := float64(threads) / avg * 1000 / 4
				l.log(fmt.Sprintf("%s/%d/client%d.log", path, threads, generator), "%s", sysbench05(threads/4, 300, tps, qps*1000/4, avg))
			}
			line := fmt.Sprintf(" 9  0      0 551396 1342476 20227152    0    0   180   128 6174 14193 %.0f  0 %.0f  0  0\n", busy, 100-busy)
			l.log(fmt.Sprintf("%s/%d/vmstat.txt", path, threads), "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"+
				" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n%s", strings.Repeat(line, 6))
		}
	}
	l.run("runs", "import", "--label-from={workload}/{engine}/*/client{generator}.log", "--label=suite=aurora", l.logs)
	for workload, rows := range map[string][]string{
		"ro": {"measure threads → 400 1000 2000 3000 4000 5000 6000\n",
			"qps engine=mysql 112000.00 108000.00 95000.00 88000.00 44000.00 17000.00 8900.00\n",
			"qps engine=aurora 440000.00 680000.00 776000.00 748000.00 726000.00 683000.00 659000.00\n",
			"cpu % engine=mysql 98.00 99.00 99.00 99.00 90.00 57.00 39.00\n",
			"avg ms engine=aurora 11.71 19.12 33.10 51.32 72.03 93.36 114.96\n"},
		"rw": {"qps engine=mysql 84000.00 88000.00 76000.00 56000.00 29000.00 28000.00 16000.00\n",
			"cpu % engine=aurora 77.00 92.00 97.00 97.00 98.00 98.00 98.00\n",
			"avg ms engine=mysql 68.94 168.17 384.80 778.60 2073.83 2569.24 5815.39\n"},
	} {
		command := []string{"compare", "workload=" + workload + ",engine=mysql", "workload=" + workload + ",engine=aurora", "--x=threads"}
		l.wants(l.run(append(command, "--measure=qps,cpu,avg")...), rows...)
		l.figure("aurora-"+workload, append(command, "--measure=qps")...)
	}
}
