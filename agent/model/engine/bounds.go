package engine

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
)

// Anything may be listening on a server's port. These limits apply to its answers, in bytes while
// reading and in values afterwards.
const (
	// maxAnswers is the number of bytes that a server may send in one tick. A MariaDB server with
	// all details sends 10 kB, a mongos with 1000 shards 1 MB.
	maxAnswers = 8 << 20
	// maxValues is the maximum number of values in one answer, maxText the maximum length of each
	// text in bytes.
	maxValues = 4096
	maxText   = 1024
)

// ErrTooMuch is returned for an answer that is too long.
var ErrTooMuch = fmt.Errorf("the answer is longer than %d MB", maxAnswers>>20)

// Budget limits the bytes that a server may send in one tick, on all its connections. The zero
// Budget is used up. It is safe for concurrent use.
type Budget struct{ left atomic.Int64 }

// Renew begins a tick.
func (b *Budget) Renew() { b.left.Store(maxAnswers) }

// Spend uses up the tick's budget, because the server announced too much.
func (b *Budget) Spend() { b.left.Store(-1) }

// Check returns ErrTooMuch if the server sent too much, even if a driver returned another error or
// none; otherwise it returns err.
func (b *Budget) Check(err error) error {
	if err != nil && b.left.Load() < 0 {
		return ErrTooMuch
	}
	return err
}

// Conn returns c with limited reading.
func (b *Budget) Conn(c net.Conn) net.Conn { return &boundedConn{c, b} }

type boundedConn struct {
	net.Conn
	budget *Budget
}

// Read implements net.Conn.
func (c *boundedConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if c.budget.left.Add(-int64(n)) < 0 {
		return 0, ErrTooMuch
	}
	return n, err
}

// bound drops values and texts beyond what a real server sends.
func (s *Status) bound() {
	if len(s.Values) > maxValues {
		s.Values = s.Values[:maxValues]
		s.Missing = append(s.Missing, fmt.Sprintf("the values after the first %d", maxValues))
	}
	for i := range s.Values {
		v := &s.Values[i]
		if slices.ContainsFunc(v.Labels, isUnfit) {
			v.Labels = slices.Clone(v.Labels)
			for j, label := range v.Labels {
				v.Labels[j] = fit(label)
			}
		}
	}
	for _, text := range []*string{&s.Version, &s.Flavour, &s.Nodename, &s.Role} {
		*text = fit(*text)
	}
	if len(s.Missing) > maxValues {
		s.Missing = s.Missing[:maxValues]
	}
	for i, text := range s.Missing {
		s.Missing[i] = fit(text)
	}
}

// isUnfit reports whether a text is too long for a name or contains control characters.
func isUnfit(s string) bool { return len(s) > maxText || strings.ContainsFunc(s, unicode.IsControl) }

// fit returns s as one line of at most maxText bytes.
func fit(s string) string {
	if !isUnfit(s) {
		return s
	}
	s = OneLine(s[:min(len(s), 2*maxText)])
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
