// Package e2e tests the built binary on real servers: a Galera cluster, sysbench
// and Prometheus, all on loopback. `make e2e` runs it. Tests that run in parallel leave the
// shared cluster alone, except for TestDashboardsHaveData.
package e2e
