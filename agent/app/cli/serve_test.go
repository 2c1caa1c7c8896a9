package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/observer"
)

const webhookToken = "8c1f0e5a"

// serveAgent serves an agent with a webhook on an address, with flags, and
// returns where and what it logs.
func serveAgent(t *testing.T, address string, set func(*observing)) (at string, log *lockedBuffer) {
	t.Helper()
	o := &observing{addresses: []string{address}}
	if set != nil {
		set(o)
	}
	c := config.Default()
	c.DataDir = t.TempDir()
	c.WebhookTokenFile = writeFile(t, "token", webhookToken)
	log = &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	b, err := observer.New(observer.Options{Config: c, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	ls, err := o.listen(false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() {
		if err := b.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	parts.Go(func() {
		if err := o.serve(ctx, b, ls, logger); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); parts.Wait() })
	_, port, _ := net.SplitHostPort(ls[0].Addr().String())
	return "127.0.0.1:" + port, log
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// send writes a part of a request, and leaves the connection open.
func send(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// answerOf reads the answer that comes within limit.
func answerOf(t *testing.T, conn net.Conn, limit time.Duration) (status int, body string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(limit))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// Half-sent requests, even more than the scrapes that are answered at once, don't block scraping, get their answer, and
// are closed. The page's stream, which lasts longer than a request may take to arrive, is not.
func TestHalfSentRequests(t *testing.T) {
	t.Parallel()
	address, _ := serveAgent(t, "127.0.0.1:0", nil)
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" }
	begun := time.Now()
	stream := send(t, address, get("/api/events")+"\r\n")
	var slow []net.Conn
	for range 12 {
		for _, body := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n3e8\r\n{"} {
			slow = append(slow, send(t, address, get("/metrics")+body))
		}
	}
	post := "POST /api/v1/alerts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nAuthorization: Bearer "
	refused := send(t, address, post+"x\r\n\r\n{")
	incomplete := send(t, address, post+webhookToken+"\r\n\r\n{")
	headless := send(t, address, get("/metrics"))

	// The half-sent requests are answered, which may take a moment for so many at once, but
	// no scrape waits until they are closed.
	for scrapes := 0; scrapes < 5; {
		status, body := answerOf(t, send(t, address, get("/metrics")+"\r\n"), 5*time.Second)
		switch {
		case status == http.StatusOK && strings.Contains(body, "benchwatch_build_info"):
			scrapes++
		case status != http.StatusServiceUnavailable || time.Since(begun) > observer.ReadTime/2:
			t.Fatalf("a scrape beside half-sent requests got %d after %s", status, time.Since(begun))
		}
	}
	for _, conn := range append(slow[10:11:11], slow[11]) {
		if status, _ := answerOf(t, conn, 5*time.Second); status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Errorf("a GET with a body got %d", status)
		}
	}
	if status, _ := answerOf(t, refused, 5*time.Second); status != http.StatusUnauthorized {
		t.Errorf("alerts with a wrong token got %d", status)
	}
	for name, conn := range map[string]net.Conn{"GET with a body": slow[0], "alerts": incomplete, "refused alerts": refused, "header": headless} {
		_ = conn.SetReadDeadline(begun.Add(observer.ReadTime + 10*time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("half of a request, %s, is not closed: %v", name, err)
		}
	}
	if time.Since(begun) < observer.ReadTime {
		t.Errorf("the last half of a request was closed after %s", time.Since(begun))
	}
	_ = stream.SetReadDeadline(time.Now().Add(15 * time.Second))
	lines := bufio.NewReader(stream)
	for beats := 0; beats < 4; { // one each five seconds
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended after %s: %v", time.Since(begun), err)
		}
		if strings.HasPrefix(line, "event: beat") {
			beats++
		}
	}
}

// A web page whose own name got the address of this machine reads nothing.
func TestHostOfRequests(t *testing.T) {
	t.Parallel()
	external := "https://Bench.example.com/benchwatch/"
	address, _ := serveAgent(t, "127.0.0.1:0", func(o *observing) {
		o.externalURL, o.allowedHosts = external, []string{"tunnel.example.com"}
	})
	open, _ := serveAgent(t, "0.0.0.0:0", nil)
	for _, test := range []struct {
		address, host string
		want          int
	}{
		{address, "localhost", 200},
		{address, "LocalHost:1234", 200},
		{address, "127.0.0.1:9838", 200},
		{address, "[::1]:9838", 200},
		{address, "bench.example.com", 200},
		{address, "tunnel.example.com:8443", 200},
		{address, "evil.example.com", 421},
		{address, "evil.example.com:9838", 421},
		{address, "127.0.0.1.evil.example.com", 421},
		{address, "localhost.evil.example.com", 421},
		{address, "192.0.2.1", 421},
		{open, "bench7:9838", 200},
	} {
		for _, request := range []string{"GET /metrics", "GET /", "GET /api/runs", "GET /-/healthy"} {
			status, body := answerOf(t, send(t, test.address, request+" HTTP/1.1\r\nHost: "+test.host+"\r\n\r\n"), 5*time.Second)
			if status != test.want || status == 421 && !strings.Contains(body, "--web.allowed-host") {
				t.Errorf("%s of %s: %d %q", request, test.host, status, body)
			}
		}
	}
	if status, _ := answerOf(t, send(t, address, "POST /api/v1/alerts HTTP/1.1\r\nHost: evil.example.com\r\nAuthorization: Bearer "+webhookToken+"\r\nContent-Length: 2\r\n\r\n{"), 5*time.Second); status != 421 {
		t.Errorf("alerts of another host: %d", status)
	}
	if status, _ := answerOf(t, send(t, address, "GET /-/healthy HTTP/1.0\r\n\r\n"), 5*time.Second); status != 200 {
		t.Errorf("without a host: %d", status)
	}
}

// An agent that everyone in the network can read logs a warning.
func TestWarnsOfOpenAddress(t *testing.T) {
	t.Parallel()
	const hash = "$2y$04$tgnYjvEhAR8Yv/bpEivT8OfLjbIHxzOTTkKkTd6H8P24rF5hRGrfm"
	for _, test := range []struct {
		name, address, web string
		warns              bool
	}{
		{"loopback", "127.0.0.1:0", "", false},
		{"every address", "0.0.0.0:0", "", true},
		{"password", "0.0.0.0:0", "basic_auth_users:\n  prometheus: " + hash + "\n", false},
		{"no user", "0.0.0.0:0", "basic_auth_users: {}\n", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := ""
			if test.web != "" {
				file = writeFile(t, "web.yml", test.web)
			}
			address, log := serveAgent(t, test.address, func(o *observing) { o.webConfig = file })
			answerOf(t, send(t, address, "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n"), 5*time.Second)
			if got := strings.Contains(log.String(), "basic_auth_users"); got != test.warns {
				t.Errorf("warns: %t\n%s", got, log)
			}
		})
	}
	for file, want := range map[string]bool{
		"tls_server_config: {client_auth_type: RequireAndVerifyClientCert}": true,
		"tls_server_config: {client_auth_type: RequestClientCert}":          false,
	} {
		if authenticates(writeFile(t, "web.yml", file)) != want {
			t.Error(file)
		}
	}
}

func TestExternalURL(t *testing.T) {
	for s, ok := range map[string]bool{"": true, "https://a": true, "http://a:1/b": true, "a.example.com": false, "ftp://a": false, "https://": false, "http://:80": false} {
		if err := checkExternalURL(s); (err == nil) != ok {
			t.Error(fmt.Sprintf("%q", s), err)
		}
	}
}

// Without the webhook's token no request is accepted that could change anything,
// and no answer allows another web page to read it.
func TestNothingChangesByHTTP(t *testing.T) {
	t.Parallel()
	address, _ := serveAgent(t, "127.0.0.1:0", nil)
	for _, path := range []string{"/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/-/quit", "/page.js", "/debug/pprof/", "/api/runs", "/api/runs/a", "/api/runs/a/history", "/api/events", "/api/measures", "/api/servers", "/api/v1/alerts", "/api/peer/runs", "/api/peer/runs/a"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
			if path == "/api/events" && (method == "GET" || method == "HEAD") {
				continue // they last
			}
			req, err := http.NewRequest(method, "http://"+address+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Origin", "https://evil.example.com")
			req.Header.Set("Access-Control-Request-Method", "POST")
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(method, path, err)
			}
			resp.Body.Close()
			if method != "GET" && method != "HEAD" && resp.StatusCode < 400 || resp.StatusCode >= 500 {
				t.Errorf("%s %s: %s", method, path, resp.Status)
			}
			for name := range resp.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: %s", method, path, name)
				}
			}
		}
	}
}
