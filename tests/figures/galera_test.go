package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGalera has one row per configuration, with the write sets of the run and each node's
// throughput up to the end of its drain. All three are one recorded run of a real cluster, two of
// them with changed settings, since the article's numbers come from a larger machine.
func TestGalera(t *testing.T) {
	l := newLab(t)
	const recorded = "../../internal/recorded/testdata/galera"
	for _, c := range []struct{ name, threads, limit string }{{"1 default", "1", "100"}, {"2 appliers", "60", "100"}, {"3 fc_limit", "60", "1000"}} {
		dir := filepath.Join(l.data, "runs", "20261121T11153"+c.name[:1]+"Z-oltp_write_only-t8")
		if err := os.CopyFS(dir, os.DirFS(recorded)); err != nil {
			t.Fatal(err)
		}
		l.replace(filepath.Join(dir, "settings.jsonl"), `"wsrep_slave_threads":"1"`, `"wsrep_slave_threads":"`+c.threads+`"`)
		l.replace(filepath.Join(dir, "settings.jsonl"), `"wsrep_slave_threads":"4"`, `"wsrep_slave_threads":"`+c.threads+`"`) // changed during the run
		l.replace(filepath.Join(dir, "settings.jsonl"), `"gcs.fc_limit":"100"`, `"gcs.fc_limit":"`+c.limit+`"`)
		l.replace(filepath.Join(dir, "run.json"), `"id": "20261121T111538Z-oltp_write_only-t8"`, `"id": "`+filepath.Base(dir)+`"`)
		l.replace(filepath.Join(dir, "run.json"), `"labels": {`, `"labels": { "configuration": "`+c.name+`",`)
	}
	// 18707 write sets, 15.0045 s, drained after 0.309 s.
	measures := "--measure=n1_trx,n1_tps_with_drain,n2_tps_with_drain,n3_tps_with_drain,drain,flow_control,n2_cert_deps_distance"
	text := l.run("compare", "workload=oltp_write_only", "--x=configuration", measures)
	l.wants(text, "configuration n1 trx n1 tps with drain n2 tps with drain n3 tps with drain drain s flow control % n2 cert deps distance\n",
		"1 default 18707 1246.76 1221.", "2 appliers 18707 1246.76 1221.", "3 fc_limit 18707 1246.76 1221.")
	// The settings themselves can be the axis.
	text = l.run("compare", "workload=oltp_write_only", "--x=gcs.fc_limit", "--lines=wsrep_slave_threads", "--measure=n1_trx")
	l.wants(text, "gcs.fc_limit wsrep_slave_threads 1 wsrep_slave_threads 60\n", "100 18707 18707\n", "1000 – 18707\n")
	l.figure("galera", "compare", "workload=oltp_write_only", "--x=configuration", "--measure=n2_tps_with_drain")
}

// replace changes a text in a file, everywhere.
func (l *lab) replace(path, before, after string) {
	l.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		l.Fatal(err)
	}
	if !strings.Contains(string(data), before) {
		l.Fatalf("no %s in %s", before, path)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), before, after)), 0o644); err != nil {
		l.Fatal(err)
	}
}
