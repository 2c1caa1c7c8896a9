package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// hostile is a malicious server. It keeps what the client sends after the login.
type hostile struct {
	address string
	mu      sync.Mutex
	got     bytes.Buffer
	sent    int
}

func (h *hostile) received() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got.String()
}

// say sends text and reports whether the client still reads.
func (h *hostile) say(c net.Conn, text string) bool {
	n, err := io.WriteString(c, text)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent += n
	return err == nil
}

// newHostile sends a greeting; login answers the login and statement each statement.
func newHostile(t *testing.T, login, statement func(*hostile, net.Conn)) *hostile {
	h := &hostile{}
	h.address = listen(t, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(c, greetingOf("8.4.3"))
		b := make([]byte, 64<<10)
		if _, err := c.Read(b); err != nil {
			return
		}
		login(h, c)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			h.mu.Lock()
			h.got.Write(b[:n])
			h.mu.Unlock()
			if n > 4 && b[3] == 0 && b[4] == 3 {
				statement(h, c)
			}
		}
	})
	return h
}

func (h *hostile) probe(t *testing.T) error {
	t.Helper()
	p, err := newProber(engine.Target{Name: "x", Address: h.address, User: "u", Password: "hunter2-secret"}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = func() (err error) { // as in the sampler
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		_, err = p.Probe(ctx)
		return err
	}()
	if err == nil {
		t.Error("no error")
	}
	return err
}

func welcome(h *hostile, c net.Conn) { h.say(c, packet(2, "\x00\x00\x00\x02\x00\x00\x00")) }

// TestHostileLocalInfile guards that a server which answers a statement with a request for a file
// of this machine receives nothing.
func TestHostileLocalInfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(file, []byte("canary of the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := false
	h := newHostile(t, welcome, func(h *hostile, c net.Conn) { asked = true; h.say(c, packet(1, "\xfb"+file)) })
	err := h.probe(t)
	if !asked || strings.Contains(h.received(), "canary of") {
		t.Errorf("asked %t, got %q, %v", asked, h.received(), err)
	}
}

// TestHostileLogin guards that no server receives the password in plain text, or by the broken hash
// of MySQL 4.0.
func TestHostileLogin(t *testing.T) {
	for name, request := range map[string]string{
		"clear": "\xfemysql_clear_password\x00", "old": "\xfe", "old by name": "\xfemysql_old_password\x0012345678\x00", "dialog": "\xfedialog\x00\x02Password: ",
	} {
		h := newHostile(t, func(h *hostile, c net.Conn) { h.say(c, packet(2, request)) }, func(*hostile, net.Conn) {})
		if err := h.probe(t); strings.Contains(h.received(), "hunter2") || len(h.received()) > 4 {
			t.Errorf("%s: got %q, %v", name, h.received(), err)
		}
	}
}

const column = "\x03def\x00\x00\x00\x04name\x00\x0c\x21\x00\x00\x01\x00\x00\xfd\x00\x00\x00\x00\x00"

// TestHostileAnswers guards that reading an endless answer stops after 8 MB.
func TestHostileAnswers(t *testing.T) {
	rows := packet(1, "\x02") + packet(2, column) + packet(3, column) + packet(4, "\xfe\x00\x00\x02\x00")
	huge := strings.Repeat("x", 1<<24)
	for name, answer := range map[string]func(*hostile, net.Conn){
		"rows": func(h *hostile, c net.Conn) {
			h.say(c, rows)
			for sequence := byte(5); ; sequence += 100 {
				var b strings.Builder
				for i := range byte(100) {
					b.WriteString(packet(sequence+i, "\x05name"+string(rune(97+i%26))+"\x017"))
				}
				if !h.say(c, b.String()) {
					return
				}
			}
		},
		"a value": func(h *hostile, c net.Conn) {
			h.say(c, rows)
			sequence := byte(5)
			for h.say(c, "\xff\xff\xff"+string([]byte{sequence})+huge[:1<<24-1]) {
				sequence++
			}
		},
		"number of columns": func(h *hostile, c net.Conn) {
			h.say(c, packet(1, "\xfe\x00\x00\x00\x00\x00\x01\x00\x00"))
		},
		"columns": func(h *hostile, c net.Conn) {
			h.say(c, packet(1, "\xfc\xff\xff"))
			sequence := byte(2)
			for h.say(c, packet(sequence, column)) {
				sequence++
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, welcome, answer)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := h.probe(t)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, engine.ErrTooMuch) && name != "columns" { // what follows these may make the driver panic
				t.Errorf("%v", err)
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.sent > 48<<20 {
				t.Errorf("took %d MB: %v", h.sent>>20, err)
			}
			if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 200<<20 {
				t.Errorf("%d MB of memory", grown>>20)
			}
		})
	}
}
