package enginetest

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Port is a fake server's port on loopback. It owns the goroutines that serve its connections.
type Port struct {
	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Listen serves each connection to address with serve until the test ends or Stop is called.
// "127.0.0.1:0" selects a free port.
func Listen(t testing.TB, address string, serve func(net.Conn)) *Port {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Port{listener: l, conns: map[net.Conn]struct{}{}}
	p.done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns[conn] = struct{}{}
			p.mu.Unlock()
			p.done.Go(func() {
				serve(conn)
				conn.Close()
				p.mu.Lock()
				delete(p.conns, conn)
				p.mu.Unlock()
			})
		}
	})
	t.Cleanup(p.Stop)
	return p
}

// Address returns host:port.
func (p *Port) Address() string { return p.listener.Addr().String() }

// Connections returns the number of open connections.
func (p *Port) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Stop closes the port and all connections, as in a crash.
func (p *Port) Stop() {
	p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}

// Open applies the changes to target and returns a prober of it, closed when the test ends.
func Open(t testing.TB, e *engine.Engine, target engine.Target, changes []func(*engine.Target)) engine.Prober {
	t.Helper()
	for _, change := range changes {
		change(&target)
	}
	p, err := e.Open(target, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Refused reports an error unless Open fails with an error that contains want, or succeeds if want
// is empty.
func Refused(t testing.TB, e *engine.Engine, target engine.Target, want string) {
	t.Helper()
	p, err := e.Open(target, slog.New(slog.DiscardHandler))
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v does not contain %q", err, want)
	case err == nil:
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
