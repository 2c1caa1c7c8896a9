package observer

import (
	"net/http"
	"time"
)

const (
	// ReadTime limits how long a server of Handler waits for a request including its body:
	// http.Server.ReadTimeout.
	ReadTime = 15 * time.Second
	// scrapeWriteTime is how long a scraper may take to read the metrics.
	scrapeWriteTime = 10 * time.Second
)

// Handler serves metrics, health and the live page. With the token it accepts alerts from an
// Alertmanager, and markers. All other requests are read-only.
func (o *Observer) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", withWriteTime(scrapeWriteTime, o.serveMetrics()))
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
