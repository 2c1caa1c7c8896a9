package engine

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
)

// A server may be anything that listens on the port. What it answers is bounded here,
// in bytes while it is read and in values before it is kept.
const (
	// maxAnswers is how many bytes a server may send in one tick. A MariaDB server with
	// all details sends 10 kB, a mongos with 1000 shards 1 MB.
	maxAnswers = 8 << 20
	// maxValues is how many values one answer may have, and maxText how many bytes each
	// text in it.
	maxValues = 4096
	maxText   = 1024
)

// ErrTooMuch is the error of reading an answer that is too long.
var ErrTooMuch = fmt.Errorf("the answer is longer than %d MB", maxAnswers>>20)

// Budget bounds what a server may send in one tick, on all connections to it. The zero
// Budget is spent. It is safe for concurrent use.
type Budget struct{ left atomic.Int64 }

// Renew begins a tick.
func (b *Budget) Renew() { b.left.Store(maxAnswers) }

// Spend ends the tick's budget: the server announced too much.
func (b *Budget) Spend() { b.left.Store(-1) }

// Check returns ErrTooMuch if the server has sent more, whatever a driver made of that,
// and else err.
func (b *Budget) Check(err error) error {
	if err != nil && b.left.Load() < 0 {
		return ErrTooMuch
	}
	return err
}

// Conn returns c with reading bounded.
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

// bound drops what is more than a server can have to say.
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

// isUnfit reports whether a text is longer than a name can be, or has what does
// something to a terminal.
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
