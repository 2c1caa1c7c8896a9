package tidb

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

func TestFilter(t *testing.T) {
	text := "# HELP a b\n# TYPE tidb_server_tokens gauge\ntidb_server_tokens 1\n" +
		"tidb_server_tokens_more 2\nlong{x=\"" + strings.Repeat("y", 3*maxLine) + "\"} 3\n\n" +
		"tidb_server_tokens{a=\"b\"} 4\ntidb_server_tokens\t5\ntidb_server_tok"
	want := "tidb_server_tokens 1\ntidb_server_tokens{a=\"b\"} 4\ntidb_server_tokens\t5\n"
	for name, in := range map[string]io.Reader{
		"at once":        strings.NewReader(text),
		"byte by byte":   iotest.OneByteReader(strings.NewReader(text)),
		"data with EOF":  iotest.DataErrReader(strings.NewReader(text)),
		"in small parts": iotest.HalfReader(strings.NewReader(text)),
	} {
		got, err := filter(in)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("tidb_server_query_total{result=\"OK\",type=\"Query\"} 10\n"))
	f.Add([]byte("tidb_server_tokens{le=\"+Inf\"} NaN 123\n"))
	f.Add(recorded(f, "metrics_start")[:20_000])
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		var s engine.Status
		readFamilies(&s, found)
	})
}

// One answer of a server under load.
func BenchmarkDecode(b *testing.B) {
	text := recorded(b, "metrics_read_write_t5")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
