package scan_test

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

func Example() {
	l := scan.New([]byte("[ 12s ] tps: 10.50 lat (ms): 1.04"))
	ok := l.Literal("[")
	seconds, okTime := l.Int()
	ok = ok && okTime && l.Literal("s ] tps: ")
	tps, okRate := l.Fixed(2, 0)
	ok = ok && okRate && l.Literal(" lat (ms): ")
	latency, okLatency := l.Fixed(2, 3) // milliseconds to seconds
	fmt.Println(seconds, tps, latency, ok && okLatency && l.End())
	// Output: 12 10.5 0.00104 true
}
