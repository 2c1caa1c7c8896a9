package observer

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/benchwatch/benchwatch/agent/show/metrics"
)

// maxScrapes is the number of scrapes answered at once.
const maxScrapes = 10

// serveMetrics answers scrapes. It does not compress: gzip would take longer than everything else,
// every second, on the machine that produces the load, to save about 30 kB/s.
func (o *Observer) serveMetrics() http.HandlerFunc {
	running, texts := make(chan struct{}, maxScrapes), sync.Pool{New: func() any { return new([]byte) }}
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
		default:
			http.Error(w, "too many scrapes at once, try again later", http.StatusServiceUnavailable)
			return
		}
		text := texts.Get().(*[]byte)
		defer texts.Put(text)
		format, contentType := metrics.Negotiate(r.Header)
		var err error
		if *text, err = o.gatherer.Append((*text)[:0], format); err != nil {
			o.log.Error("scrape", "err", err)
		}
		header := w.Header()
		header.Set("Content-Type", contentType)
		header.Set("Content-Length", strconv.Itoa(len(*text)))
		header.Set("Vary", "Accept")
		_, _ = w.Write(*text) // the client has gone
	}
}
