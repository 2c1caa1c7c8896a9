package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen serves each connection with talk and returns the address.
func listen(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			talk(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// packet frames a payload like MySQL.
func packet(sequence byte, payload string) string {
	n := len(payload)
	return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), sequence}) + payload
}

func say(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

// greetingOf returns a server's greeting, without TLS in its capabilities.
func greetingOf(version string) string { return greetingWith(version, "\xff\xf7") }

func greetingWith(version, capabilities string) string {
	return packet(0, "\x0a"+version+"\x00"+"\x01\x00\x00\x00"+"12345678\x00"+capabilities+"\x21"+"\x02\x00"+"\x0f\x80"+"\x15"+strings.Repeat("\x00", 10)+"123456789012\x00"+"mysql_native_password\x00")
}

func errorPacket(sequence byte, number uint16, text string) string {
	return packet(sequence, "\xff"+string([]byte{byte(number), byte(number >> 8)})+"#HY000"+text)
}

// encrypted sends a greeting and begins TLS with a certificate without a trusted signature.
func encrypted(t *testing.T) func(net.Conn) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil) // for its certificate for example.com
	web.StartTLS()
	t.Cleanup(web.Close)
	return func(c net.Conn) {
		_, _ = io.WriteString(c, greetingWith("8.4.3", "\xff\xff"))
		_, _ = io.ReadFull(c, make([]byte, 36)) // the request for TLS
		_ = tls.Server(c, &tls.Config{Certificates: web.TLS.Certificates}).Handshake()
	}
}

// Whatever is listening on the port, the error says so in one line, the same each time, within the
// deadline.
func TestWhatIsBehindThePort(t *testing.T) {
	closed := listen(t, func(net.Conn) {})
	refuse := func(number uint16, text string) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, greetingOf("8.4.3"))
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, errorPacket(2, number, text))
			_, _ = io.Copy(io.Discard, c)
		}
	}
	tests := []struct {
		name    string
		address string
		tls     *tls.Config
		want    string
		is      error
	}{
		{name: "silence", address: listen(t, say("")), want: "does not greet", is: context.DeadlineExceeded},
		{name: "ssh", address: listen(t, say("SSH-2.0-OpenSSH_9.2p1\r\n")), want: `it sent "SSH-2.0-OpenSSH_9.2p1"`},
		{name: "http", address: listen(t, say("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n400 Bad Request")), want: "does not speak the MySQL protocol"},
		{name: "redis", address: listen(t, say("-ERR unknown command\r\n")), want: "does not speak the MySQL protocol"},
		{name: "closes", address: closed, want: "does not speak the MySQL protocol"},
		{name: "too many connections", address: listen(t, say(errorPacket(0, 1040, "Too many connections"))), want: "Too many connections (1040): raise max_connections"},
		{name: "blocked host", address: listen(t, say(errorPacket(0, 1129, "Host '10.0.0.1' is blocked"))), want: "FLUSH HOSTS"},
		{name: "wrong password", address: listen(t, refuse(1045, "Access denied for user 'm'@'h' (using password: YES)")), want: "check user and password_file"},
		{name: "TLS required", address: listen(t, refuse(3159, "Connections using insecure transport are prohibited while --require_secure_transport=ON.")), want: "set tls in the target"},
		{name: "no TLS offered", address: listen(t, say(greetingOf("8.4.3"))), tls: &tls.Config{ServerName: "db"}, want: "does not offer TLS"},
		{name: "unknown certificate", address: listen(t, encrypted(t)), tls: &tls.Config{ServerName: "example.com"}, want: "unknown authority"},
		{name: "another name", address: listen(t, encrypted(t)), tls: &tls.Config{ServerName: "db.internal", RootCAs: testCA(t)}, want: "another name"},
		{name: "protocol of the last century", address: listen(t, say(packet(0, "\x093.23.58\x00"))), want: "too old"},
		{name: "not resolvable", address: "no-such-host.invalid:3306", want: "can't be resolved"},
		{name: "nothing listens", address: "127.0.0.1:1", want: "nothing is listening", is: syscall.ECONNREFUSED},
		{name: "no socket", address: "/nowhere/mysqld.sock", want: "does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := newProber(engine.Target{Name: "t", Address: tt.address, User: "m", Password: "s3cret", TLS: tt.tls}, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close() }()
			limit := 30 * time.Second // TLS takes long on a busy machine
			if errors.Is(tt.is, context.DeadlineExceeded) {
				limit = 300 * time.Millisecond
			}
			var last string
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				_, err := p.Probe(ctx)
				cancel()
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("%v, want %q", err, tt.want)
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("%v is not %v", err, tt.is)
				}
				if strings.ContainsAny(err.Error(), "\n\r") || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%q", err)
				}
				if last != "" && err.Error() != last {
					t.Errorf("the same cause reads differently:\n%s\n%s", last, err)
				}
				last = err.Error()
			}
		})
	}
}

// testCA returns a pool that trusts httptest's certificate.
func testCA(t *testing.T) *x509.CertPool {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	return pool
}

func TestBadSettings(t *testing.T) {
	open := Family().Open
	for _, target := range []engine.Target{
		{Address: "localhost"},
		{Address: ""},
		{Address: "localhost:3306", Options: map[string]string{"colour": "blue"}},
	} {
		if p, err := open(target, slog.New(slog.DiscardHandler)); err == nil {
			_ = p.Close()
			t.Errorf("%+v was accepted", target)
		}
	}
	p, err := open(engine.Target{Address: filepath.Join(t.TempDir(), "s.sock")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
}
