package observer

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

const (
	// ReadTime limits how long a server of Handler waits for a request including its body:
	// http.Server.ReadTimeout.
	ReadTime = 15 * time.Second
	// scrapeWriteTime is how long a scraper may take to read the metrics.
	scrapeWriteTime = 10 * time.Second
	// maxScrapes is the number of scrapes answered at once.
	maxScrapes = 10
)

// Handler serves metrics, health and the live page. With the token it accepts alerts from an
// Alertmanager, and markers. All other requests are read-only.
func (o *Observer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", withWriteTime(scrapeWriteTime, promhttp.InstrumentMetricHandler(o.registry, promhttp.HandlerFor(prometheus.GathererFunc(o.gather), promhttp.HandlerOpts{
		ErrorLog:            slogErrors{o.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
		// gzip would take as long as everything else, every second, on the machine that produces
		// the load, to save about 30 kB/s.
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

// gather returns the series of runs and servers, and of the agent's process.
func (o *Observer) gather() ([]*dto.MetricFamily, error) {
	runs, err := o.gatherer.Gather()
	process, errOfProcess := o.registry.Gather()
	return append(runs, process...), errors.Join(err, errOfProcess)
}

// withoutWaiting answers without waiting for a request's body, which net/http would otherwise read
// in the handler before it sends the header of the answer. The connection of a request with a body
// is therefore closed after the answer.
func withoutWaiting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// withWriteTime limits the time for the client to read the answer.
func withWriteTime(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit)) // not supported by every writer
		next.ServeHTTP(w, r)
	})
}

// slogErrors logs the errors of the metrics handler.
type slogErrors struct{ log *slog.Logger }

func (l slogErrors) Println(v ...any) { l.log.Error("scrape", "err", fmt.Sprint(v...)) }
