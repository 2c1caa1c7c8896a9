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
	"strconv"

	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/tool"
	"github.com/benchwatch/benchwatch/agent/tool/sysbench"
)

const parsedLines = 1_000_000

// capture is a real run's output.
func (b *bench) capture() ([]byte, error) {
	return os.ReadFile(filepath.Join(b.root, "agent/tool/sysbench/testdata/1.0.20/oltp_read_write-th4-ri1-p99.txt"))
}

// longLog writes a log whose interval lines are a captured run's over and over, the
// clock going on.
func (b *bench) longLog(path string, count int) error {
	text, err := b.capture()
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	var intervals [][]byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("[ ")) {
			_, rest, _ := bytes.Cut(line, []byte("s ]"))
			intervals = append(intervals, rest)
		} else if len(intervals) == 0 {
			w.Write(line)
		}
	}
	if len(intervals) == 0 {
		return errors.New("the capture has no interval lines")
	}
	for i := range count {
		fmt.Fprintf(w, "[ %ds ]", i+1)
		w.Write(intervals[i%len(intervals)])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// parse compares the reading of a long log: follower and parser alone, the whole
// `benchwatch parse`, which also prints every report as JSON, and mtail.
func (b *bench) parse() error {
	long, short := filepath.Join(b.dir, "long.log"), filepath.Join(b.dir, "short.log")
	if err := b.longLog(long, parsedLines); err != nil {
		return err
	}
	if err := b.longLog(short, 1); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	rate := func(name string, args ...string) (float64, error) {
		all, err := cpuOf(name, append(args, long)...)
		if err != nil {
			return 0, err
		}
		begin, err := cpuOf(name, append(args, short)...)
		if err != nil {
			return 0, err
		}
		return parsedLines / (all - begin), nil
	}
	ours, err := rate(self, "parse-only")
	if err != nil {
		return err
	}
	command, err := rate(b.binary, "parse", "--tool=sysbench")
	if err != nil {
		return err
	}
	theirs, err := rate("mtail", "--one_shot", "--one_shot_format=prometheus", "--logtostderr",
		"--progs="+filepath.Join(b.root, "tests/bench/mtail"), "--logs")
	if err != nil {
		return err
	}
	b.add(figure{"lines followed and parsed per CPU second", count(ours), "mtail", count(theirs), ratio(ours, theirs), ">= 1,000,000"})
	b.add(figure{"the same, printed as JSON (benchwatch parse)", count(command), "mtail", count(theirs), ratio(command, theirs), ""})
	return nil
}

// count prints a number with thousands separated.
func count(v float64) string {
	digits := strconv.FormatInt(int64(v), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// parseOnly reads a log to its end as the agent does.
func parseOnly(path string) error {
	r, err := follow.Open(path, follow.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	r.Finish()
	p := sysbench.NewParser()
	reports := 0
	emit := func(*tool.Report) { reports++ }
	for {
		line, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		p.Parse(tool.Line{Text: line.Text, Cut: line.Cut}, emit)
	}
	p.Close(emit)
	fmt.Println(reports)
	return nil
}
