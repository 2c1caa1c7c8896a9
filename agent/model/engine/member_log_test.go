package engine

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestErrorIsLoggedOncePerCause guards that the local port of a connection does not make each
// attempt a new error.
func TestErrorIsLoggedOncePerCause(t *testing.T) {
	var log strings.Builder
	m := &member{log: slog.New(slog.NewTextHandler(&log, nil)), said: newSaid()}
	for i := range 5 {
		m.reportError(fmt.Sprintf("read tcp 127.0.0.1:%d->127.0.0.1:27017: connection reset by peer", 50000+i), time.Now())
		m.reportError(fmt.Sprintf("write tcp 127.0.0.1:%d->127.0.0.1:27017: broken pipe", 50000+i), time.Now())
	}
	if n := strings.Count(log.String(), "can't be sampled"); n != 2 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}
