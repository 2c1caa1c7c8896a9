package observer

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// ReadTime is how long a server of Handler may wait for a request with its
	// body: http.Server.ReadTimeout.
	ReadTime = 15 * time.Second
	// scrapeWriteTime is how long a scraper may take to read the metrics.
	scrapeWriteTime = 10 * time.Second
	// maxScrapes is how many scrapes are answered at once.
	maxScrapes = 10
)

// Handler serves metrics, health and the live page, and accepts alerts from an
// Alertmanager, and markers, with the token. Nothing else changes anything.
func (o *Observer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", withWriteTime(scrapeWriteTime, promhttp.InstrumentMetricHandler(o.registry, promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		ErrorLog:            slogErrors{o.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
		// gzip would take as long as everything else, each second, on the machine
		// that produces the load, and save about 30 kB/s.
		DisableCompression: true,
	}))))
	ok := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text + "\n")) }
	}
	mux.HandleFunc("GET /-/healthy", ok("benchwatch is healthy"))
	mux.HandleFunc("GET /-/ready", ok("benchwatch is ready"))
	o.page.Register(mux)
	o.served.Register(mux)
	mux.Handle("POST /api/v1/alerts", o.alerts)
	return withoutWaiting(mux)
}

// withoutWaiting answers without waiting for a request's body, which net/http
// otherwise reads before it sends the header of the answer, inside the handler. So
// the connection of a request with a body ends with the answer.
func withoutWaiting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// withWriteTime gives the client a limited time to read the answer.
func withWriteTime(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // not every writer can
		next.ServeHTTP(w, r)
	})
}

// slogErrors logs the errors of the metrics handler.
type slogErrors struct{ log *slog.Logger }

func (l slogErrors) Println(v ...any) { l.log.Error("scrape", "err", fmt.Sprint(v...)) }
