package marker

import (
	"encoding/json"
	"errors"
	"time"
)

// entry is one line of a queue file. Exactly one field is set.
type entry struct {
	// Marker adds a marker or replaces the content of the one with its id.
	Marker    *Marker    `json:"marker,omitempty"`
	Delivered *delivery  `json:"delivered,omitempty"`
	Rejected  *rejection `json:"rejected,omitempty"`
}

// delivery says that Grafana has a marker.
type delivery struct {
	ID      string `json:"id"`
	Version string `json:"version"` // of the marker's content
	// Annotation is Grafana's id of it, for the reader's information only.
	Annotation int64     `json:"annotation"`
	At         time.Time `json:"at"`
}

// rejection says that Grafana refused a marker for its content.
type rejection struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

var errDamaged = errors.New("damaged entry")

// parseEntry reads a line. Fields that a later version may add are ignored.
func parseEntry(line []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	n := 0
	if m := e.Marker; m != nil {
		n++
		clean, err := m.clean()
		if err != nil || !validID(m.ID) {
			return e, errDamaged
		}
		*m = clean
	}
	if d := e.Delivered; d != nil {
		n++
	}
	if r := e.Rejected; r != nil {
		n++
	}
	if n != 1 {
		return e, errDamaged
	}
	return e, nil
}

// State is a marker and what became of it.
type State struct {
	Marker
	// Annotation is Grafana's id of it, 0 if it was never delivered.
	Annotation int64
	// Delivered: Grafana has the marker as it is now.
	Delivered bool
	// Refused is why Grafana refused the marker as it is now, else empty.
	Refused string

	version          string
	deliveredVersion string
	refusedVersion   string
	refusedAt        time.Time
}

// update works out what is said about the marker's present content.
func (s *State) update() {
	s.Delivered = s.deliveredVersion == s.version
	if s.Delivered || s.refusedVersion != s.version {
		s.Refused = ""
	}
}

// ledger is what the entries of a queue add up to.
type ledger struct {
	states []*State // in the order of their first entry
	byID   map[string]*State
	puts   int // changes of content so far
	// ranges holds each run's range: two processes that both open one append
	// two markers, of which everyone who reads the file takes the first.
	ranges map[string]*State
}

func newLedger() ledger {
	return ledger{byID: map[string]*State{}, ranges: map[string]*State{}}
}

// apply adds an entry. Applying one twice changes nothing.
func (l *ledger) apply(e entry) {
	switch {
	case e.Marker != nil:
		l.put(*e.Marker)
	case e.Delivered != nil:
		if s := l.byID[e.Delivered.ID]; s != nil {
			s.deliveredVersion, s.Annotation = e.Delivered.Version, e.Delivered.Annotation
			s.update()
		}
	case e.Rejected != nil:
		if s := l.byID[e.Rejected.ID]; s != nil {
			s.refusedVersion, s.refusedAt = e.Rejected.Version, e.Rejected.At
			s.Refused = e.Rejected.Reason
			s.update()
		}
	}
}

func (l *ledger) put(m Marker) {
	s := l.byID[m.ID]
	if s == nil && m.Kind == Range {
		if s = l.ranges[m.Run]; s != nil {
			l.byID[m.ID] = s
		}
	}
	if s == nil {
		s = &State{}
		l.byID[m.ID] = s
		l.states = append(l.states, s)
		if m.Kind == Range {
			l.ranges[m.Run] = s
		}
	} else {
		if m.Kind != s.Kind || m.Run != s.Run || !s.End.IsZero() && m.End.IsZero() {
			return // a late "began" does not open again what has ended
		}
		m.ID = s.ID
	}
	s.Marker = m
	s.version = m.version()
	l.puts++
	s.update()
}
