package sysbench

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
)

// FuzzParser checks what holds for any input: no panic, every value is a number, nothing grows
// without limit, and each run has one start before all other reports.
func FuzzParser(f *testing.F) {
	for _, path := range captures(f) {
		stdout, stderr := readCapture(f, path)
		f.Add(stdout, stderr)
	}
	f.Add([]byte(lines(banner10, options10+"[", sample+"[ 2s ] Checkpoint report:", csv10, line10, line05)), []byte("PANIC: x"))
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		p := NewParser(tool.Description{})
		stream := tool.Stdout
		run := 0
		emit := func(r *tool.Report) {
			checkReport(t, r)
			if stream == tool.Stderr {
				if r.Kind != tool.Error || r.Run != 1 {
					t.Fatalf("standard error made %+v", r)
				}
				return
			}
			if (r.Kind == tool.Start) != (r.Run == run+1) || r.Run < run {
				t.Fatalf("a %s of run %d in run %d", r.Kind, r.Run, run)
			}
			run = r.Run
		}
		feed := func(data []byte) {
			for line := range bytes.Lines(data) {
				if v := p.Parse(tool.Line{Stream: stream, Text: bytes.TrimSuffix(line, []byte("\n"))}, emit); v > tool.Malformed {
					t.Fatalf("verdict %d", v)
				}
			}
		}
		feed(stdout)
		stream = tool.Stderr
		feed(stderr)
		stream = tool.Stdout
		p.Close(emit)
		n := run
		p.Close(func(r *tool.Report) { t.Fatalf("closed twice: %+v of run %d", r, n) })
		if size := len(p.lastMessage) + cap(p.names.text); size > 2*message.Max {
			t.Fatalf("%d bytes kept", size)
		}
		Sniff(stdout)
	})
}

func checkReport(t *testing.T, r *tool.Report) {
	t.Helper()
	good := func(v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Fatalf("%v in %+v", v, r)
		}
	}
	good(r.ElapsedSeconds.Value)
	good(r.IntervalSeconds.Value)
	good(float64(r.Threads.Value))
	for _, v := range r.Values {
		good(v.Value)
	}
	for _, v := range r.Rates {
		good(v.PerSecond)
	}
	for _, v := range r.Latencies {
		good(v.Seconds)
	}
	if len(r.Rates) > 12 || len(r.Counts) > 12 || len(r.Latencies) > maxLatencies || len(r.Message) > message.Max+8 || len(r.Version) > 256 {
		t.Fatalf("too much in %+v", r)
	}
	if !utf8.ValidString(r.Message) || !json.Valid(tool.AppendJSON(nil, r)) {
		t.Fatalf("can't be shown: %+v", r)
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("--test=x.lua\n--mysql-password=y\n--config-file=c\nrun", "threads=4\nmysql-password='z'\n")
	f.Add("oltp_read_write\n--mysql-password\nrun\n--mysql_host=a,b\n--mysql-port=1,2\nrun", "a = 'b', \"c")
	f.Fuzz(func(t *testing.T, args, file string) {
		in := tool.Invocation{ReadFile: func(string) ([]byte, error) { return []byte(file), nil }}
		for line := range bytes.Lines([]byte(args)) {
			in.Args = append(in.Args, string(bytes.TrimSuffix(line, []byte("\n"))))
		}
		d := Describe(in)
		for _, i := range d.Insert {
			if i.At < 0 || i.At > len(in.Args) {
				t.Fatalf("insert at %d of %d", i.At, len(in.Args))
			}
		}
	})
}
