package scan

// The limits of a Memo.
const (
	MaxNames = 128
	MaxName  = 96
)

// Memo remembers the meaning of names in a tool's output, so that reading a line does not allocate.
// It is fastest if names come in the same order each time.
type Memo[T any] struct {
	known []entry[T]
	next  int // expected index of the next name
}

type entry[T any] struct {
	raw   string
	value *T
}

// Rewind expects the first name next, as at the beginning of a line.
func (m *Memo[T]) Rewind() { m.next = 0 }

// Find returns the meaning of raw, always the same pointer: the result of create at the first
// occurrence. It returns nil if create did, and for new names that are too long or too many.
func (m *Memo[T]) Find(raw []byte, create func(raw string) *T) *T {
	if m.next < len(m.known) && m.known[m.next].raw == string(raw) {
		m.next++
		return m.known[m.next-1].value
	}
	for i := range m.known {
		if m.known[i].raw == string(raw) {
			m.next = i + 1
			return m.known[i].value
		}
	}
	if len(m.known) == MaxNames || len(raw) > MaxName {
		return nil
	}
	name := string(raw)
	value := create(name)
	if value != nil {
		m.known = append(m.known, entry[T]{name, value})
		m.next = 0
	}
	return value
}

// expected takes the expected next name and the ": " after it, and returns its meaning; false if
// the line continues differently.
func (m *Memo[T]) expected(l *Line) (*T, bool) {
	if m.next >= len(m.known) {
		return nil, false
	}
	e, rest := &m.known[m.next], l.text[l.at:]
	n := len(e.raw)
	if len(rest) < n+2 || rest[n] != ':' || rest[n+1] != ' ' || string(rest[:n]) != e.raw {
		return nil, false
	}
	l.at += n + 2
	m.next++
	return e.value, true
}

// All calls yield for the meaning of each name, in order of first occurrence.
func (m *Memo[T]) All(yield func(*T) bool) {
	for _, e := range m.known {
		if !yield(e.value) {
			return
		}
	}
}
