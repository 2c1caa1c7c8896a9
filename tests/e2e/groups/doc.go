// Package groups tests runs of several generators: sysbench on machines that ssh reaches,
// an sshd each on loopback, against a MariaDB server. `make e2e` runs it.
package groups
