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
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	maxBody   = 1 << 20 // bytes
	maxAlerts = 500     // of one request
)

// Receiver is an HTTP handler for Alertmanager's webhook (version 4). It marks
// the run that the alert's label run names, or else the runs during which the
// alert fired and whose servers or hosts its labels name, from the alert's start
// to its resolution. One cause has one marker: neither an alert that is repeated, nor
// one that another alert of the run inhibited, gets its own. Both are recognised by the
// markers of the run, not by state that a restart could lose. A Receiver is safe for
// concurrent use.
type Receiver struct {
	// DataDir holds the runs.
	DataDir string
	// TokenFile returns the file with the bearer token that Alertmanager must send (http_config, authorization,
	// credentials_file). It is read at each request. Without a name, no alerts are accepted.
	TokenFile func() string
	// Marked, if set, is called after a marker may have been written.
	Marked func()
	Log    *slog.Logger

	mu     sync.Mutex
	runs   map[string]run      // as they were read last
	recent map[string]received // by cause
}

// received is the last message about an alert.
type received struct {
	alert
	at time.Time
}

const (
	maxRecent = 1000
	// maxSilence is longer than Alertmanager's repeat_interval: an alert that it has
	// not repeated since has ended without a message.
	maxSilence = 5 * time.Hour
)

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
	tokenFile := rec.TokenFile()
	if tokenFile == "" {
		http.NotFound(w, r)
		return
	}
	switch status, err := CheckToken(r, tokenFile); status {
	case http.StatusOK:
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, err.Error(), status)
		return
	default:
		rec.Log.Error("alerts are not accepted", "err", err)
		http.Error(w, "alerts are not accepted: no token is configured", status)
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
	failed := rec.mark(m.Alerts, time.Now())
	if rec.Marked != nil {
		rec.Marked()
	}
	if failed != nil {
		rec.Log.Error("alerts not marked", "err", failed)
		http.Error(w, "some alerts could not be stored", http.StatusInternalServerError)
	}
}

// CheckToken checks the bearer token of a request against the token in a file, which it reads each time. If it returns
// an error, status is the status of the answer.
func CheckToken(r *http.Request, file string) (status int, err error) {
	want, err := secret.ReadToken(file)
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	got, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
		return http.StatusUnauthorized, errors.New("wrong token")
	}
	return http.StatusOK, nil
}

// mark puts alerts into the queues of their runs.
func (rec *Receiver) mark(alerts []alert, now time.Time) error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if err := rec.readRuns(now); err != nil {
		return err
	}
	var failed error
	for i := range alerts {
		al := &alerts[i]
		if al.StartsAt.Unix() <= 0 || al.StartsAt.UTC().Year() > 9999 || len(al.Labels) == 0 {
			continue // not an alert; asking for it again won't help
		}
		rec.remember(al, now)
		for id, r := range rec.runs {
			if al.belongsTo(id, &r, now) {
				failed = errors.Join(failed, al.mark(rundir.At(rec.DataDir, id)))
			}
		}
	}
	return failed
}

// remember keeps the firing alerts for the runs that begin meanwhile. It also keeps that they were resolved, since
// messages may overtake each other.
func (rec *Receiver) remember(al *alert, now time.Time) {
	maps.DeleteFunc(rec.recent, func(_ string, r received) bool { return now.Sub(r.at) > maxSilence })
	key := al.cause("")
	last, known := rec.recent[key]
	switch late := known && last.resolved() && !al.StartsAt.After(last.end()); {
	case late || !known && len(rec.recent) >= maxRecent:
		return
	case rec.recent == nil:
		rec.recent = map[string]received{}
	}
	rec.recent[key] = received{*al, now}
}

// Identified marks a run, whose servers or hosts have become known, with the alerts
// that fire already.
func (rec *Receiver) Identified(dir rundir.Directory, meta rundir.Meta) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	now := time.Now()
	r := newRun(dir, &meta, now)
	for _, al := range rec.recent {
		if now.Sub(al.at) < maxSilence && al.belongsTo(dir.ID(), &r, now) {
			if err := al.mark(dir); err != nil {
				rec.Log.Error("alert not marked", "run", dir.ID(), "err", err)
			}
		}
	}
	if rec.Marked != nil {
		rec.Marked()
	}
}

// run is what decides whether an alert belongs to a run.
type run struct {
	written  time.Time // run.json
	closed   bool      // nothing more will change
	from, to time.Time
	servers  []rundir.Server
	hosts    []rundir.Host
}

func newRun(dir rundir.Directory, meta *rundir.Meta, now time.Time) run {
	r := run{closed: meta.Closed(), hosts: meta.Hosts()}
	r.from, r.to = dir.Period(meta, now)
	if meta.Servers != nil {
		r.servers = meta.Servers.Targets
	}
	return r
}

// readRuns reads the runs that are not closed, and new closed runs. A run that can't be read gets no alerts; the
// watcher reports it.
func (rec *Receiver) readRuns(now time.Time) error {
	ids, err := rundir.List(rec.DataDir)
	if err != nil {
		return err
	}
	runs := make(map[string]run, len(ids))
	for _, id := range ids {
		dir := rundir.At(rec.DataDir, id)
		info, err := os.Stat(dir.Path(rundir.MetaFile))
		if err != nil {
			continue
		}
		r := rec.runs[id]
		if !r.closed || !r.written.Equal(info.ModTime()) {
			meta, err := dir.Load()
			if err != nil || meta.IsCopy() { // a copy has the markers that its peer has set
				continue
			}
			r = newRun(dir, &meta, now)
			r.written = info.ModTime()
		}
		runs[id] = r
	}
	rec.runs = runs
	return nil
}

// belongsTo reports whether an alert is about a run: the run that it names, or a run with the alert's server or host
// during which it fired.
func (al *alert) belongsTo(id string, r *run, now time.Time) bool {
	if named := al.Labels["run"]; named != "" {
		return named == id
	}
	until := now
	if al.resolved() {
		until = al.end()
	}
	return !al.StartsAt.After(r.to) && !until.Before(r.from) && al.concerns(r)
}

// concerns reports whether an alert is about a server or a host of a run. An alert whose labels name neither is about
// no run.
func (al *alert) concerns(r *run) bool {
	target, cluster := al.Labels["target"], al.Labels["cluster"]
	server := func(s rundir.Server) bool {
		return (target == "" || s.Target == target) && (cluster == "" || s.Cluster == cluster)
	}
	if target != "" || cluster != "" {
		if found := slices.ContainsFunc(r.servers, server); found || target != "" {
			return found
		}
	}
	node := al.Labels["nodename"]
	if node == "" { // host:port of an exporter
		node = al.Labels["instance"]
		if host, _, err := net.SplitHostPort(node); err == nil {
			node = host
		}
	}
	return node != "" && slices.ContainsFunc(r.hosts, func(h rundir.Host) bool { return h.Nodename == node })
}

func (al *alert) resolved() bool { return al.Status == "resolved" }

// end is when a resolved alert ended.
func (al *alert) end() time.Time {
	if al.EndsAt.Before(al.StartsAt) || al.EndsAt.UTC().Year() > 9999 {
		return al.StartsAt
	}
	return al.EndsAt
}

// mark adds the alert's marker to a run, or the end to its existing marker. The text never changes, so a repeated
// message has no effect.
func (al *alert) mark(dir rundir.Directory) error {
	known, err := marker.Read(dir)
	if err != nil {
		return err
	}
	m := al.marker(dir.ID())
	own := slices.IndexFunc(known, func(k marker.Marker) bool { return al.continues(&k, dir.ID()) })
	switch {
	case own >= 0:
		m = known[own]
		if !al.resolved() || !m.End.IsZero() && !al.end().After(m.End) {
			return nil
		}
	case slices.ContainsFunc(known, func(k marker.Marker) bool { return al.isEffectOf(&k) }):
		return nil
	}
	if al.resolved() {
		const resolvedAfter = "\nresolved after "
		if !m.End.IsZero() { // before the lull
			m.Text = m.Text[:strings.LastIndex(m.Text, resolvedAfter)]
		}
		m.End = al.end()
		m.Text += resolvedAfter + m.End.Sub(m.Start).Round(time.Second).String()
	}
	return marker.Append(dir, m)
}

// cause identifies the labels of an alert among all markers.
func (al *alert) cause(runID string) string {
	fingerprint := al.Fingerprint
	if fingerprint == "" {
		labels, _ := json.Marshal(al.Labels) // sorted; strings can't fail
		fingerprint = string(labels)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", fingerprint, runID))
	return hex.EncodeToString(sum[:8])
}

// marker is the alert as it fires. Its id is the same each time that Alertmanager
// sends the alert.
func (al *alert) marker(runID string) marker.Marker {
	m := marker.Marker{
		ID: al.cause(runID) + "-" + strconv.FormatInt(al.StartsAt.UnixMilli(), 36), Kind: marker.Alert, Run: runID, Start: al.StartsAt,
	}
	first := "alert " + al.Labels["alertname"]
	if severity := al.Labels["severity"]; severity != "" {
		first += " (" + severity + ")"
	}
	lines := []string{first, al.Annotations["summary"], al.Annotations["description"]}
	m.Text = strings.Join(slices.Compact(lines), "\n")
	m.Tags = append(m.Tags, "alert:"+al.Labels["alertname"])
	for _, label := range []string{"severity", "target", "cluster", "instance", "nodename", "member"} {
		if v := al.Labels[label]; v != "" {
			m.Tags = append(m.Tags, label+":"+v)
		}
	}
	return m
}
