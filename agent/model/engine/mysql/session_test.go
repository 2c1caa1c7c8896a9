package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// TestStatementEnds guards that a statement without an answer ends with its context, and that the connection is
// not used afterwards.
func TestStatementEnds(t *testing.T) {
	asked := make(chan struct{}, 10)
	h := newHostile(t, welcome, func(*hostile, net.Conn) { asked <- struct{}{} })
	p, err := newProber(engine.Target{Name: "x", Address: h.address, User: "u"}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := p.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("after the deadline: %v", err)
	}
	<-asked

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	var stopped time.Time
	go func() {
		<-asked
		stopped = time.Now()
		cancel()
	}()
	if _, err := p.Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after it was cancelled: %v", err)
	}
	if waited := time.Since(stopped); waited > 2*time.Second {
		t.Errorf("it ended %v after it was cancelled", waited)
	}
	if p.(*prober).conn != nil {
		t.Error("the connection stays open")
	}
}

// TestContextEndsBetweenStatements guards that a context that has ended does not end the next statement's connection
// unnoticed: an optional reading that took too long must not fail the sample with a wrong cause.
func TestContextEndsBetweenStatements(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	s := &session{net: client}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.within(ctx, func(inner context.Context) error {
		cancel()
		if inner.Done() != nil {
			t.Error("the driver would watch its context")
		}
		return driver.ErrBadConn
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := s.within(t.Context(), func(context.Context) error { return nil }); !lost(err) {
		t.Errorf("the connection is still used: %v", err)
	}
}

// TestAppendText guards that numbers are printed as the server printed them.
func TestAppendText(t *testing.T) {
	for want, value := range map[string]driver.Value{
		"": nil, "text": []byte("text"), "-7": int64(-7), "18446744073709551615": uint64(1<<64 - 1), "0.1": float32(0.1), "1e+21": 1e21, "true": true,
	} {
		if got := string(appendText(nil, value)); got != want {
			t.Errorf("%v is %q, want %q", value, got, want)
		}
	}
}
