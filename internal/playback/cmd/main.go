// Command cmd replaces a benchmark tool. Whatever its arguments, it writes a recorded output, cut
// anywhere, at a pace set by its environment.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := play(); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(74) // EX_IOERR, like a tool that checks its writes
	}
}

// maxHold ends a replay whose test was killed.
const maxHold = 20 * time.Minute

func play() error {
	lines, err1 := strconv.Atoi(cmp.Or(os.Getenv("REPLAY_LINES"), "0"))
	takes, err2 := time.ParseDuration(cmp.Or(os.Getenv("REPLAY_TAKES"), "0s"))
	seed, err3 := strconv.ParseUint(cmp.Or(os.Getenv("REPLAY_SEED"), "0"), 10, 64)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return err
	}
	if lines > 0 {
		err := generate(os.Stdout, lines, takes)
		if err != nil {
			return err
		}
	} else if err := replay(takes, rand.New(rand.NewPCG(seed, 0))); err != nil {
		return err
	}
	if hold := os.Getenv("REPLAY_HOLD"); hold != "" {
		began := time.Now()
		for _, err := os.Stat(hold); err != nil && time.Since(began) < maxHold; _, err = os.Stat(hold) {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// output is a stream with the text that is left to write.
type output struct {
	to   *os.File
	rest []byte
	size int
}

func (o *output) left() float64 { return float64(len(o.rest)) / float64(max(o.size, 1)) }

// replay writes both streams in pieces of any length, about a hundred each second.
func replay(takes time.Duration, random *rand.Rand) error {
	outputs := []*output{{to: os.Stdout}, {to: os.Stderr}}
	total := 0
	for i, name := range []string{"REPLAY_STDOUT", "REPLAY_STDERR"} {
		if file := os.Getenv(name); file != "" {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			outputs[i].rest, outputs[i].size = text, len(text)
			total += len(text)
		}
	}
	began, written := time.Now(), 0
	piece := 1 + 2*total/max(1, int(takes.Seconds()*100))
	for written < total {
		o := outputs[0]
		if outputs[1].left() > o.left() {
			o = outputs[1]
		}
		n := min(len(o.rest), 1+random.IntN(piece))
		if _, err := o.to.Write(o.rest[:n]); err != nil {
			return err
		}
		o.rest, written = o.rest[n:], written+n
		time.Sleep(time.Until(began.Add(time.Duration(float64(takes) * float64(written) / float64(total)))))
	}
	return nil
}

const banner = `sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Report intermediate results every 1 second(s)
Initializing random number generator from current time


Initializing worker threads...

Threads started!

`

// generate writes interval lines for a run longer than any recording.
func generate(w io.Writer, lines int, takes time.Duration) error {
	out := bufio.NewWriterSize(w, 64<<10)
	began := time.Now()
	_, _ = out.WriteString(banner) // Flush returns the error
	for n := 1; n <= lines; n++ {
		fmt.Fprintf(out, "[ %ds ] thds: 4 tps: 10.00 qps: 200.00 (r/w/o: 140.00/40.00/20.00) lat (ms,95%%): 1.04 err/s: 0.00 reconn/s: 0.00\n", n)
		if takes > 0 {
			if err := out.Flush(); err != nil {
				return err
			}
			time.Sleep(time.Until(began.Add(time.Duration(float64(takes) * float64(n) / float64(lines)))))
		}
	}
	fmt.Fprintf(out, `
SQL statistics:
    queries performed:
        read:                            %d
        write:                           %d
        other:                           %d
        total:                           %d
    transactions:                        %d (10.00 per sec.)
    queries:                             %d (200.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          %d.0003s
    total number of events:              %d

Latency (ms):
         min:                                    0.50
         avg:                                    1.00
         max:                                    9.99
         95th percentile:                        1.04
         sum:                                 1000.00

Threads fairness:
    events (avg/stddev):           10.0000/1.00
    execution time (avg/stddev):   10.0000/0.00
`, 140*lines, 40*lines, 20*lines, 200*lines, 10*lines, 200*lines, lines, 10*lines)
	return out.Flush()
}
