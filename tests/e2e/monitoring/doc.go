// Package monitoring tests the built binary beside a real Prometheus, an Alertmanager and an API of
// Grafana: rules, dashboards, markers, doctor and what is sent (`make e2e`).
package monitoring
