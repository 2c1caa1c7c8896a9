package agents

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Dead returns n addresses without a database, in turn: one that refuses connections, one that
// accepts them and never answers, and a web server.
func Dead(t testing.TB, n int) (addresses []string) {
	t.Helper()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	for i := range n {
		if i%3 == 2 {
			addresses = append(addresses, web.Listener.Addr().String())
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		if i%3 == 0 {
			l.Close()
		} else {
			t.Cleanup(func() { l.Close() })
		}
	}
	return addresses
}
