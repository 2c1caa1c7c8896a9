// Package marker keeps what is on the time axis of a run: the run itself as a
// region, and points and alerts beside it.
//
// Append adds a marker to a queue file in the run directory. A [Deliverer]
// brings the queues to Grafana, where each marker becomes exactly one
// annotation: it carries the marker's identity as a tag, and a delivery first
// looks for that tag. So a delivery can be repeated after a crash, a timeout or
// any other failure that leaves its outcome unknown.
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

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Kind is what a marker marks.
type Kind string

const (
	// Run is a run from its start to its end. A run has one.
	Run Kind = "run"
	// Point is an instant.
	Point Kind = "point"
	// Alert lasts from the firing of an alert to its resolution.
	Alert Kind = "alert"
)

// Limits of a marker. Append truncates to them.
const (
	maxText = 4000 // runes
	maxTags = 64
	maxTag  = 200 // runes
)

// Marker is a point or a region on the time axis. Text and tags are plain text, escaped where they
// are shown as HTML. Append blanks secrets.
type Marker struct {
	// ID is unique among all markers sent to one Grafana: lower-case letters, digits and '-'.
	// Append sets it if it is empty.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Run is the run's id, empty for a point without a run.
	Run  string `json:"run,omitempty"`
	Text string `json:"text"`
	// Tags are words or "key:value". The Deliverer adds tags for the marker's identity, its kind
	// and its run.
	Tags  []string  `json:"tags,omitempty"`
	Start time.Time `json:"start"`
	// End is zero for a point, and for a run or an alert that has not ended.
	End time.Time `json:"end,omitzero"`
}

// Read returns the markers of a run in chronological order, without the region of the run itself.
// It skips damaged lines. rundir.Directory(dataDir) holds the points without a run.
func Read(dir rundir.Directory) ([]Marker, error) {
	q := newQueue(dir)
	if err := q.refresh(true); err != nil {
		return nil, err
	}
	var markers []Marker
	for _, it := range q.items {
		if it.Kind != Run {
			markers = append(markers, it.Marker)
		}
	}
	slices.SortStableFunc(markers, func(a, b Marker) int { return a.Start.Compare(b.Start) })
	return markers, nil
}

// Append adds a marker to the queue of a run, or replaces the content of the
// marker with the same ID, or of the run's region. It writes nothing if the
// queue has the marker with this content or has already seen its end. When it
// returns, the marker is on disk. Several processes may append at once.
//
// The error is fs.ErrNotExist if the directory does not exist. A marker without
// text, with an unknown kind, an invalid ID or an impossible time is an error too.
func Append(dir rundir.Directory, m Marker) error {
	m, err := m.clean()
	if err != nil {
		return err
	}
	q := newQueue(dir)
	if m.ID != "" || m.Kind == Run {
		if err := q.refresh(true); err != nil {
			return err
		}
		if it := q.find(&m); it != nil {
			m.ID = it.ID
			if it.version == m.version() || !it.replaceableBy(&m) {
				return nil
			}
		}
	}
	if m.ID == "" {
		m.ID = strings.ToLower(rand.Text()[:16]) // 80 random bits
	}
	return appendEntry(q.path, entry{Marker: &m})
}

// clean returns m in the form that is stored.
func (m Marker) clean() (Marker, error) {
	m.Text = shorten(secret.Text(withoutEmptyLines(plain(m.Text))), maxText)
	storable := func(t time.Time) bool { return t.Unix() > 0 && t.UTC().Year() <= 9999 }
	switch {
	case m.Text == "":
		return m, errors.New("marker without text")
	case m.ID != "" && !validID(m.ID):
		return m, fmt.Errorf("marker id %q: use lower-case letters, digits and '-'", m.ID)
	case m.Kind != Run && m.Kind != Point && m.Kind != Alert:
		return m, fmt.Errorf("unknown kind of marker %q", m.Kind)
	case m.Kind == Run && m.Run == "":
		return m, errors.New("marker of a run without the run's id")
	case !storable(m.Start) || !m.End.IsZero() && !storable(m.End):
		return m, errors.New("marker's time is not between the years 1970 and 9999")
	}
	var tags []string
	for _, t := range m.Tags {
		t = secret.Text(strings.ReplaceAll(plain(t), "\n", " "))
		if key, value, ok := strings.Cut(t, ":"); ok {
			t = key + ":" + secret.Value(key, value)
		}
		t = shorten(t, maxTag)
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

// version identifies the content. Queue files hold it, so it must not change.
func (m *Marker) version() string {
	data, err := json.Marshal(m)
	if err != nil { // only for times that clean refuses
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// String names the marker in a log line.
func (m *Marker) String() string {
	text, _, _ := strings.Cut(m.Text, "\n")
	return fmt.Sprintf("%s %q", m.Kind, shorten(text, 60))
}

// validID: an id is part of a tag, so it must not contain anything that Grafana or a URL changes.
func validID(id string) bool {
	invalid := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, invalid)
}

// plain removes control and format characters except line ends, invalid UTF-8, and blanks at both
// ends.
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

func withoutEmptyLines(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" }), "\n")
}

// shorten cuts s to at most n runes and ends it with "…".
func shorten(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}

// Began opens the region of a run. It changes nothing if the run has a region or has ended.
// Generators of a group have no region, only the group has.
func (d *Deliverer) Began(dir rundir.Directory, meta rundir.Meta) {
	if !meta.Ended() && !meta.IsGenerator() {
		d.append(dir, ofRun(&meta, nil))
	}
}

// Settled closes the region of a run with its outcome.
func (d *Deliverer) Settled(dir rundir.Directory, snap ingest.Snapshot) {
	if !snap.Meta.IsGenerator() {
		d.append(dir, ofRun(&snap.Meta, snap.Summary))
	}
}

func (d *Deliverer) append(dir rundir.Directory, m Marker) {
	if err := Append(dir, m); err != nil {
		d.log.Error("marker not recorded", "run", m.Run, "err", err)
	}
	d.Kick()
}

// ofRun is the region of a run. Its text is the title, the workload and, after the end, the outcome
// and the throughput if the tool reported it.
func ofRun(meta *rundir.Meta, sum *ingest.Summary) Marker {
	m := Marker{Kind: Run, Run: meta.ID, Start: meta.StartedAt}
	var what []string
	for _, f := range meta.Facts() {
		_, isLabel := meta.Labels[f.Name]
		switch {
		case f.Value == "":
			continue
		case f.Name == "threads":
			what = append(what, table.Plural(meta.Threads, "thread"))
		case f.Name == "tool" || f.Name == "workload":
			what = append(what, f.Value)
		case !isLabel:
			continue // Grafana limits the tags of an annotation
		}
		m.Tags = append(m.Tags, f.Name+":"+f.Value)
	}
	m.Text = meta.Title + "\n" + strings.Join(what, ", ")
	if !meta.Ended() {
		return m
	}
	m.End = *meta.EndedAt
	m.Tags = append(m.Tags, "result:"+string(meta.Outcome))
	m.Text += "\n" + string(meta.Outcome)
	if meta.Reason != "" {
		m.Text += ": " + meta.Reason
	}
	if sum != nil {
		if v := sum.Report().Rate(tool.Transaction); v.Known {
			m.Text += fmt.Sprintf("\n%.1f transactions/s", v.Value)
		}
	}
	return m
}
