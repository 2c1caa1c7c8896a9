package proxy

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// A machine with 20,000 sockets in TIME_WAIT, left by a benchmark that reconnects for each
// transaction.
func BenchmarkManySockets(b *testing.B) {
	tree := &procTree{t: b, root: b.TempDir()}
	tree.write("cpu  0 0 0 0\nbtime 1795225900\n", "stat")
	list := []tcp{{adminPort, 0, stateListen, 100}, {clientPort, 0, stateListen, 101}}
	for i := range 20_000 {
		list = append(list, tcp{clientPort, 20_000 + i, 6, 0})
	}
	tree.sockets(list...)
	tree.process(700, 1, program, 5, proxySockets...)
	tree.write("700", "proxy.pid")
	p := &Process{PIDFile: filepath.Join(tree.root, "proxy.pid"), root: tree.root, local: true, adminPort: adminPort}
	b.ReportAllocs()
	for b.Loop() {
		var s engine.Status
		p.Sample(&s, backends, time.Unix(1795228000, 0))
	}
}
