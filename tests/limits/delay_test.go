//go:build limits

package limits

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// delayed returns an address of the server with a delay in nanoseconds: each piece of data is forwarded that much
// later, in both directions.
func delayed(t *testing.T, server string, delay *atomic.Int64) string {
	t.Helper()
	return between(t, server, func(from, to net.Conn) { passOn(from, to, delay) })
}

// narrow returns an address at which the server sends at most this many bytes per second on each connection.
func narrow(t *testing.T, server string, bytes int) string {
	t.Helper()
	return between(t, server, func(from, to net.Conn) {
		b := make([]byte, 16<<10)
		for {
			n, err := from.Read(b)
			if n > 0 {
				<-time.After(time.Duration(n) * time.Second / time.Duration(bytes))
				_, _ = to.Write(b[:n]) // its reader notices the end
			}
			if err != nil {
				_, _ = to.Close(), from.Close()
				return
			}
		}
	})
}

// between returns an address from which connections are forwarded to the server, each direction by a function that
// returns at its end.
func between(t *testing.T, server string, pass func(from, to net.Conn)) string {
	t.Helper()
	return betweenFrom(t, &net.Dialer{}, server, pass)
}

// betweenFrom is between with connections of its own kind to the server.
func betweenFrom(t *testing.T, dialer *net.Dialer, server string, pass func(from, to net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := dialer.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, behind)
			mu.Unlock()
			for _, way := range [][2]net.Conn{{client, behind}, {behind, client}} {
				running.Go(func() { pass(way[0], way[1]) })
			}
		}
	})
	return listener.Addr().String()
}

// always returns a delay that does not change.
func always(d time.Duration) *atomic.Int64 {
	var delay atomic.Int64
	delay.Store(int64(d))
	return &delay
}

// piece is data that was read at a time.
type piece struct {
	at   time.Time
	data []byte
}

func passOn(from, to net.Conn, delay *atomic.Int64) {
	pieces := make(chan piece, 1000)
	var writing sync.WaitGroup
	writing.Go(func() {
		for p := range pieces {
			<-time.After(time.Until(p.at.Add(time.Duration(delay.Load()))))
			_, _ = to.Write(p.data) // its reader notices the end
		}
		_ = to.Close()
	})
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		if n > 0 {
			pieces <- piece{time.Now(), b[:n]}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = from.Close()
			}
			break
		}
	}
	close(pieces)
	writing.Wait()
}
