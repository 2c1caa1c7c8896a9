package engine

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"time"
)

const (
	// quickRetries are made at every tick, so that a restart is seen at once.
	quickRetries = 5
	// maxBackoff is the longest pause between two attempts.
	maxBackoff = 10 * time.Second
	// maxBackoffRefused is for a port on which nobody listens: asking costs
	// nothing, and a server that starts should be seen from its first second.
	maxBackoffRefused = 2 * time.Second
)

// backoff returns how long to leave a target alone that failed failures times
// in a row, from 0 (next tick) to a maximum, a fifth of it by chance, so that
// many targets do not come back in step.
func backoff(failures int, interval time.Duration, err error) time.Duration {
	if failures <= quickRetries {
		return 0
	}
	limit := maxBackoff
	if errors.Is(err, syscall.ECONNREFUSED) {
		limit = maxBackoffRefused
	}
	d := interval << min(failures-quickRetries, 10)
	if d <= 0 || d > limit {
		d = limit
	}
	return d - rand.N(d/5+1)
}
