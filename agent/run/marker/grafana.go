package marker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/run/grafana"
)

const (
	maxFound = 1000
	// searchMargin makes the search for a marker wide, because people move annotations and set
	// clocks, but bounded, because Grafana's index is by time.
	searchMargin = 48 * time.Hour
)

// Limits of Grafana's database: the columns of its tag table hold 100
// characters each (pkg/services/sqlstore/migrations/tag_mig.go), and the tags
// of an annotation, as JSON, [annotations] tags_length bytes, 500 by default.
const (
	maxTagPart = 100
	maxAllTags = 500
)

// Grafana is a client for the annotations of the token's organisation. It is safe for concurrent
// use.
type Grafana struct{ client *grafana.Client }

// NewGrafana returns a client for the Grafana at address, with the token in tokenFile;
// see grafana.New.
func NewGrafana(address, tokenFile string) (*Grafana, error) {
	client, err := grafana.New(address, tokenFile)
	if err != nil {
		return nil, err
	}
	return &Grafana{client}, nil
}

// Close closes idle connections. g may be nil.
func (g *Grafana) Close() {
	if g != nil {
		g.client.Close()
	}
}

// upsert ensures that Grafana has m exactly once and returns the annotation's id. It first searches
// for the marker, so it can be repeated at any time. With verify it only removes duplicates: a
// deleted annotation stays deleted. It calls creating before the only request that makes a
// duplicate if repeated.
func (g *Grafana) upsert(ctx context.Context, m *Marker, verify bool, creating func(), log *slog.Logger) (int64, error) {
	found, err := g.find(ctx, m)
	if err != nil {
		return 0, err
	}
	want := annotationOf(m)
	if len(found) == 0 {
		if verify {
			return 0, nil
		}
		creating()
		return g.create(ctx, want)
	}
	for _, extra := range found[1:] {
		err := g.remove(ctx, extra.ID)
		if e, ok := errors.AsType[*requestError](err); ok && (e.Problem == grafana.Unreachable || e.Problem == grafana.Busy) {
			return 0, err
		}
		if err != nil && !grafana.IsStatus(err, http.StatusNotFound) { // without the permission, later attempts would fail too
			log.Warn("duplicate annotation not deleted", "marker", m, "err", err)
		}
	}
	if !verify && !want.equal(&found[0]) {
		err = g.update(ctx, found[0].ID, want)
	}
	return found[0].ID, err
}

// find returns Grafana's annotations with a marker's identity, oldest first.
func (g *Grafana) find(ctx context.Context, m *Marker) ([]annotation, error) {
	from, to := m.Start.Add(-searchMargin), m.Start.Add(searchMargin)
	if m.End.After(m.Start) {
		to = m.End.Add(searchMargin)
	}
	if from.Unix() <= 0 { // Grafana ignores a search from 0
		from = time.Unix(1, 0)
	}
	found, err := g.search(ctx, m, from, to, identityTag(m.ID))
	if err != nil || len(found) > 0 {
		return found, err
	}
	// Grafana writes an annotation and its tags in two steps. If the second step failed, the
	// annotation has its tags but a search does not find it. An update completes it.
	found, err = g.search(ctx, m, m.Start, m.Start)
	for i := range found {
		found[i].Text = "" // makes it differ from the wanted text
	}
	return found, err
}

func (g *Grafana) search(ctx context.Context, m *Marker, from, to time.Time, tags ...string) ([]annotation, error) {
	query := url.Values{
		"type": {"annotation"}, "limit": {strconv.Itoa(maxFound)}, "tags": tags,
		"from": {strconv.FormatInt(from.UnixMilli(), 10)}, "to": {strconv.FormatInt(to.UnixMilli(), 10)},
	}
	var all []annotation
	if err := g.do(ctx, http.MethodGet, "find", "?"+query.Encode(), nil, &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a annotation) bool {
		return a.ID <= 0 || !slices.Contains(a.Tags, identityTag(m.ID))
	})
	slices.SortFunc(all, func(a, b annotation) int { return cmp.Compare(a.ID, b.ID) })
	// Grafana may list an annotation twice if it has many dashboards.
	all = slices.CompactFunc(all, func(a, b annotation) bool { return a.ID == b.ID })
	return all[:min(len(all), maxFound)], nil
}

func (g *Grafana) create(ctx context.Context, a annotation) (int64, error) {
	var answer struct {
		ID int64 `json:"id"`
	}
	err := g.do(ctx, http.MethodPost, "create", "", a, &answer)
	if err == nil && answer.ID <= 0 {
		err = newRequestError("create", &grafana.RequestError{Problem: grafana.NotGrafana, Message: "the answer has no id"})
	}
	return answer.ID, err
}

func (g *Grafana) update(ctx context.Context, id int64, a annotation) error {
	a.TimeEnd = max(a.TimeEnd, a.Time) // Grafana keeps the old time if it is omitted
	return g.do(ctx, http.MethodPatch, "update", "/"+strconv.FormatInt(id, 10), a, &struct{}{})
}

func (g *Grafana) remove(ctx context.Context, id int64) error {
	return g.do(ctx, http.MethodDelete, "delete", "/"+strconv.FormatInt(id, 10), nil, &struct{}{})
}

// do makes one request to /api/annotations followed by rest. Errors are *requestError.
func (g *Grafana) do(ctx context.Context, method, op, rest string, in, out any) error {
	if err := g.client.Do(ctx, method, "/api/annotations"+rest, in, out); err != nil {
		return newRequestError(op, err)
	}
	return nil
}

// annotation is a marker in Grafana's HTTP API.
type annotation struct {
	ID int64 `json:"id,omitempty"`
	// Time and TimeEnd are milliseconds since 1970, equal for a point. Grafana sets an omitted
	// TimeEnd to Time.
	Time    int64    `json:"time"`
	TimeEnd int64    `json:"timeEnd,omitempty"`
	Text    string   `json:"text"`
	Tags    []string `json:"tags"`
}

// htmlText escapes plain text: Grafana shows an annotation's text as HTML.
var htmlText = strings.NewReplacer("&", "&amp;", "<", "&lt;", "\n", "<br>")

// annotationOf returns the annotation that Grafana should have for m.
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

// identityTag is the tag by which a marker is found.
func identityTag(id string) string { return "marker:" + id }

// equal reports whether Grafana's annotation already has the content of a.
func (a *annotation) equal(got *annotation) bool {
	return got.Text == a.Text && got.Time == a.Time && got.TimeEnd == max(a.TimeEnd, a.Time) &&
		slices.Equal(slices.Sorted(slices.Values(got.Tags)), slices.Sorted(slices.Values(a.Tags)))
}

// fitTags adapts tags so that Grafana accepts and returns them unchanged, and keeps as many as fit,
// the first ones first.
func fitTags(tags []string) []string {
	var fit []string
	size := len("[]")
	for _, t := range tags {
		t = fitTag(t)
		// Some databases ignore case and refuse the second.
		same := func(other string) bool { return strings.EqualFold(t, other) }
		more := len(t) + len(`"",`)
		if t != "" && size+more <= maxAllTags && !slices.ContainsFunc(fit, same) {
			size += more
			fit = append(fit, t)
		}
	}
	return fit
}

// fitTag: Grafana splits a tag at its colons and keeps the first two parts.
func fitTag(tag string) string {
	cut := func(s string) string {
		s = strings.TrimSpace(s)
		if utf8.RuneCountInString(s) > maxTagPart {
			s = strings.TrimSpace(string([]rune(s)[:maxTagPart]))
		}
		return s
	}
	key, value, _ := strings.Cut(tag, ":")
	key, value = cut(key), cut(strings.ReplaceAll(value, ":", "_"))
	if key == "" || value == "" {
		return key + value
	}
	return key + ":" + value
}
