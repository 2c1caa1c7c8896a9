package engine_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// mute accepts connections and never answers.
func mute(t *testing.T) (address string, connections func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() {
		l.Close()
		for c := range accepted {
			c.Close()
		}
	})
	return l.Addr().String(), func() int { return len(accepted) }
}

// TestMuteWitnesses: servers of every engine that accept connections and never answer delay a look by less than a second,
// all at once, and are left alone for a while. Closing does not wait for them.
func TestMuteWitnesses(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	address, connections := mute(t)
	w := engine.NewWitnesses(func(target engine.Target) (engine.Prober, error) {
		return registry.ByName(target.Engine).Open(target, log)
	}, log)
	var targets []engine.Target
	for _, name := range []string{"mysql", "postgresql", "mongodb", "pgbouncer"} {
		targets = append(targets, engine.Target{Name: name, Engine: name, Address: address, User: "u", Password: "p"})
	}
	off := engine.Target{Name: "off", Engine: "mysql", Address: address, Options: map[string]string{engine.OptionCapture: engine.Off}}
	w.Arm("r", append(targets, off))
	for i := range 3 {
		begin := time.Now()
		answers := w.Testify(t.Context(), "r")
		if took := time.Since(begin); took > 1500*time.Millisecond {
			t.Errorf("a look took %v", took)
		}
		if i == 0 && len(answers) != len(targets) || len(answers) > len(targets) {
			t.Fatalf("%d answers", len(answers))
		}
		for _, a := range answers {
			if a.Error == "" || a.Engine != a.Target {
				t.Errorf("%+v", a)
			}
		}
	}
	if len(w.Testify(t.Context(), "other")) != 0 {
		t.Error("another run has answers")
	}
	begin := time.Now()
	w.Close()
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("closing took %v", took)
	}
	n := connections()
	w.Arm("r", targets)
	if len(w.Testify(context.Background(), "r")) != 0 || connections() != n {
		t.Error("armed after Close")
	}
}

// quick is a server that answers at once.
type quick struct{ engine.Prober }

func (quick) Arm(context.Context) error { return nil }
func (quick) Close() error              { return nil }
func (quick) Testify(context.Context) (*evidence.Answer, error) {
	return &evidence.Answer{Active: 3}, nil
}

// TestMuteWitnessBesideOthers: a server that never answers keeps the answers of no other one from a look.
func TestMuteWitnessBesideOthers(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	address, _ := mute(t)
	w := engine.NewWitnesses(func(target engine.Target) (engine.Prober, error) {
		if target.Name != "mute" {
			return quick{}, nil
		}
		return registry.ByName("mysql").Open(target, log)
	}, log)
	t.Cleanup(w.Close)
	w.Arm("r", []engine.Target{{Name: "mute", Engine: "mysql", Address: address, User: "u"}, {Name: "n2", Engine: "mysql"}})
	answered := 0
	for range 4 { // during the first one, it may still be connecting
		for _, a := range w.Testify(t.Context(), "r") {
			if a.Target == "n2" && a.Active == 3 && a.Error == "" && a.Seconds < 0.5 {
				answered++
			}
		}
	}
	if answered < 3 {
		t.Errorf("%d answers of n2", answered)
	}
}
