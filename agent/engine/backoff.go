package engine

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"time"
)

const (
	// quickRetries are made at every tick, so that a short outage is short.
	quickRetries = 5
	// maxBackoff is the longest pause between two attempts.
	maxBackoff = 5 * time.Second
)

// backoff returns how long to leave a target alone that failed failures times
// in a row, from 0 (next tick) to maxBackoff, a fifth of it by chance, so that
// many targets do not come back in step. A port on which nobody listens is
// asked at every tick: that costs nothing, and a server that starts is seen
// from its first second.
func backoff(failures int, interval time.Duration, err error) time.Duration {
	if failures <= quickRetries || errors.Is(err, syscall.ECONNREFUSED) {
		return 0
	}
	d := interval << min(failures-quickRetries, 10)
	if d <= 0 || d > maxBackoff {
		d = maxBackoff
	}
	return d - rand.N(d/5+1)
}
