// Package alert receives alerts and marks the runs that they are about.
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
	// recentRuns is in how many of the newest runs an alert is looked for that
	// is resolved after its run has ended.
	recentRuns = 20
)

// Receiver is an HTTP handler for Alertmanager's webhook (version 4). It
// marks the run that an alert's label run names, else all runs that go on: when
// it fires, and up to when it is resolved. Alertmanager repeats itself; each
// alert is one marker a run. It is safe for concurrent use.
type Receiver struct {
	// DataDir is where the runs are.
	DataDir string
	// Token is what Alertmanager must send as bearer token (http_config,
	// authorization, credentials_file). Without one, nobody is let in.
	Token marker.Token
	// Marked, if set, is called with the queue file that was written to.
	Marked func(path string)
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

// ServeHTTP answers 2xx when all alerts are on disk; Alertmanager repeats what
// was answered with 5xx.
func (a *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
		return
	}
	if !a.allowed(w, r) {
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
		failed = errors.Join(failed, a.mark(&m.Alerts[i]))
	}
	if failed != nil {
		a.Log.Error("alerts not marked", "err", failed)
		http.Error(w, "some alerts could not be stored", http.StatusInternalServerError)
	}
}

// allowed checks the token and answers if it is not the right one.
func (a *Receiver) allowed(w http.ResponseWriter, r *http.Request) bool {
	want, err := a.Token.Read()
	if err == nil && want == "" {
		err = errors.New("no token is configured")
	}
	if err != nil {
		a.Log.Error("alerts are not accepted", "err", err)
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
func (a *Receiver) mark(al *alert) error {
	if al.StartsAt.Unix() <= 0 || al.StartsAt.UTC().Year() > 9999 || len(al.Labels) == 0 {
		return nil // not an alert; asking for it again won't help
	}
	runs, err := a.runs(al)
	if err != nil {
		return err
	}
	var failed error
	for _, id := range runs {
		path := rundir.At(a.DataDir, id).Path(rundir.MarkersFile)
		written, err := marker.Put(path, al.marker(id))
		failed = errors.Join(failed, err)
		if written && a.Marked != nil {
			a.Marked(path)
		}
	}
	return failed
}

// runs are those to mark: for a resolved alert also those that were marked when
// it fired and have ended since.
func (a *Receiver) runs(al *alert) ([]string, error) {
	if id := al.Labels["run"]; id != "" {
		if rundir.CheckID(id) != nil {
			return nil, nil
		}
		if _, err := os.Stat(rundir.At(a.DataDir, id).Path(rundir.MetaFile)); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, nil
			}
			return nil, err
		}
		return []string{id}, nil
	}
	ids, err := rundir.Active(a.DataDir)
	if err != nil || al.Status != "resolved" {
		return ids, err
	}
	all, err := rundir.List(a.DataDir)
	if err != nil {
		return nil, err
	}
	for _, id := range all[max(0, len(all)-recentRuns):] {
		states, err := marker.Read(rundir.At(a.DataDir, id).Path(rundir.MarkersFile))
		if err != nil {
			return nil, err
		}
		fired := func(s marker.State) bool { return s.ID == al.id(id) }
		if slices.ContainsFunc(states, fired) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// id is the same each time Alertmanager tells of this alert.
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
