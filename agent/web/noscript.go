package web

import (
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// listRuns is how many of the newest runs the list without JavaScript has.
const listRuns = 100

//go:embed noscript.html
var listHTML string

var listPage = template.Must(template.New("list").Parse(listHTML))

// listedRun is a run in the list, with the values that the page's scripts would
// format.
type listedRun struct {
	runView
	Elapsed, TransactionRate, Latency string
}

// serveList serves the runs and servers as plain tables: for browsers without
// JavaScript, and in place of the page where that is not built in.
func (p *Page) serveList(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	servers := p.samples
	p.mu.Unlock()
	data := struct {
		Version string
		Built   bool
		Runs    []listedRun
		Servers []engine.Sample
	}{Version: version.Version, Built: Built(), Servers: servers}
	now := time.Now()
	for _, s := range slices.Backward(p.opts.Runs()) {
		if len(data.Runs) == listRuns {
			break
		}
		r := listedRun{runView: newRunView(&s)}
		r.Elapsed = (time.Duration(s.ElapsedSeconds(now)) * time.Second).String()
		if r.Throughput != nil {
			r.TransactionRate = fmt.Sprintf("%.1f", *r.Throughput)
		}
		if r.LatencySeconds != nil {
			r.Latency = fmt.Sprintf("%s %.2f ms", r.LatencyStat, *r.LatencySeconds*1000)
		}
		data.Runs = append(data.Runs, r)
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Refresh", "5")
	if err := listPage.Execute(w, data); err != nil {
		p.log.Debug("list of runs not sent", "err", err)
	}
}
