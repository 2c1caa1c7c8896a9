package engine

import (
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Channel is one connection of a replica to a source. A replica can have several, each with a history of
// its own, and transactions of its own besides.
type Channel struct {
	Name string
	// Source is the source's id, as its position's Origin returns it.
	Source string
	// Position is what the replica has executed, for a comparison with the source's position.
	Position Position
	// Delay is how long the replica is configured to wait before it applies a transaction.
	Delay time.Duration
	// Running: the replica is connected, receives and applies. Queue is the number of transactions
	// received but not executed.
	Running bool
	Queue   series.Optional[float64]
}

// Originator is a Position that knows which server's it is.
type Originator interface {
	Origin() string
	// Collides reports whether a replica of both servers can't distinguish their histories.
	Collides(other Position) bool
}

// Origin returns the id of the server whose position p is; empty if unknown.
func Origin(p Position) string {
	if o, ok := p.(Originator); ok {
		return strings.ToLower(o.Origin())
	}
	return ""
}

// ChannelLag is how far one channel is behind its source.
type ChannelLag struct {
	Channel               string
	Transactions, Seconds series.Optional[float64]
}

// Sources are positions by the id of their server.
type Sources map[string]Position

// Above returns the positions of a channel's source and of the servers from which that replicates in turn, as
// far as they are known; false if the source is not known, or collides with one of another channel. followed
// are the channels of the servers, by id.
func (s Sources) Above(channels []Channel, i int, followed map[string][]Channel) (above []Position, ok bool) {
	source := strings.ToLower(channels[i].Source)
	position, ok := s[source]
	if !ok || source == "" {
		return nil, false
	}
	for k := range channels {
		other := s[strings.ToLower(channels[k].Source)]
		if o, is := position.(Originator); k != i && other != nil && is && o.Collides(other) {
			return nil, false
		}
	}
	seen := map[string]bool{source: true}
	for next := []string{source}; len(next) > 0; next = next[1:] {
		above = append(above, s[next[0]])
		for _, c := range followed[next[0]] {
			id := strings.ToLower(c.Source)
			if s[id] != nil && !seen[id] {
				seen[id] = true
				next = append(next, id)
			}
		}
	}
	return above, true
}

// sourceHistory is the history of one source's positions.
type sourceHistory struct {
	history
	last time.Time // of the last position
}

// follow measures the lag of the replicas whose sources are known, each channel by the history of its own source, and
// returns these replicas. A replica lags as far as its worst channel.
//
// It also returns the sources that replicate from no other server, which can't be behind.
func (t *lagTracker) follow(samples []*Sample) (followers, roots map[*Sample]bool) {
	now, followed := Sources{}, map[string][]Channel{}
	var replicas []*Sample
	ambiguous := map[string]bool{}
	for _, s := range samples {
		if !s.Up() || s.Status.Position == nil && len(s.Status.Channels) == 0 {
			continue
		}
		if id := Origin(s.Status.Position); id != "" && s.Status.Replicating {
			if now[id] != nil {
				ambiguous[id] = true // MariaDB's numbers of servers
			}
			now[id], followed[id] = s.Status.Position, s.Status.Channels
		}
		if len(s.Status.Channels) > 0 {
			replicas = append(replicas, s)
		}
	}
	for id := range ambiguous {
		delete(now, id)
	}
	if len(replicas) == 0 {
		return nil, nil
	}
	t.keepSources(now, samples, replicas)
	followers, roots = map[*Sample]bool{}, map[*Sample]bool{}
	for _, s := range replicas {
		if t.followOne(s, now, followed) {
			followers[s] = true
		}
	}
	for _, s := range samples {
		if s.Up() && len(s.Status.Channels) == 0 && s.Status.Role == "primary" && t.sources[Origin(s.Status.Position)] != nil {
			roots[s] = true
		}
	}
	return followers, roots
}

// keepSources adds the positions of the replicas' sources to their histories. For a source that does not answer it
// is what its replica has received; otherwise the source would seem to have moved during the whole time when it
// answers again.
func (t *lagTracker) keepSources(now Sources, samples, replicas []*Sample) {
	at := map[string]time.Time{}
	for _, s := range samples {
		if s.Up() {
			at[Origin(s.Status.Position)] = s.Answered
		}
	}
	for _, s := range replicas {
		for i := range s.Status.Channels {
			id := strings.ToLower(s.Status.Channels[i].Source)
			h := t.sources[id]
			switch position := now[id]; {
			case position != nil && h == nil:
				if t.sources == nil {
					t.sources = map[string]*sourceHistory{}
				}
				h = &sourceHistory{}
				t.sources[id] = h
				fallthrough
			case position != nil:
				if !h.last.Equal(at[id]) {
					h.add(position, at[id], true)
					h.last = at[id]
				}
			case h != nil:
				if received := s.Status.Received; received != nil && len(s.Status.Channels) == 1 {
					h.add(received, s.Answered, false)
				}
			}
		}
	}
}

// followOne sets the lag of one replica; false if none of its sources is known.
func (t *lagTracker) followOne(s *Sample, now Sources, followed map[string][]Channel) bool {
	channels := s.Status.Channels
	known, unknown := 0, false
	var worst, seconds series.Optional[float64]
	var lags []ChannelLag
	for i := range channels {
		c := &channels[i]
		lag := ChannelLag{Channel: c.Name}
		above, ok := now.Above(channels, i, followed)
		switch {
		case ok && c.Position != nil:
			known++
			lag.Transactions = behindAll(c.Position, above)
			lag.Seconds = t.secondsBehind(c, above, s.Answered)
		case now[strings.ToLower(c.Source)] == nil && c.Running && c.Queue.Known: // what it has received
			lag.Transactions = c.Queue
			if c.Queue.Value == 0 {
				lag.Seconds = series.Some(0.0)
			}
		case now[strings.ToLower(c.Source)] != nil:
			known++ // but not comparable
		}
		unknown = unknown || !lag.Transactions.Known
		worst, seconds = larger(worst, lag.Transactions), larger(seconds, lag.Seconds)
		lags = append(lags, lag)
	}
	if known == 0 {
		return false
	}
	if len(channels) > 1 {
		s.Channels = lags
	}
	counted := !unknown || worst.Value > 0
	if counted {
		s.LagTransactions = worst
	}
	switch own := s.Status.LagSeconds; {
	case len(channels) == 1 && own.Known && (worst.Value > 0 || !worst.Known): // finer
	case len(channels) == 1 && !seconds.Known: // the server's own, if any
	case !everySecond(lags) && seconds.Value == 0:
		s.LagSeconds = series.Optional[float64]{}
	default:
		s.LagSeconds = seconds
	}
	return true
}

// everySecond reports whether the lag in seconds of each channel is known.
func everySecond(lags []ChannelLag) bool {
	for _, l := range lags {
		if !l.Seconds.Known {
			return false
		}
	}
	return true
}

func larger(a, b series.Optional[float64]) series.Optional[float64] {
	if !a.Known || b.Known && b.Value > a.Value {
		return b
	}
	return a
}

// behindAll returns how many transactions of the worst of several positions are missing at p.
func behindAll(p Position, all []Position) (worst series.Optional[float64]) {
	for _, other := range all {
		if n, ok := p.Behind(other); ok {
			worst = larger(worst, series.Some(float64(n)))
		}
	}
	return worst
}

// secondsBehind returns the lag of a channel by the histories of the sources above it, without the configured
// delay.
func (t *lagTracker) secondsBehind(c *Channel, above []Position, at time.Time) (worst series.Optional[float64]) {
	for _, position := range above {
		h := t.sources[Origin(position)]
		if h == nil || len(h.entries) == 0 || !SameHistory(c.Position, position) {
			continue
		}
		if lag, ok := h.lag(c.Position, at); ok {
			worst = larger(worst, series.Some(max(0, lag-c.Delay).Seconds()))
		}
	}
	return worst
}
