package ycsb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// For any input on either stream: no panic, every value is a number, and no more summaries than
// runs.
func FuzzParser(f *testing.F) {
	for _, dir := range tooltest.Cases(f, captures) {
		for _, name := range []string{"stderr.txt", "stdout.txt"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			f.Add(text[:min(len(text), 8000)], uint64(0))
			f.Add(text[max(0, len(text)-3000):], uint64(0x5555))
		}
	}
	f.Add([]byte(at0+at1), uint64(1))
	f.Fuzz(func(t *testing.T, text []byte, streams uint64) {
		lines := tooltest.Lines(tool.Stdout, text)
		for i := range lines {
			lines[i].Stream = tool.Stream(streams >> (i % 64) & 1)
		}
		res := tooltest.Parse(Tool, lines)
		for _, r := range res.Reports {
			tooltest.Check(t, r)
			if len(r.Message) > 2*message.MaxRead {
				t.Errorf("a message of %d bytes", len(r.Message))
			}
		}
		if n := res.Reported + res.Ignored + res.Malformed; n != len(lines) {
			t.Errorf("%d verdicts on %d lines", n, len(lines))
		}
		sniff(text)
	})
}

// For any arguments: no panic, and every insertion has a valid index.
func FuzzDescribe(f *testing.F) {
	f.Add("run\x00mongodb\x00-P\x00w\x00-p\x00mongodb.url=mongodb://u:p@h/d", "threadcount=4")
	f.Add("-cp\x00x\x00site.ycsb.Client\x00-load\x00-p\x00db.passwd=x", "status=true")
	f.Fuzz(func(t *testing.T, args, file string) {
		inv := tool.Invocation{Args: strings.Split(args, "\x00"), ReadFile: func(string) ([]byte, error) { return []byte(file), nil }}
		d := describe(inv)
		for _, in := range d.Insert {
			if in.At < 0 || in.At > len(inv.Args) {
				t.Errorf("insertion at %d of %d", in.At, len(inv.Args))
			}
		}
		matchArgs("java", inv.Args)
	})
}

func BenchmarkStatus(b *testing.B) {
	for name, file := range map[string]string{
		"two operations":    "testdata/0.17.0/basic-run-a-sigint-to-group/stderr.txt",
		"with percentile50": "testdata/0.18.0-SNAPSHOT/jdbc-run-a-t10-int1/stderr.txt",
		"trackjvm":          "testdata/0.17.0/basic-run-a-label-trackjvm-percentiles/stderr.txt",
	} {
		b.Run(name, func(b *testing.B) {
			var lines []tool.Line
			size := 0
			for _, l := range tooltest.Read(b, tool.Stderr, file) {
				if statusAt(l.Text) >= 0 {
					lines = append(lines, l)
					size += len(l.Text) + 1
				}
			}
			p := newParser()
			n := 0
			emit := func(*tool.Report) { n++ }
			for _, l := range lines {
				p.Parse(l, emit) // names are stored once
			}
			b.SetBytes(int64(size / len(lines)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if p.Parse(lines[i], emit) != tool.Reported {
					b.Fatalf("line %d", i)
				}
				if i++; i == len(lines) {
					i = 0
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
