package observer

import (
	_ "embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/alert"
	"github.com/benchwatch/benchwatch/agent/ingest"

	"github.com/benchwatch/benchwatch/agent/web"
)

// recentRuns is how many ended runs the landing page lists.
const recentRuns = 20

// Handler serves metrics, health and the live page (the landing page where that
// was not built in), and takes alerts from an
// Alertmanager that has the token. Nothing else changes anything.
func (b *Observer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.InstrumentMetricHandler(b.registry, promhttp.HandlerFor(b.registry, promhttp.HandlerOpts{
		ErrorLog:            slogErrors{b.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 10,
		EnableOpenMetrics:   true,
		// gzip would take as long as all the rest, each second, on the machine that
		// makes the load; what it saves is some 30 kB/s.
		DisableCompression: true,
	})))
	ok := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text + "\n")) }
	}
	mux.HandleFunc("GET /-/healthy", ok("benchwatch is healthy"))
	mux.HandleFunc("GET /-/ready", ok("benchwatch is ready"))
	b.page.Register(mux)
	mux.HandleFunc("POST /api/v1/alerts", b.serveAlerts)
	return mux
}

// serveAlerts takes alerts where a token file is configured now.
func (b *Observer) serveAlerts(w http.ResponseWriter, r *http.Request) {
	file := b.webhookTokenFile()
	if file == "" {
		http.NotFound(w, r)
		return
	}
	receiver := alert.Receiver{DataDir: b.dataDir, TokenFile: file, Marked: b.markers.Kick, Log: b.log}
	receiver.ServeHTTP(w, r)
}

//go:embed landing.html
var landingHTML string

var landingPage = template.Must(template.New("landing").Funcs(template.FuncMap{
	"time": func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
}).Parse(landingHTML))

// pageRun is a run as the landing page shows it.
type pageRun struct {
	ingest.Snapshot
	Elapsed        string
	Throughput     float64
	HasThroughput  bool
	LatencySeconds float64
	LatencyStat    string
}

type pageServer struct {
	Name, Engine, Cluster, Version string
	Up                             bool
	Error                          string
}

func (b *Observer) landing(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	data := struct {
		Version      string
		Page         bool // the live page is built in
		Live, Recent []pageRun
		Servers      []pageServer
	}{Version: version.Version, Page: web.Built()}
	for _, s := range slices.Backward(b.Snapshots()) {
		switch {
		case s.Phase != ingest.Over:
			data.Live = append(data.Live, newPageRun(s, now))
		case len(data.Recent) < recentRuns:
			data.Recent = append(data.Recent, newPageRun(s, now))
		}
	}
	frame := b.sampler.Latest()
	for i := range frame.Samples {
		s := &frame.Samples[i]
		p := pageServer{Name: s.Target.Name, Engine: s.Target.Engine, Cluster: s.Target.Cluster, Up: s.Up()}
		if s.Up() {
			p.Version = s.Status.Version
		} else if s.Err != nil {
			p.Error = s.Err.Error()
		}
		data.Servers = append(data.Servers, p)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Refresh", "5")
	if err := landingPage.Execute(w, data); err != nil {
		b.log.Debug("landing page not sent", "err", err)
	}
}

// LatencyMilliseconds is the latency in the unit that people read.
func (p pageRun) LatencyMilliseconds() float64 { return p.LatencySeconds * 1000 }

// slogErrors lets the metrics handler log.
type slogErrors struct{ log *slog.Logger }

func (l slogErrors) Println(v ...any) { l.log.Error("scrape", "err", fmt.Sprint(v...)) }

func newPageRun(s ingest.Snapshot, now time.Time) pageRun {
	p := pageRun{Snapshot: s, Elapsed: (time.Duration(s.ElapsedSeconds(now)) * time.Second).String()}
	switch {
	case s.Interval != nil:
		if r := s.Interval.Rate("transaction"); r.Known {
			p.Throughput, p.HasThroughput = r.Value, true
		}
		for _, l := range s.Interval.Latencies {
			if l.Operation == "transaction" {
				p.LatencySeconds, p.LatencyStat = l.Seconds, l.Stat
			}
		}
	case s.Summary != nil:
		p.Throughput, p.HasThroughput = s.Summary.Rate("transaction")
		for _, l := range s.Summary.Latencies {
			if l.Operation == "transaction" && l.Stat[0] == 'p' {
				p.LatencySeconds, p.LatencyStat = l.Seconds, l.Stat
			}
		}
	}
	return p
}
