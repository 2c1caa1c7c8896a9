// Command plain serves the given number of gauges with plain client_golang: the least cost of a scrape.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plain ADDRESS SERIES")
		os.Exit(2)
	}
	series, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(2)
	}
	registry := prometheus.NewRegistry()
	for i := range series {
		g := prometheus.NewGauge(prometheus.GaugeOpts{
			Name:        fmt.Sprintf("plain_metric_%d", i/3),
			Help:        "A metric as any other.",
			ConstLabels: prometheus.Labels{"target": fmt.Sprint("n", i%3), "engine": "mysql", "cluster": "c", "role": "member"},
		})
		g.Set(float64(i) * 1.5)
		registry.MustRegister(g)
	}
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	fmt.Fprintln(os.Stderr, "plain:", http.ListenAndServe(os.Args[1], nil))
	os.Exit(1)
}
