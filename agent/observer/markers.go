package observer

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/ingest"
	"github.com/benchwatch/benchwatch/agent/marker"
	"github.com/benchwatch/benchwatch/agent/metrics"
	"github.com/benchwatch/benchwatch/agent/rundir"
)

// flushTime is how long the end waits for markers that are about to be sent.
const flushTime = 3 * time.Second

// markers keeps one range for each run in the run's queue and has the queues
// delivered.
type markers struct {
	log       *slog.Logger
	deliverer *marker.Deliverer
	url       string
	tokenFile string
	// tended are the queues as tend found them last, by run.
	tended map[string]queueSize
	// moved: there is another Grafana, which may take what was let go undelivered.
	moved atomic.Bool
}

func newMarkers(c *config.Config, log *slog.Logger) (*markers, error) {
	grafana, err := grafanaClient(c)
	if err != nil {
		return nil, err
	}
	return &markers{
		log: log, deliverer: marker.New(grafana, log, marker.Options{}),
		url: c.Grafana.URL, tokenFile: c.Grafana.TokenFile,
	}, nil
}

// grafanaClient is nil where no Grafana is configured: markers then wait in
// their queues.
func grafanaClient(c *config.Config) (*marker.Grafana, error) {
	if c.Grafana.URL == "" {
		return nil, nil
	}
	g, err := marker.NewGrafana(c.Grafana.URL, marker.Token{File: c.Grafana.TokenFile}, nil)
	if err != nil {
		return nil, fmt.Errorf("grafana: %w", err)
	}
	return g, nil
}

func (m *markers) reload(c *config.Config) error {
	if c.Grafana.URL == m.url && c.Grafana.TokenFile == m.tokenFile {
		return nil // a new token in the same file is seen anyway
	}
	g, err := grafanaClient(c)
	if err != nil {
		return err
	}
	m.url, m.tokenFile = c.Grafana.URL, c.Grafana.TokenFile
	m.deliverer.SetGrafana(g)
	m.moved.Store(true)
	return nil
}

// watchAll takes up what earlier processes have left in the queues, and points
// that belong to no run.
func (m *markers) watchAll(dataDir string) {
	m.deliverer.Watch(filepath.Join(dataDir, rundir.MarkersFile))
	ids, err := rundir.List(dataDir)
	if err != nil {
		m.log.Error("can't look for markers left to send", "err", err)
		return
	}
	for _, id := range ids {
		path := rundir.At(dataDir, id).Path(rundir.MarkersFile)
		if _, err := os.Stat(path); err == nil {
			m.deliverer.Watch(path)
		}
	}
}

// run delivers until ctx is done, and then what is at hand.
func (m *markers) run(ctx context.Context) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { m.deliverer.Run(sending); close(done) }()
	<-ctx.Done()
	grace, cancel := context.WithTimeout(sending, flushTime)
	if m.deliverer.Stats().Problem == "" {
		_ = m.deliverer.Flush(grace) // what is left stays in the queues
	}
	cancel()
	stop()
	<-done
}

// began opens the run's range, unless it is there already.
func (m *markers) began(dir rundir.Directory, meta rundir.Meta) {
	path := dir.Path(rundir.MarkersFile)
	defer m.deliverer.Watch(path)
	states, err := marker.Read(path)
	if err != nil {
		m.log.Error("can't read the run's markers", "run", meta.ID, "err", err)
	}
	if meta.Ended() || slices.ContainsFunc(states, func(s marker.State) bool { return s.Kind == marker.Range }) {
		return
	}
	m.append(path, rangeOf(&meta, nil))
}

// settled closes the run's range.
func (m *markers) settled(dir rundir.Directory, snap ingest.Snapshot) {
	path := dir.Path(rundir.MarkersFile)
	m.append(path, rangeOf(&snap.Meta, snap.Summary))
	m.deliverer.Watch(path)
	m.deliverer.Kick()
}

func (m *markers) append(path string, r marker.Marker) {
	if _, err := marker.Append(path, r); err != nil {
		m.log.Error("marker not recorded", "run", r.Run, "err", err)
	}
}

// rangeOf is the annotation of a run: what it is and how it ended.
func rangeOf(meta *rundir.Meta, sum *ingest.Summary) marker.Marker {
	facts := []string{}
	for _, f := range []string{meta.Tool, meta.Workload} {
		if f != "" {
			facts = append(facts, f)
		}
	}
	if meta.Threads > 0 {
		facts = append(facts, strconv.Itoa(meta.Threads)+" threads")
	}
	text := meta.Title + "\n" + strings.Join(facts, ", ")
	var tags []string
	for _, t := range []struct{ key, value string }{{"tool", meta.Tool}, {"workload", meta.Workload}} {
		if t.value != "" {
			tags = append(tags, t.key+":"+t.value)
		}
	}
	if meta.Threads > 0 {
		tags = append(tags, "threads:"+strconv.Itoa(meta.Threads))
	}
	keys := make([]string, 0, len(meta.Labels))
	for k := range meta.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		tags = append(tags, k+":"+meta.Labels[k])
	}
	r := marker.Marker{Kind: marker.Range, Run: meta.ID, Start: meta.StartedAt}
	if meta.Ended() {
		r.End = *meta.EndedAt
		text += "\n" + string(meta.Outcome)
		if meta.Reason != "" {
			text += ": " + meta.Reason
		}
		if sum != nil {
			if v, ok := sum.Rate("transaction"); ok {
				text += fmt.Sprintf("\n%.1f transactions/s", v)
			}
		}
		tags = append(tags, "result:"+string(meta.Outcome))
	}
	r.Text, r.Tags = text, tags
	return r
}

func (m *markers) deliveries() metrics.Deliveries {
	s := m.deliverer.Stats()
	return metrics.Deliveries{Queued: s.Queued, Results: map[string]uint64{
		"delivered": s.Delivered, "retried": s.Retried, "rejected": s.Rejected,
	}}
}

func (m *markers) points() []metrics.Point {
	points := m.deliverer.Points()
	out := make([]metrics.Point, len(points))
	for i, p := range points {
		out[i] = metrics.Point{Run: p.Run, Text: p.Text, At: p.Time}
	}
	return out
}

func (m *markers) pending() int { return m.deliverer.Stats().Queued }
