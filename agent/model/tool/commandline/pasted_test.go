package commandline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

func TestPasted(t *testing.T) {
	for line, want := range map[string]string{
		"sysbench oltp_read_only --threads=8 --tables=4 run":                               "run oltp_read_only 8",
		"[root@db1 ~]# sysbench oltp_read_only --threads=8 run >out.log 2>&1":              "run oltp_read_only 8",
		"ubuntu@ip-10-0-0-1:~/sysbench $ sudo sysbench cpu --threads=2 run":                "run cpu 2",
		"+ /usr/bin/sysbench fileio --file-test-mode=rndrd --num-threads=4 run | tee x":    "run fileio 4",
		"`sysbench oltp_read_only --threads=8 run`":                                        "run oltp_read_only 8",
		"PS C:\\> sysbench.exe oltp_read_only --threads=8 run":                             "run oltp_read_only 8",
		"docker exec -it db sysbench oltp_read_only --threads=8 --mysql-password=Geh1 run": "run oltp_read_only 8",
		"sysbench oltp_read_only --threads=$n run":                                         "",
		"sysbench oltp_read_only --threads=<n> run":                                        "",
		"Use sysbench with --threads, which is better.":                                    "",
		"for n in 1 2; do sysbench oltp_read_only --threads=$n run; done":                  "",
		"echo it's broken": "",
		"pgbench -c 4":     "",
	} {
		got := ""
		if d, ok := commandline.Pasted(registry.Tools.ByName("sysbench"), line); ok {
			got = strings.Join([]string{d.Command, d.Workload, fmt.Sprint(d.Threads)}, " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestPastedCommands guards that a command before the output of a run completes its facts, and contradicts none.
func TestPastedCommands(t *testing.T) {
	const header = "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 8\n\nThreads started!\n\n"
	const interval = "[ 1s ] thds: 8 tps: 200.00 qps: 4000.00 (r/w/o: 2800.00/800.00/400.00) lat (ms,95%): 5.00 err/s: 0.00 reconn/s: 0.00\n"
	for _, test := range []struct{ name, log, want string }{
		{"one", "$ sysbench oltp_read_write --tables=10 --threads=8 run\n" + header + interval, "oltp_read_write 8 tables=10"},
		{"over several lines", "$ sysbench oltp_read_write \\\n  --tables=10 --mysql-password=Geh1 \\\n --threads=8 run\n" + header + interval, "oltp_read_write 8 tables=10"},
		{"of another number of threads", "$ sysbench oltp_read_write --threads=16 --tables=10 run\n" + header + interval, " 8 "},
		{"of a preparation", "$ sysbench oltp_read_write --threads=8 prepare\n" + header + interval, " 8 "},
		{"after the preparation", "$ sysbench oltp_read_write --threads=8 prepare\n$ sysbench oltp_read_write --threads=8 run\n" + header + interval, "oltp_read_write 8 "},
		{"one of two", "$ sysbench oltp_read_write --threads=8 run\n$ sysbench oltp_read_only --threads=8 run\n" + header + interval, " 8 "},
		{"far above", "$ sysbench oltp_read_write --threads=8 run\n" + strings.Repeat("text\n", 30) + header + interval, " 8 "},
		{"only of the first run", "$ sysbench oltp_read_write --threads=8 run\n" + header + interval + header + interval, "oltp_read_write 8 ; 8 "},
		{"a line without a header", "$ sysbench oltp_read_write --threads=8 run\n" + interval, "oltp_read_write 8 "},
	} {
		var got []string
		p := registry.Tools.ByName("sysbench").NewFront(tool.Description{}).Parser()
		tool.ParseAll(p, tool.Stdout, []byte(test.log), func(r *tool.Report) {
			if r.Kind != tool.Start {
				return
			}
			var labels []string
			for _, l := range r.Labels {
				labels = append(labels, l.Name+"="+l.Value)
			}
			slices.Sort(labels)
			got = append(got, fmt.Sprintf("%s %d %s", r.Workload, r.Threads.Value, strings.Join(labels, " ")))
		})
		if text := strings.Join(got, ";"); text != test.want {
			t.Errorf("%s: %q, want %q", test.name, text, test.want)
		}
	}
}
