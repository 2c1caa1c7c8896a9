package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/tool"
	tools "github.com/benchwatch/benchwatch/agent/tool/registry"
)

// output is what a tool printed in a real run, and mtail's program for it.
type output struct {
	name    string
	tool    string
	capture string // below agent/tool
	program string // below tests/bench/mtail
}

var sysbench10 = output{"sysbench 1.0", "sysbench", "sysbench/testdata/1.0.20/oltp_read_write-th4-ri1-p99.txt", "sysbench"}

var outputs = []output{
	sysbench10,
	{"sysbench 0.5", "sysbench", "sysbench/testdata/0.5/oltp-th4-ri1.txt", "sysbench-0.5"},
	{"YCSB", "ycsb", "ycsb/testdata/0.17.0/jdbc-run-a-t10-int1/stderr.txt", "ycsb"},
	{"go-ycsb", "go-ycsb", "goycsb/testdata/mysql-run-a-t10-int1-plain/stdout.txt", "go-ycsb"},
	{"tpcc-mysql", "tpcc-mysql", "tpccmysql/testdata/2017-01/c4-r5-l30-i1/stdout.txt", "tpcc-mysql"},
	{"go-tpc", "go-tpc", "gotpc/testdata/1.0.12/run-th4-20s-i1-plain/stdout.txt", "go-tpc"},
}

const (
	intervalLines = 1_000_000
	outputLines   = 200_000
)

func (b *bench) read(o output) ([]byte, error) {
	return os.ReadFile(filepath.Join(b.root, "agent/tool", o.capture))
}

// longLog writes a log of sysbench whose interval lines are a captured run's over and
// over, the clock going on.
func (b *bench) longLog(path string, count int) error {
	text, err := b.read(sysbench10)
	if err != nil {
		return err
	}
	var head bytes.Buffer
	var intervals [][]byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("[ ")) {
			_, rest, _ := bytes.Cut(line, []byte("s ]"))
			intervals = append(intervals, rest)
		} else if len(intervals) == 0 {
			head.Write(line)
		}
	}
	if len(intervals) == 0 {
		return errors.New("the capture has no interval lines")
	}
	return writeFile(path, func(w io.Writer) {
		w.Write(head.Bytes())
		for i := range count {
			fmt.Fprintf(w, "[ %ds ]%s", i+1, intervals[i%len(intervals)])
		}
	})
}

// writeFile reports the first error of all writes.
func writeFile(path string, write func(io.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	write(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// parse compares the reading of long logs: follower and parser alone, the whole
// `benchwatch parse`, which also prints every report as JSON, and mtail.
func (b *bench) parse() error {
	long := filepath.Join(b.dir, "long.log")
	if err := b.longLog(long, intervalLines); err != nil {
		return err
	}
	ours, allocations, err := b.parsing(sysbench10, long, intervalLines)
	if err != nil {
		return err
	}
	theirs, err := b.mtail(sysbench10, long, intervalLines)
	if err != nil {
		return err
	}
	b.add(figure{"sysbench 1.0 interval lines per CPU second", count(ours), "mtail", count(theirs), ratio(ours, theirs), ">= 1,000,000"})
	b.add(figure{"memory allocations per interval line", fmt.Sprintf("%.4f", allocations), "", "", "", "0"})
	command, err := b.rate(intervalLines, long, b.binary, "parse", "--tool=sysbench")
	if err != nil {
		return err
	}
	b.add(figure{"the same, printed as JSON (benchwatch parse)", count(command), "mtail", count(theirs), ratio(command, theirs), ""})
	for _, o := range outputs {
		if err := b.parseWhole(o); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

// parseWhole reads whole outputs, heads and summaries too, one behind the other.
func (b *bench) parseWhole(o output) error {
	text, err := b.read(o)
	if err != nil {
		return err
	}
	path, lines := filepath.Join(b.dir, "whole.log"), 0
	err = writeFile(path, func(w io.Writer) {
		for ; lines < outputLines; lines += bytes.Count(text, []byte("\n")) {
			w.Write(text)
		}
	})
	if err != nil {
		return err
	}
	ours, allocations, err := b.parsing(o, path, lines)
	if err != nil {
		return err
	}
	theirs, err := b.mtail(o, path, lines)
	if err != nil {
		return err
	}
	b.add(figure{fmt.Sprintf("%s, whole output, lines (%.2f allocations each)", o.name, allocations), count(ours), "mtail", count(theirs), ratio(ours, theirs), ""})
	return nil
}

// parsing returns lines per CPU second and allocations per line of follower and parser.
func (b *bench) parsing(o output, path string, lines int) (perSecond, allocations float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	perSecond, err = b.rate(lines, path, self, "parse-only", o.tool)
	if err != nil {
		return 0, 0, err
	}
	allocations, err = allocationsOf(o.tool, path, lines)
	return perSecond, allocations, err
}

func (b *bench) mtail(o output, path string, lines int) (float64, error) {
	return b.rate(lines, path, "mtail", "--one_shot", "--one_shot_format=prometheus", "--logtostderr",
		"--progs="+filepath.Join(b.root, "tests/bench/mtail", o.program), "--logs")
}

// rate returns lines per CPU second of a program that reads path; what it needs for an
// empty file is taken off.
func (b *bench) rate(lines int, path, name string, args ...string) (float64, error) {
	all, err := cpuOf(name, append(args, path)...)
	if err != nil {
		return 0, err
	}
	empty := filepath.Join(b.dir, "empty.log")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return 0, err
	}
	begin, err := cpuOf(name, append(args, empty)...)
	if err != nil {
		return 0, err
	}
	return float64(lines) / (all - begin), nil
}

// count prints a number with thousands separated.
func count(v float64) string {
	digits := strconv.FormatInt(int64(v), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// allocationsOf reads a log in this process and counts.
func allocationsOf(name, path string, lines int) (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reports, err := readThrough(name, path)
	if err != nil {
		return 0, err
	}
	runtime.ReadMemStats(&after)
	if reports == 0 {
		return 0, fmt.Errorf("%s: no report found", name)
	}
	return float64(after.Mallocs-before.Mallocs) / float64(lines), nil
}

// readThrough reads a log to its end as the agent does and returns how many reports it
// holds.
func readThrough(name, path string) (reports int, err error) {
	t := tools.Tools.ByName(name)
	if t == nil {
		return 0, fmt.Errorf("unknown tool %q", name)
	}
	r, err := follow.Open(path, follow.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	r.Finish()
	p := t.NewParser(tool.Description{})
	emit := func(*tool.Report) { reports++ }
	for {
		line, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return reports, err
		}
		p.Parse(tool.Line{Text: line.Text, Cut: line.Cut}, emit)
	}
	p.Close(emit)
	return reports, nil
}
