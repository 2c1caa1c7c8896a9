package marker

import (
	"math/rand/v2"
	"os"
	"time"
)

const (
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxBackoffRefused is for a port on which nobody listens: asking costs
	// nothing, and markers should be there soon after Grafana is.
	maxBackoffRefused = 5 * time.Second
)

// backoff keeps all deliveries back while Grafana can't take any.
type backoff struct {
	failures int
	until    time.Time
	problem  string // what was logged
	class    problemClass
	// token is the token file's time when the token was not good enough.
	token time.Time
}

// problemClass tells problems apart that are worth a log line of their own.
type problemClass struct {
	problem problem
	status  int
}

// over reports whether it is time for the next attempt. A token file that was
// written since its token was refused ends the wait.
func (b *backoff) over(now time.Time, token Token) bool {
	if !now.Before(b.until) {
		return true
	}
	return b.class.problem == unauthorised && b.failures > 0 && token.File != "" && !modified(token.File).Equal(b.token)
}

// add notes a failure and reports whether it is of another kind than the one before.
func (b *backoff) add(e *requestError, now time.Time, token Token) bool {
	class := problemClass{e.problem, e.status}
	isNew := b.failures == 0 || class != b.class
	b.class, b.problem = class, e.Error()
	limit := maxBackoff
	if e.refusedConnection() {
		limit = maxBackoffRefused
	}
	pause := min(minBackoff<<min(b.failures, 10), limit)
	if e.problem == unauthorised {
		// Asking more often does not help.
		pause = maxBackoff
		b.token = modified(token.File)
	}
	pause -= rand.N(pause/4 + 1)
	b.until = now.Add(max(pause, e.retryAfter))
	b.failures++
	return isNew
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
