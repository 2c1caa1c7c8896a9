package observer

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/benchwatch/benchwatch/agent/alert"
)

// Handler serves metrics, health and the live page, and accepts alerts from an
// Alertmanager that has the token. Nothing else changes anything.
func (o *Observer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.InstrumentMetricHandler(o.registry, promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		ErrorLog:            slogErrors{o.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 10,
		EnableOpenMetrics:   true,
		// gzip would take as long as everything else, each second, on the machine
		// that produces the load, and save about 30 kB/s.
		DisableCompression: true,
	})))
	ok := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text + "\n")) }
	}
	mux.HandleFunc("GET /-/healthy", ok("benchwatch is healthy"))
	mux.HandleFunc("GET /-/ready", ok("benchwatch is ready"))
	o.page.Register(mux)
	mux.HandleFunc("POST /api/v1/alerts", o.serveAlerts)
	return mux
}

// serveAlerts accepts alerts if a token file is configured now.
func (o *Observer) serveAlerts(w http.ResponseWriter, r *http.Request) {
	file := o.current().WebhookTokenFile
	if file == "" {
		http.NotFound(w, r)
		return
	}
	receiver := alert.Receiver{DataDir: o.dataDir, TokenFile: file, Marked: o.markers.Kick, Log: o.log}
	receiver.ServeHTTP(w, r)
}

// slogErrors logs the errors of the metrics handler.
type slogErrors struct{ log *slog.Logger }

func (l slogErrors) Println(v ...any) { l.log.Error("scrape", "err", fmt.Sprint(v...)) }
