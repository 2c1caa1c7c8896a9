package mysql

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const hearsayPassword = "hunter2-secret"

// thief is a server that only another server named. It reads all that it gets, also within TLS.
type thief struct {
	address string
	mu      sync.Mutex
	got     [][]byte
	key     *rsa.PrivateKey
}

// newThief starts a server with these capabilities. After the client's login it sends the packets in ask, one
// after each answer.
func newThief(t *testing.T, capabilities uint32, plugin string, ask ...string) *thief {
	th := &thief{}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	if th.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: private}}}
	th.address = listen(t, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		g := serverGreeting{version: []byte("8.4.3")}
		hello := strings.Replace(string(g.forDriver(capabilities)), "mysql_native_password", plugin, 1)
		_, _ = io.WriteString(c, packet(0, hello))
		seq, conn := byte(2), c
		first := th.read(conn)
		if len(first) == sslRequest-4 {
			secure := tls.Server(c, config)
			if secure.Handshake() != nil {
				return
			}
			conn, seq = secure, 3
			first = th.read(conn)
		}
		for _, p := range ask {
			if first == nil {
				return
			}
			_, _ = io.WriteString(conn, packet(seq, p))
			seq += 2
			first = th.read(conn)
		}
		for answer := first; answer != nil; { // what follows is recorded
			answer = th.read(conn)
		}
	})
	return th
}

func (th *thief) read(c net.Conn) []byte {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil
	}
	p := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	if _, err := io.ReadFull(c, p); err != nil {
		return nil
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	th.got = append(th.got, p)
	return p
}

// publicKey is the packet with which the server offers a key to encrypt the password.
func publicKey(t *testing.T) string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return "\x01" + string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// TestHearsay guards that an address which only another server named gets no password: not in clear text, not
// encrypted, not within TLS, and not on a connection without TLS if the tool uses TLS.
func TestHearsay(t *testing.T) {
	const plain = ownCapabilities
	full := "\x01\x04"
	insecure := &tls.Config{InsecureSkipVerify: true}
	for _, c := range []struct {
		name   string
		server *thief
		tls    *tls.Config
		maybe  bool
		want   string
		most   int // packets that the server gets, with the request for TLS
	}{
		{"clear text", newThief(t, plain, "mysql_native_password", "\xfemysql_clear_password\x00"), nil, false, "the password itself", 1},
		{"clear text at once", newThief(t, plain, "mysql_clear_password", full), nil, false, "the password itself", 1},
		{"dialog", newThief(t, plain, "mysql_native_password", "\xfedialog\x00\x02Password: "), nil, false, "the password itself", 1},
		{"old hash", newThief(t, plain, "mysql_native_password", "\xfe"), nil, false, "method", 1},
		{"full login", newThief(t, plain, "caching_sha2_password", full, publicKey(t)), nil, false, "the password itself", 1},
		{"key at once", newThief(t, plain, "caching_sha2_password", publicKey(t)), nil, false, "the password itself", 1},
		{"sha256", newThief(t, plain, "sha256_password", publicKey(t)), nil, false, "the password itself", 1},
		{"switch to sha256", newThief(t, plain, "mysql_native_password", "\xfesha256_password\x0001234567890123456789\x00", publicKey(t)), nil, false, "the password itself", 1},
		{"full login within TLS", newThief(t, plain|capSSL, "caching_sha2_password", full, publicKey(t)), insecure, false, "the password itself", 2},
		{"clear text within TLS", newThief(t, plain|capSSL, "mysql_native_password", "\xfemysql_clear_password\x00"), insecure, false, "the password itself", 2},
		{"sha256 within TLS", newThief(t, plain|capSSL, "mysql_native_password", "\xfesha256_password\x0001234567890123456789\x00"), insecure, false, "the password itself", 2},
		{"no TLS", newThief(t, plain, "mysql_native_password"), insecure, false, "does not offer TLS", 0},
		{"wrong certificate", newThief(t, plain|capSSL, "mysql_native_password"), &tls.Config{ServerName: "db2"}, false, "is for another name", 1},
		{"no TLS, which is optional", newThief(t, plain, "caching_sha2_password", full), insecure, true, "the password itself", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := newProber(engine.Target{Name: "x", Address: c.server.address, User: "u", Password: hearsayPassword,
				Hearsay: true, TLS: c.tls, TLSOptional: c.maybe}, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err = p.Probe(ctx)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), hearsayPassword) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			c.server.mu.Lock()
			defer c.server.mu.Unlock()
			if len(c.server.got) > c.most {
				t.Errorf("the server got %d packets: %q", len(c.server.got), c.server.got)
			}
			for _, packet := range c.server.got {
				if strings.Contains(string(packet), hearsayPassword) {
					t.Errorf("the server got the password: %q", packet)
				}
				if len(packet) == 256 {
					t.Error("the server got something encrypted")
				}
			}
		})
	}
}

func FuzzGreeting(f *testing.F) {
	g := serverGreeting{version: []byte("8.4.3")}
	f.Add(g.forDriver(ownCapabilities))
	f.Add([]byte{10, 0})
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) == 0 {
			return
		}
		if g, err := parseGreeting(p); err == nil && len(g.scramble) > len(p) {
			t.Error("the challenge is longer than the packet")
		}
	})
}
