package galera

import (
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// settingNames are the relevant variables. Percona XtraDB Cluster calls wsrep_slave_threads
// wsrep_applier_threads.
var settingNames = []string{
	"wsrep_slave_threads", "wsrep_applier_threads", "wsrep_sync_wait", "wsrep_trx_fragment_size", "wsrep_trx_fragment_unit",
	"wsrep_max_ws_size", "wsrep_max_ws_rows", "wsrep_retry_autocommit", "wsrep_desync", "wsrep_certification_rules",
	"wsrep_mode", "wsrep_strict_ddl", "wsrep_gtid_mode", "pxc_strict_mode",
}

// providerOptions are the relevant parts of wsrep_provider_options. Other parts may contain paths
// and passwords of keys.
var providerOptions = []string{
	"gcs.fc_limit", "gcs.fc_factor", "gcs.fc_master_slave", "gcs.fc_single_primary", "gcs.max_packet_size", "gcs.max_throttle", "gcs.sync_donor",
	"gcache.size", "gcache.page_size", "gcache.keep_pages_size", "gcache.recover",
	"repl.commit_order", "repl.max_ws_size", "cert.optimistic_pa",
	"evs.send_window", "evs.user_send_window", "evs.suspect_timeout", "evs.inactive_timeout", "gmcast.segment",
	"socket.ssl", "socket.checksum", "socket.recv_buf_size", "socket.send_buf_size",
}

func readSettings(_ *mysql.Server, variables mysql.Values, out engine.Settings) {
	if on, ok := variables.Bool("wsrep_on"); !ok || !on {
		return
	}
	mysql.Copy(settingNames, variables, out)
	for option := range strings.SplitSeq(variables["wsrep_provider_options"], ";") {
		name, value, ok := strings.Cut(option, "=")
		name = strings.TrimSpace(name)
		if ok && slices.Contains(providerOptions, name) {
			out[name] = inBytes(strings.TrimSpace(value))
		}
	}
}

// inBytes converts a size such as 128M to bytes; it leaves other values as they are.
func inBytes(value string) string {
	if value == "" {
		return value
	}
	shift := strings.Index("KMGT", strings.ToUpper(value[len(value)-1:]))
	n, err := strconv.ParseUint(value[:len(value)-1], 10, 64)
	if shift < 0 || err != nil || n >= 1<<20 {
		return value
	}
	return strconv.FormatUint(n<<(10*(shift+1)), 10)
}
