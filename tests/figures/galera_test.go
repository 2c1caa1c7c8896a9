package figures

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGalera has one row per configuration, with the write sets of the run and each node's
// throughput up to the end of its drain. The runs of tpcc-mysql were recorded on three nodes of MariaDB
// 10.11.19 with Galera 26.4.23, all on one machine with 2 cores, with 1 warehouse and 8 connections.
func TestGalera(t *testing.T) {
	l := newLab(t)
	if err := os.CopyFS(filepath.Join(l.data, "runs"), os.DirFS("testdata/galera")); err != nil {
		t.Fatal(err)
	}
	text := l.run("compare", "tool=tpcc-mysql", "--x=configuration",
		"--measure=n1_trx,n1_tps_with_drain,n2_tps_with_drain,n3_tps_with_drain,drain,flow_control,n2_cert_deps_distance")
	l.wants(text, "configuration n1 trx n1 tps with drain n2 tps with drain n3 tps with drain drain s flow control % n2 cert deps distance\n",
		"1 default 3836 255.73 255.73 255.73 0.00 0.26 17\n", "2 appliers 3859 257.27 257.27 257.27 0.00 0 17\n",
		"3 fc_limit 2151 143.73 143.73 143.73 0.00 0 18\n")
	// The settings themselves can be the axis.
	text = l.run("compare", "tool=tpcc-mysql", "--x=gcs.fc_limit", "--lines=wsrep_slave_threads", "--measure=n1_trx")
	l.wants(text, "gcs.fc_limit wsrep_slave_threads 1 wsrep_slave_threads 60\n", "16 3836 3859\n", "1000 – 2151\n")
	l.figure("galera", "compare", "tool=tpcc-mysql", "--x=configuration", "--measure=n2_tps_with_drain")
}
