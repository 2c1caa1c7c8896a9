// Package figures draws the tables and charts of five published articles, each with one command,
// from logs in the authors' form. The numbers stated in an article are in the logs, so that the
// tables can be compared with it; other numbers have the stated shapes. The recorded values of
// servers come from real runs.
//
// `go test ./tests/figures -keep DIR` keeps the figures in a folder for inspection.
package figures

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/app/cli"
)

var keep = flag.String("keep", "", "folder for the figures")

// lab is a data directory with the runs of an article.
type lab struct {
	*testing.T
	logs, data string
}

func newLab(t *testing.T) *lab {
	return &lab{t, t.TempDir(), t.TempDir()}
}

// log writes a file of a tool.
func (l *lab) log(path, format string, args ...any) {
	l.Helper()
	path = filepath.Join(l.logs, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o644); err != nil {
		l.Fatal(err)
	}
}

// run runs a command on the data directory and returns what it prints.
func (l *lab) run(args ...string) string {
	l.Helper()
	var out, messages bytes.Buffer
	if status := cli.Main(append(args, "--data-dir="+l.data), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &messages}); status != 0 {
		l.Fatalf("%s: exit status %d: %s", strings.Join(args, " "), status, messages.String())
	}
	return out.String()
}

// figure draws a chart under a name.
func (l *lab) figure(name string, args ...string) {
	l.Helper()
	drawn := l.run(append(args, "--format=svg")...)
	if *keep != "" {
		if err := os.WriteFile(filepath.Join(*keep, name+".svg"), []byte(drawn), 0o644); err != nil {
			l.Fatal(err)
		}
	}
}

// table returns what a command prints as CSV: the points by line and place.
func (l *lab) table(args ...string) map[string]map[string]string {
	l.Helper()
	lines, err := csv.NewReader(strings.NewReader(l.run(append(args, "--format=csv")...))).ReadAll()
	if err != nil {
		l.Fatal(err)
	}
	all := map[string]map[string]string{}
	for _, fields := range lines[1:] {
		key := fields[1] + " " + fields[2]
		if all[key] == nil {
			all[key] = map[string]string{}
		}
		all[key][fields[0]] = fields[5] // the mean
	}
	return all
}

// wants fails unless the text has a line that begins with these fields.
func (l *lab) wants(text string, lines ...string) {
	l.Helper()
	squeezed := "\n"
	for line := range strings.Lines(text) {
		squeezed += strings.Join(strings.Fields(line), " ") + "\n"
	}
	for _, line := range lines {
		if !strings.Contains(squeezed, "\n"+line) {
			l.Errorf("no line %q in\n%s", line, text)
		}
	}
}

// sysbench04 is the summary of sysbench 0.4.12 of one kind of statement.
func sysbench04(threads int, qps, avg float64) string {
	return fmt.Sprintf(`sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: %d

Doing OLTP test.
Running non-transactional test
Maximum number of requests for OLTP test is limited to 80000
Threads started!
Done.

OLTP test statistics:
    queries performed:
        read:                            80004
        write:                           0
        other:                           0
        total:                           80004
    transactions:                        80004  (%.2[2]f per sec.)
    deadlocks:                           0      (0.00 per sec.)
    read/write requests:                 80004  (%.2[2]f per sec.)
    other operations:                    0      (0.00 per sec.)

Test execution summary:
    total time:                          %.4[3]fs
    total number of events:              80004
    total time taken by event execution: 48.7082
    per-request statistics:
         min:                                  0.03ms
         avg:                               %.2[4]fms
         max:                                435.47ms
         approx.  95 percentile:            %.2[5]fms

Threads fairness:
    events (avg/stddev):           20001.0000/2080.87
    execution time (avg/stddev):   12.1770/0.00
`, threads, qps, 80004/qps, avg, 2.5*avg)
}

// sysbench05 is the output of sysbench 0.5 and its oltp.lua: a line of the intervals, and the summary of
// a run with these queries per second, two of which in each transaction are BEGIN and COMMIT.
func sysbench05(threads int, seconds, tps, qps, avg float64) string {
	transactions, others := tps*seconds, 2*tps*seconds
	statements := qps*seconds - others
	return fmt.Sprintf(`sysbench 0.5:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: %d
Report intermediate results every 10 second(s)
Random number generator seed is 0 and will be ignored


Initializing worker threads...

Threads started!

[  10s] threads: %[1]d, tps: %.2[2]f, reads: %.2[3]f, writes: 0.00, response time: %.2[4]fms (95%%), errors: 0.00, reconnects:  0.00
[  20s] threads: %[1]d, tps: %.2[2]f, reads: %.2[3]f, writes: 0.00, response time: %.2[4]fms (95%%), errors: 0.00, reconnects:  0.00
OLTP test statistics:
    queries performed:
        read:                            %.0[5]f
        write:                           0
        other:                           %.0[6]f
        total:                           %.0[7]f
    transactions:                        %.0[8]f   (%.2[2]f per sec.)
    read/write requests:                 %.0[5]f  (%.2[3]f per sec.)
    other operations:                    %.0[6]f   (%.2[9]f per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          %.4[10]fs
    total number of events:              %.0[8]f
    total time taken by event execution: %.4[11]fs
    response time:
         min:                                  1.26ms
         avg:                                 %.2[12]fms
         max:                                %.2[13]fms
         approx.  95 percentile:              %.2[4]fms

Threads fairness:
    events (avg/stddev):           505.2500/87.55
    execution time (avg/stddev):   10.0295/0.01

`, threads, tps, statements/seconds, 2*avg, statements, others, statements+others, transactions, 2*tps, seconds, avg*tps*seconds/1000, avg, 3*avg)
}

// TestAtlas is a proxy against the server: eight tables and eight charts, means of three
// runs.
func TestAtlas(t *testing.T) {
	l := newLab(t)
	limit := map[string]float64{"select": 30000, "update": 9000, "insert": 11000}
	through := map[string]float64{"select": 0.6, "update": 0.8, "insert": 0.8}
	for kind, most := range limit {
		for repeat := range 3 {
			noise := 1 + 0.02*float64(repeat-1)
			for _, threads := range []int{1, 16, 32, 64, 128} {
				n := float64(threads)
				direct := most * n / (n + 8) * noise
				atlas := direct * through[kind] * n / (n + 1.5)
				for via, qps := range map[string]float64{"direct": direct, "atlas": atlas} {
					l.log(fmt.Sprintf("proxy/%s/%s/-/%d.%d.log", via, kind, threads, repeat), "%s", sysbench04(threads, qps, 1000*n/qps))
				}
				if threads < 16 {
					continue
				}
				for events, gain := range map[int]float64{4: 0.7, 8: 0.99, 16: 1.05} {
					l.log(fmt.Sprintf("events/atlas/%s/%d/%d.%d.log", kind, events, threads, repeat), "%s", sysbench04(threads, atlas*gain, 1000*n/atlas))
				}
			}
		}
	}
	l.run("runs", "import", "--label-from={part}/{via}/{statement}/{event_threads}/*.log", l.logs)
	for measure, number := range map[string]int{"qps": 1, "avg": 2} {
		command := []string{"compare", "part=proxy,via=direct", "part=proxy,via=atlas", "--x=threads", "--lines=statement", "--measure=" + measure, "--mean"}
		got := l.table(command...)
		if len(got) != 5*6 {
			t.Errorf("table %d has %d cells", number, len(got))
		}
		l.figure(fmt.Sprintf("atlas-%d", number), command...)
	}
	proxy := l.run("compare", "part=proxy,via=direct", "part=proxy,via=atlas", "--x=threads", "--lines=statement", "--measure=qps", "--mean", "--format=text")
	l.wants(proxy, "threads via=direct, insert via=direct, select via=direct, update via=atlas, insert ", "128 10352.93 [10145.84 … 10560.05] 28235.27 [")
	ratio := l.run("compare", "part=proxy,via=direct", "part=proxy,via=atlas")
	l.wants(ratio, "threads statement measure via=direct via=atlas ratio difference", "128 select tps 28235 [27671 … 28800] n=3 16745 [16410 … 17080] n=3 0.593")
	number := 3
	for _, kind := range []string{"select", "update", "insert"} {
		for _, measure := range []string{"qps", "avg"} {
			command := []string{"compare", "part=events,statement=" + kind, "--x=threads", "--lines=event_threads", "--measure=" + measure, "--mean"}
			if got := l.table(command...); len(got) != 4*3 || got["event_threads 8 16"] == nil {
				t.Errorf("table %d: %v", number, got)
			}
			l.figure(fmt.Sprintf("atlas-%d", number), command...)
			number++
		}
	}
	text := l.run("compare", "part=events,statement=select", "--x=threads", "--lines=event_threads", "--measure=qps", "--mean")
	l.wants(text, "threads event_threads 4 event_threads 8 event_threads 16\n", "16 7680.00 [7526.39 … 7833.62] 10861.69 [")
}
