package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const smallLog = `sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 16

Threads started!

SQL statistics:
    transactions:                        %d   (100.00 per sec.)

General statistics:
    total time:                          3.0000s
    total number of events:              %[1]d

Threads fairness:
    events (avg/stddev):           1885.0000/8.89
    execution time (avg/stddev):   3.0/0.00
`

// importAllocations imports n logs from a folder and returns what that allocates for each of
// them: operations on names and files allocate, and these are counted, not timed.
func importAllocations(t *testing.T, n int, write func(folder string, i int)) float64 {
	t.Helper()
	folder, data := t.TempDir(), t.TempDir()
	for i := range n {
		write(folder, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if status := Main([]string{"runs", "import", "--data-dir=" + data, folder}, Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}

// A log costs the same in a large folder as in a small one.
func TestImportIsLinear(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	put := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, write := range map[string]func(folder string, i int){
		"one folder, with a monitor log and a dump each": func(folder string, i int) {
			put(fmt.Sprintf("%s/run-%d.log", folder, i), fmt.Sprintf(smallLog, 1000+i))
			put(fmt.Sprintf("%s/run-%d.vmstat.txt", folder, i), "")
			put(fmt.Sprintf("%s/run-%d.variables.txt", folder, i), "version\t8.0.1\nmax_connections\t7\n")
		},
		"one name and one time": func(folder string, i int) {
			put(fmt.Sprintf("%s/%d/run.log", folder, i), fmt.Sprintf(smallLog, 1000+i))
		},
		"equal bytes": func(folder string, i int) {
			put(fmt.Sprintf("%s/run-%d.log", folder, i), fmt.Sprintf(smallLog, 1000))
		},
		"the two streams of pgbench, which count alike": func(folder string, i int) {
			put(fmt.Sprintf("%s/%d.out", folder, i), "transaction type: <builtin: select only>\nnumber of clients: 1\n"+
				fmt.Sprintf("duration: %d s\nnumber of transactions actually processed: 100\ntps = 100.000000 (without initial connection time)\n", i+1))
			put(fmt.Sprintf("%s/%d.err", folder, i), fmt.Sprintf("progress: 1.0 s, 100.0 tps, lat 3.213 ms stddev %d.000\n", i+1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			importAllocations(t, 10, write) // what is made once in the process
			few, many := importAllocations(t, 25, write), importAllocations(t, 200, write)
			if many > 1.25*few {
				t.Errorf("%.0f allocations for each of 200 logs, %.0f for each of 25", many, few)
			}
		})
	}
}
