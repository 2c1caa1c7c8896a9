package proxysql

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// rows are composed after ProxySQL's documentation.
func rows(columns string, lines ...string) (all []mysql.Row) {
	names := strings.Split(columns, " ")
	for _, line := range lines {
		var values []sql.NullString
		for cell := range strings.SplitSeq(line, " ") {
			values = append(values, sql.NullString{String: cell, Valid: true})
		}
		all = append(all, mysql.NewRow(names, values))
	}
	return all
}

func TestHostgroups(t *testing.T) {
	h := &hostgroups{
		Status: &engine.Status{},
		global: rows("Variable_Name Variable_Value", "ProxySQL_Uptime 90", "Questions 5000", "Client_Connections_connected 16",
			"Client_Connections_created 20", "Queries_frontends_bytes_recv 1000", "Queries_frontends_bytes_sent 9000"),
		pool: rows("hostgroup srv_host srv_port status ConnUsed ConnFree ConnOK ConnERR Queries Bytes_data_sent Bytes_data_recv Latency_us",
			"10 10.0.0.1 3306 ONLINE 4 6 12 0 3000 700 6000 250", "20 10.0.0.2 3306 ONLINE 3 1 5 0 2000 300 3000 300",
			"20 10.0.0.1 3306 SHUNNED 0 0 2 7 0 0 0 0"),
		servers: rows("hostgroup_id hostname port weight max_connections", "10 10.0.0.1 3306 1 10", "20 10.0.0.2 3306 100 50", "20 10.0.0.1 3306 1 50"),
	}
	h.set()
	s := enginetest.WellFormed(t, h.Status)
	enginetest.Want(t, s, 1, proxy.BackendUp, "10.0.0.1:3306", "10")
	enginetest.Want(t, s, 0, proxy.BackendUp, "10.0.0.1:3306", "20")
	enginetest.Want(t, s, 10, proxy.BackendConnections, "10.0.0.1:3306")
	enginetest.Want(t, s, 10, proxy.PoolLimit, "10")
	enginetest.Want(t, s, 100, proxy.PoolLimit, "20")
	enginetest.Want(t, s, 4, proxy.PoolConnections, "10", proxy.PoolActive)
	enginetest.Want(t, s, 7, proxy.ErrorsTotal, "10.0.0.1:3306", "20", "connect")
	enginetest.Want(t, s, 0.00025, proxy.ConnectSeconds, "10.0.0.1:3306", "10")
	enginetest.Want(t, s, 16, proxy.ClientConnections)
	enginetest.Want(t, s, 5000, engine.QueriesTotal)
	enginetest.Absent(t, s, proxy.ClientLimit)
	if s.Uptime.Seconds() != 90 || len(s.Members) != 2 || !s.Members[0].Behind {
		t.Errorf("uptime %v, members %v", s.Uptime, s.Members)
	}
	enginetest.Measures(t, s, s, "connections", "queries", "proxy_sessions", "proxy_errors", "backends_up")
}

func TestErrors(t *testing.T) {
	p := enginetest.Open(t, Engine, engine.Target{Address: "127.0.0.1:1"}, nil)
	defer p.Close()
	if _, err := p.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing is listening") {
		t.Error(err)
	}
	enginetest.Refused(t, Engine, engine.Target{Address: "proxysql"}, "admin-mysql_ifaces")
	enginetest.Refused(t, Engine, engine.Target{Address: "h:6032", Options: map[string]string{"x": "y"}}, "unknown option")
}
