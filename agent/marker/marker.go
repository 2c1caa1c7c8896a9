// Package marker keeps what is drawn on the time axis of a run: the run itself
// as a range, and points where something was changed or noticed. Markers are
// appended to a queue file beside the run and delivered from there to Grafana
// as annotations, each exactly once.
package marker

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind tells what a marker marks.
type Kind string

const (
	// Range is a run from its start to its end. A queue holds one a run.
	Range Kind = "run"
	// Point is an instant.
	Point Kind = "point"
	// Alert lasts from when an alert fired to when it was resolved.
	Alert Kind = "alert"
)

// Limits of what a marker holds; what is longer is cut.
const (
	MaxText = 4000 // runes
	maxTags = 64
	maxTag  = 200 // runes
)

// Marker is one mark. Text and tags are plain: they are escaped where they are
// shown as HTML. They must hold no secrets.
type Marker struct {
	// ID is unique among all markers that ever go to one Grafana. Append makes
	// one if it is empty.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Run is the run's id; a Point may be without.
	Run  string `json:"run,omitempty"`
	Text string `json:"text"`
	// Tags are words or "key:value". Those by which markers are found
	// (benchwatch, kind, run, marker) are added on delivery.
	Tags  []string  `json:"tags,omitempty"`
	Start time.Time `json:"start"`
	// End is zero for a point, and for a run or alert that goes on.
	End time.Time `json:"end,omitzero"`
}

// clean returns m as it is stored, or says why it can't be.
func (m Marker) clean() (Marker, error) {
	m.Text = Cut(noEmptyLines(plain(m.Text)), MaxText)
	if m.Text == "" {
		return m, errors.New("marker without text")
	}
	switch {
	case m.Kind != Range && m.Kind != Point && m.Kind != Alert:
		return m, fmt.Errorf("unknown kind of marker %q", m.Kind)
	case m.Kind == Range && m.Run == "":
		return m, errors.New("marker of a run without the run's id")
	case !storable(m.Start) || !m.End.IsZero() && !storable(m.End):
		return m, errors.New("marker's time is not between the years 1970 and 9999")
	}
	var tags []string
	for _, t := range m.Tags {
		t = Cut(strings.ReplaceAll(plain(t), "\n", " "), maxTag)
		if t != "" && !strings.HasSuffix(t, ":") && !slices.Contains(tags, t) && len(tags) < maxTags {
			tags = append(tags, t)
		}
	}
	m.Tags = tags
	// Grafana counts in milliseconds.
	m.Start = m.Start.UTC().Truncate(time.Millisecond)
	if !m.End.IsZero() {
		m.End = m.End.UTC().Truncate(time.Millisecond)
		if m.End.Before(m.Start) { // the clock was set back meanwhile
			m.End = m.Start
		}
	}
	return m, nil
}

func storable(t time.Time) bool {
	return t.Unix() > 0 && t.UTC().Year() <= 9999
}

// version identifies m's content, so that it is known which content was delivered.
func (m *Marker) version() string {
	data, err := json.Marshal(m)
	if err != nil { // only for times that clean refuses
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// newID returns 80 random bits as 16 lower-case letters and digits.
func newID() string { return strings.ToLower(rand.Text()[:16]) }

// validID: ids become part of a tag, so they hold nothing that Grafana or a URL changes.
func validID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

// plain removes what isn't text: control and format characters but for line ends,
// invalid UTF-8 and blanks around.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\r' || r == utf8.RuneError:
			return -1
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return ' '
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

func noEmptyLines(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" }), "\n")
}

// Cut shortens s to at most n runes, with … at the end where it was longer.
func Cut(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return strings.TrimSpace(string(r[:n-1])) + "…"
}
