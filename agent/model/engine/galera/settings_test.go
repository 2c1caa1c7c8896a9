package galera

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// recordedVariables returns the variables of a MariaDB 10.11 node, as the agent queries them.
func recordedVariables(t *testing.T) mysql.Values {
	t.Helper()
	data, err := os.ReadFile("testdata/settings/mariadb-10.11.tsv")
	if err != nil {
		t.Fatal(err)
	}
	all := mysql.Values{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("line %q", line)
		}
		all[name] = value
	}
	return all
}

func settings(t *testing.T, all mysql.Values) engine.Settings {
	t.Helper()
	server, err := mysql.NewServer(all)
	if err != nil {
		t.Fatal(err)
	}
	return mysql.DecodeSettings(server, all, []mysql.Detail{New()})
}

// TestSettings guards which settings of a real node are recorded, with sizes in bytes.
func TestSettings(t *testing.T) {
	got := settings(t, recordedVariables(t))
	for name, want := range map[string]string{
		"gcs.fc_limit": "100", "gcs.fc_factor": "1.0", "gcs.fc_single_primary": "no", "gcache.size": "134217728", "gcache.recover": "yes",
		"repl.max_ws_size": "2147483647", "evs.suspect_timeout": "PT5S", "socket.checksum": "2",
		"wsrep_slave_threads": "1", "wsrep_sync_wait": "0", "wsrep_retry_autocommit": "1",
		"innodb_buffer_pool_size": "134217728", "innodb_flush_log_at_trx_commit": "0", "sync_binlog": "0", "binlog_format": "ROW", "tx_isolation": "REPEATABLE-READ",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestSettingsAreNoSecrets guards that only listed settings are recorded, whatever else is there.
func TestSettingsAreNoSecrets(t *testing.T) {
	all := recordedVariables(t)
	all["wsrep_sst_auth"] = "sst:hunter2"
	all["wsrep_provider_options"] += "socket.ssl = yes; socket.ssl_key = /etc/hunter2.pem; socket.ssl_password_file = hunter2; socket.dynamic = hunter2;" +
		" gcache.encryption_key=hunter2; =hunter2; hunter2; gcs.fc_limit;"
	got := settings(t, all)
	for name, value := range got {
		if strings.Contains(name+value, "hunter2") {
			t.Errorf("%s = %s", name, value)
		}
	}
	if got["socket.ssl"] != "yes" || got["gcs.fc_limit"] != "100" {
		t.Errorf("what is listed is missing: %v", got)
	}
	if _, there := got["wsrep_cluster_address"]; there {
		t.Error("addresses are no settings")
	}
}

// TestNoGalera guards that a server that could run Galera but does not has no Galera settings.
func TestNoGalera(t *testing.T) {
	all := recordedVariables(t)
	all["wsrep_on"] = "OFF"
	for name := range settings(t, all) {
		if strings.HasPrefix(name, "wsrep_") || strings.HasPrefix(name, "gc") {
			t.Errorf("%s is there", name)
		}
	}
}

func TestInBytes(t *testing.T) {
	got := map[string]string{}
	for _, v := range []string{"128M", "2g", "1K", "16", "", "M", "yes", "1.5G", "PT5S", "99999999999999T"} {
		got[v] = inBytes(v)
	}
	want := map[string]string{
		"128M": "134217728", "2g": "2147483648", "1K": "1024", "16": "16", "": "", "M": "M", "yes": "yes", "1.5G": "1.5G", "PT5S": "PT5S",
		"99999999999999T": "99999999999999T",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
