// Package e2e tests the built binary on real servers: a Galera cluster, sysbench
// and Prometheus, all on loopback. `make e2e` runs it.
package e2e
