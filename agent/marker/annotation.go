package marker

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of Grafana's database: the columns of its tag table hold 100
// characters each (pkg/services/sqlstore/migrations/tag_mig.go), and the tags
// of an annotation, as JSON, [annotations] tags_length bytes, 500 by default.
const (
	maxTagKey   = 100
	maxTagValue = 100
	maxAllTags  = 500
)

// annotation is a marker as Grafana's HTTP API has it.
type annotation struct {
	ID int64 `json:"id,omitempty"`
	// Time and TimeEnd are milliseconds since 1970. An annotation with equal
	// ones is a point; Grafana makes TimeEnd equal when it is left out.
	Time    int64    `json:"time"`
	TimeEnd int64    `json:"timeEnd,omitempty"`
	Text    string   `json:"text"`
	Tags    []string `json:"tags"`
}

// htmlText makes plain text into what Grafana, which shows an annotation's
// text as HTML, shows as that text.
var htmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", "\n", "<br>")

// annotationOf returns what Grafana should have for m.
func annotationOf(m *Marker) annotation {
	a := annotation{Time: m.Start.UnixMilli(), Text: htmlText.Replace(m.Text)}
	if !m.End.IsZero() {
		a.TimeEnd = m.End.UnixMilli()
	}
	tags := []string{identityTag(m.ID), "benchwatch", "kind:" + string(m.Kind)}
	if m.Run != "" {
		tags = append(tags, "run:"+m.Run)
	}
	a.Tags = fitTags(append(tags, m.Tags...))
	return a
}

// identityTag is the tag by which a marker is found again.
func identityTag(id string) string { return "marker:" + id }

// has reports whether Grafana's annotation is already as a wants it.
func (a *annotation) has(got *annotation) bool {
	end := a.TimeEnd
	if end == 0 {
		end = a.Time
	}
	return got.Text == a.Text && got.Time == a.Time && got.TimeEnd == end && sameSet(got.Tags, a.Tags)
}

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, s := range a {
		if !slices.Contains(b, s) {
			return false
		}
	}
	return true
}

// fitTags makes tags into those that Grafana takes and gives back unchanged,
// the first ones first, as many as there is room for.
func fitTags(tags []string) []string {
	var fit []string
	size := len("[]")
	for _, t := range tags {
		t = fitTag(t)
		// Some databases compare without regard to case and refuse the second.
		same := func(other string) bool { return strings.EqualFold(t, other) }
		if t == "" || slices.ContainsFunc(fit, same) {
			continue
		}
		if more := len(t) + len(`"",`); size+more <= maxAllTags {
			size += more
			fit = append(fit, t)
		}
	}
	return fit
}

// fitTag: Grafana splits a tag at its colons and keeps the first two parts.
func fitTag(tag string) string {
	key, value, found := strings.Cut(tag, ":")
	key = cutTag(key, maxTagKey)
	value = cutTag(strings.ReplaceAll(value, ":", "_"), maxTagValue)
	switch {
	case key == "":
		return value
	case !found || value == "":
		return key
	}
	return key + ":" + value
}

func cutTag(s string, n int) string {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > n {
		s = strings.TrimSpace(string([]rune(s)[:n]))
	}
	return s
}

// window is where a marker's annotation is looked for: wide, because people
// move annotations and clocks are set, but bounded, because Grafana's index is
// by time.
func window(m *Marker) (from, to time.Time) {
	const margin = 48 * time.Hour
	to = m.Start
	if m.End.After(to) {
		to = m.End
	}
	from = m.Start.Add(-margin)
	if from.Unix() <= 0 { // Grafana ignores a window that begins at 0
		from = time.Unix(1, 0)
	}
	return from, to.Add(margin)
}

// describe names a marker in a log line.
func describe(m *Marker) string {
	text, _, _ := strings.Cut(m.Text, "\n")
	return fmt.Sprintf("%s %q", m.Kind, Cut(text, 60))
}
