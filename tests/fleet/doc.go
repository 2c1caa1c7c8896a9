// Package fleet tests many agents behind a Prometheus in agent mode, which writes all
// of it into several engines. `make fleet-test` runs it and prints its figures.
// FLEET_ENGINES lists the engines (thanos,prometheus,victoriametrics), FLEET_AGENTS the
// numbers of agents (10,1000), FLEET_INTERVAL is their scrape interval (10s).
package fleet
