package mongodb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

// probeError probes once and checks the error's text.
func probeError(t *testing.T, p *prober, want ...string) error {
	t.Helper()
	s, err := p.Probe(probeContext(t))
	if err == nil {
		t.Fatalf("no error but %+v", s)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "not-so-secret") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error shows the password or has several lines: %q", err)
	}
	return err
}

// A stopped server is down at once, not only at the end of the tick, with an error that the
// sampler's back-off recognises. When it is back, the same prober works again.
func TestServerRestarts(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "standalone")
	p := openFake(t, f)
	mustProbe(t, p)
	address := f.Address()
	f.Stop()
	var err error
	for range 4 { // the first probes still use the connections that were cut
		if err = probeError(t, p, "mongodb: "); errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%q is not recognised as a refused connection", err)
	}

	again := startFake(t, address)
	serve(t, again, 2, composed, "7.0", "standalone")
	mustProbe(t, p)
}

// A server that accepts connections but never answers costs only the tick.
func TestServerHangs(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "pss-primary")
	p := openFake(t, f)
	mustProbe(t, p)
	release := make(chan struct{})
	f.answerFunc("serverStatus", func(bson.Raw) bson.D { <-release; return nil })
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, not the deadline", err)
	}
	close(release)
	serve(t, f, 2, composed, "7.0", "pss-primary")
	mustProbe(t, p)
}

// A refused login may have the code of a missing right; it fails the sample nevertheless.
func TestLoginUnauthorized(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "standalone")
	f.refuse("saslStart", codeUnauthorized, "Unauthorized", "logins are not allowed here")
	p := openFake(t, f, withUser)
	probeError(t, p, "logins are not allowed here")
}

func TestLoginRefused(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "standalone")
	f.refuse("saslStart", 18, "AuthenticationFailed", "Authentication failed.")
	p := openFake(t, f, withUser)
	probeError(t, p, "login refused", `"bench"`, `"admin"`, "auth_source")
}

func TestServerTooOld(t *testing.T) {
	f := newFake(t)
	f.answer("hello", fixture(t, "recorded-mongo-java-server-1.46.0", "isMaster.json"))
	p := openFake(t, f)
	probeError(t, p, "wire version 6", "MongoDB 4.4")
}

func TestStrangeHello(t *testing.T) {
	f := newFake(t)
	f.answer("hello", bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "maxWireVersion", Value: "many"}})
	p := openFake(t, f)
	probeError(t, p, "hello")
}

func TestNotMongoDB(t *testing.T) {
	greetings := map[string]string{
		"MySQL":           "J\x00\x00\x00\x0a8.0.39\x00\x08\x00\x00\x00abcdefgh\x00",
		"HTTP":            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n400 Bad Request",
		"nothing":         "",
		"length too long": "\xff\xff\xff\x7f\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00",
		"length negative": "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00",
		"empty reply":     "\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00",
	}
	for name, greeting := range greetings {
		t.Run(name, func(t *testing.T) {
			other := enginetest.Listen(t, "127.0.0.1:0", func(c net.Conn) {
				var buffer [4096]byte
				_, _ = c.Write([]byte(greeting))
				_, _ = c.Read(buffer[:])
			})
			p := openFake(t, newFake(t), func(target *engine.Target) { target.Address = other.Address() })
			probeError(t, p, "mongodb: ")
		})
	}
}

func TestTLSMismatch(t *testing.T) {
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "standalone")
	p := openFake(t, f, func(target *engine.Target) { target.TLS = &tls.Config{ServerName: "db1"} })
	// The fake interprets the client hello as a message of absurd length.
	probeError(t, p, "mongodb: ")

	plain := enginetest.Listen(t, "127.0.0.1:0", func(c net.Conn) {
		var buffer [4096]byte
		_, _ = c.Read(buffer[:])
		_, _ = c.Write([]byte("I do not speak TLS, whatever you say"))
	})
	p = openFake(t, f, func(target *engine.Target) {
		target.Address, target.TLS = plain.Address(), &tls.Config{ServerName: "db1"}
	})
	probeError(t, p, "does not speak TLS")
}

// The error names a certificate that can't be trusted or belongs to another host as the cause.
func TestCertificates(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate for example.com
	web.Close()
	f := newFake(t)
	serve(t, f, 1, composed, "7.0", "standalone")
	secured := &fakeServer{answers: f.answers}
	secured.Port = enginetest.Listen(t, "127.0.0.1:0", func(conn net.Conn) {
		secured.serve(tls.Server(conn, &tls.Config{Certificates: web.TLS.Certificates}))
	})
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	with := func(c *tls.Config) *prober {
		return openFake(t, secured, func(target *engine.Target) { target.TLS = c })
	}
	probeError(t, with(&tls.Config{ServerName: "example.com"}), "unknown authority", "set tls.ca_file")
	probeError(t, with(&tls.Config{ServerName: "db1", RootCAs: roots}), "another name")
	mustProbe(t, with(&tls.Config{ServerName: "example.com", RootCAs: roots}))
}

func TestUnknownHost(t *testing.T) {
	p := openFake(t, newFake(t), func(target *engine.Target) { target.Address = "mongo.invalid:27017" })
	probeError(t, p, "can't be resolved")
}

func TestServerWantsTLS(t *testing.T) {
	other := enginetest.Listen(t, "127.0.0.1:0", func(c net.Conn) {
		var buffer [4096]byte
		_, _ = c.Read(buffer[:])
	})
	p := openFake(t, newFake(t), func(target *engine.Target) { target.Address = other.Address() })
	probeError(t, p, "require TLS")
}

func TestSettings(t *testing.T) {
	cases := map[string]struct {
		target engine.Target
		want   string // in the error; empty: accepted
	}{
		"plain":              {target: engine.Target{Address: "db1:27017"}},
		"no address":         {want: "no address"},
		"a connection URL":   {target: engine.Target{Address: "mongodb://db1:27017"}, want: "not one host:port"},
		"several servers":    {target: engine.Target{Address: "db1:27017,db2:27017"}, want: "list each server"},
		"unknown option":     {target: engine.Target{Address: "db1:27017", Options: map[string]string{"authsource": "x"}}, want: "auth_source"},
		"unknown mechanism":  {target: engine.Target{Address: "db1:27017", User: "u", Options: map[string]string{"auth_mechanism": "MD5"}}, want: "SCRAM-SHA-256"},
		"source":             {target: engine.Target{Address: "db1:27017", User: "u", Options: map[string]string{"auth_source": "bench"}}},
		"certificate":        {target: engine.Target{Address: "db1:27017", Options: map[string]string{"auth_mechanism": "MONGODB-X509"}, TLS: &tls.Config{}}},
		"a unix socket":      {target: engine.Target{Address: "/tmp/mongodb-27017.sock"}},
		"LDAP (PLAIN) login": {target: engine.Target{Address: "db1:27017", User: "u", Password: "p", Options: map[string]string{"auth_mechanism": "PLAIN"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { enginetest.Refused(t, Engine, c.target, c.want) })
	}
}
