package scan

// The bounds of a Memo.
const (
	MaxNames = 128
	MaxName  = 96
)

// Memo remembers what the names in a tool's output stand for, so that a line costs
// no allocation. It is quickest for names that come in the same order each time.
type Memo[T any] struct {
	known []entry[T]
	next  int // where the next name is expected
}

type entry[T any] struct {
	raw   string
	value *T
}

// Rewind expects the first name next, as at the beginning of a line.
func (m *Memo[T]) Rewind() { m.next = 0 }

// Find returns what raw stands for, which is the same pointer each time: what
// create returned at its first appearance. It is nil if create returned nil, and
// for new names that are too long or too many.
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

// expected takes the name that is expected next and the ": " after it, and returns
// what the name means; false if the line has something else there.
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

// All calls yield for each name's value, in order of appearance.
func (m *Memo[T]) All(yield func(*T) bool) {
	for _, e := range m.known {
		if !yield(e.value) {
			return
		}
	}
}
