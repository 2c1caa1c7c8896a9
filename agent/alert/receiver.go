// Package alert receives alerts from Alertmanager and marks the runs that they
// concern.
package alert

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/rundir"
	"github.com/benchwatch/benchwatch/agent/secret"
)

const (
	maxBody   = 1 << 20 // bytes
	maxAlerts = 500     // of one request
	// recentRuns is how many of the newest runs are searched for an alert that is
	// resolved after its run has ended.
	recentRuns = 20
)

// Receiver is an HTTP handler for Alertmanager's webhook (version 4). It marks
// the run that the alert's label run names, or else all active runs, from the
// alert's start to its resolution. Alertmanager repeats itself; each alert is one
// marker per run. A Receiver is safe for concurrent use.
type Receiver struct {
	// DataDir holds the runs.
	DataDir string
	// TokenFile holds what Alertmanager must send as bearer token (http_config,
	// authorization, credentials_file). It is read at each request.
	TokenFile string
	// Marked, if set, is called after a marker may have been written.
	Marked func()
	Log    *slog.Logger
}

// message is what Alertmanager posts
// (prometheus/alertmanager, notify/webhook and template.Data).
type message struct {
	Version string  `json:"version"`
	Alerts  []alert `json:"alerts"`
}

type alert struct {
	Status      string            `json:"status"` // firing or resolved
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
	Fingerprint string            `json:"fingerprint"` // of the labels
}

// ServeHTTP answers 2xx when all alerts are on disk. Alertmanager repeats a
// message that it answers with 5xx.
func (rec *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	if !rec.allowed(w, r) {
		return
	}
	var m message
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&m); err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "not a message of Alertmanager's webhook", status)
		return
	}
	if m.Version != "4" || len(m.Alerts) > maxAlerts {
		http.Error(w, fmt.Sprintf("expected a message of version 4 with at most %d alerts", maxAlerts), http.StatusBadRequest)
		return
	}
	var failed error
	for i := range m.Alerts {
		failed = errors.Join(failed, rec.mark(&m.Alerts[i]))
	}
	if rec.Marked != nil {
		rec.Marked()
	}
	if failed != nil {
		rec.Log.Error("alerts not marked", "err", failed)
		http.Error(w, "some alerts could not be stored", http.StatusInternalServerError)
	}
}

// allowed checks the token and answers if it is wrong.
func (rec *Receiver) allowed(w http.ResponseWriter, r *http.Request) bool {
	want, err := secret.ReadToken(rec.TokenFile)
	if err != nil {
		rec.Log.Error("alerts are not accepted", "err", err)
		http.Error(w, "alerts are not accepted: no token is configured", http.StatusServiceUnavailable)
		return false
	}
	got, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "wrong token", http.StatusUnauthorized)
		return false
	}
	return true
}

// mark puts an alert into the queues of its runs.
func (rec *Receiver) mark(al *alert) error {
	if al.StartsAt.Unix() <= 0 || al.StartsAt.UTC().Year() > 9999 || len(al.Labels) == 0 {
		return nil // not an alert; asking for it again won't help
	}
	runs, err := rec.runs(al)
	for _, id := range runs {
		err = errors.Join(err, marker.Append(rundir.At(rec.DataDir, id), al.marker(id)))
	}
	return err
}

// runs are those to mark. For a resolved alert they include those that were
// marked when it fired and have ended since.
func (rec *Receiver) runs(al *alert) ([]string, error) {
	if id := al.Labels["run"]; id != "" {
		if rundir.CheckID(id) != nil {
			return nil, nil
		}
		_, err := os.Stat(rundir.At(rec.DataDir, id).Path(rundir.MetaFile))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return []string{id}, nil
	}
	ids, err := rundir.Active(rec.DataDir)
	if err != nil || al.Status != "resolved" {
		return ids, err
	}
	all, err := rundir.List(rec.DataDir)
	if err != nil {
		return nil, err
	}
	for _, id := range all[max(0, len(all)-recentRuns):] {
		markers, err := marker.Read(rundir.At(rec.DataDir, id))
		if err != nil {
			return nil, err
		}
		fired := func(m marker.Marker) bool { return m.ID == al.id(id) }
		if slices.ContainsFunc(markers, fired) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// id is the same each time that Alertmanager sends this alert.
func (al *alert) id(runID string) string {
	fingerprint := al.Fingerprint
	if fingerprint == "" {
		labels, _ := json.Marshal(al.Labels) // sorted; strings can't fail
		fingerprint = string(labels)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", fingerprint, al.StartsAt.UnixMilli(), runID))
	return hex.EncodeToString(sum[:8])
}

func (al *alert) marker(runID string) marker.Marker {
	m := marker.Marker{ID: al.id(runID), Kind: marker.Alert, Run: runID, Start: al.StartsAt}
	name := al.Labels["alertname"]
	first := "alert " + name
	if severity := al.Labels["severity"]; severity != "" {
		first += " (" + severity + ")"
	}
	lines := []string{first, al.Annotations["summary"]}
	if lines[1] == "" {
		lines[1] = al.Annotations["description"]
	}
	if al.Status == "resolved" && al.EndsAt.After(al.StartsAt) && al.EndsAt.UTC().Year() <= 9999 {
		m.End = al.EndsAt
		lines = append(lines, "resolved after "+m.End.Sub(m.Start).Round(time.Second).String())
	}
	m.Text = secret.Text(strings.Join(lines, "\n"))
	for _, tag := range []struct{ key, label string }{
		{"alert", "alertname"}, {"severity", "severity"}, {"target", "target"}, {"cluster", "cluster"},
		{"instance", "instance"},
	} {
		if v := al.Labels[tag.label]; v != "" {
			m.Tags = append(m.Tags, tag.key+":"+v)
		}
	}
	return m
}
