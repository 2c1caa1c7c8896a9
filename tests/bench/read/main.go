// Command read reads a benchmark tool's output to its end as the agent does, and prints the memory allocations per
// line. Its CPU time is the cost of following and parsing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: read TOOL FILE")
		os.Exit(2)
	}
	if err := read(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		os.Exit(1)
	}
}

func read(name, path string) error {
	t := registry.Tools.ByName(name)
	if t == nil {
		return fmt.Errorf("unknown tool %q", name)
	}
	r, err := follow.Open(path, follow.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	r.Finish()
	p := t.NewFront(tool.Description{}).Parser()
	lines, reports := 0, 0
	emit := func(*tool.Report) { reports++ }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for {
		line, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		lines++
		p.Parse(tool.Line{Text: line.Text, Cut: line.Cut}, emit)
	}
	p.Close(emit)
	runtime.ReadMemStats(&after)
	if lines > 0 && reports == 0 {
		return errors.New("no report found")
	}
	fmt.Println(float64(after.Mallocs-before.Mallocs) / float64(max(lines, 1)))
	return nil
}
