package proxysql

import (
	"net"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// states of a server (stats_mysql_connection_pool). One that is shunned had too many errors or lags.
var states = proxy.States{
	Up: []string{"online"}, Down: []string{"shunned", "shunned_replication_lag", "offline_soft", "offline_hard"},
}

// hostgroups sets the metrics of the answers. The role of a backend is its hostgroup.
type hostgroups struct {
	*engine.Status
	global, pool, servers []mysql.Row
}

// columns of the pool with a metric.
var columns = map[string]*measure.Metric{"Queries": proxy.SessionsTotal, "ConnOK": proxy.OpenedTotal}

func (h *hostgroups) set() []proxy.Backend {
	h.setGlobal()
	limits := map[proxy.Backend][2]float64{} // connections and weight
	for _, r := range h.servers {
		weight, _ := r.Number("weight")
		most, _ := r.Number("max_connections")
		limits[proxy.Backend{Address: address(r, "hostname", "port"), Role: r.Text("hostgroup_id")}] = [2]float64{most, weight}
	}
	var backends []proxy.Backend
	for _, r := range h.pool {
		backends = append(backends, proxy.Backend{
			Address: address(r, "srv_host", "srv_port"), Role: r.Text("hostgroup"), State: strings.ToLower(r.Text("status")),
		})
	}
	shown := proxy.SetBackends(h.Status, states, backends)
	h.Members = proxy.Members(backends, "mysql")
	left := map[proxy.Backend]bool{}
	for _, b := range shown {
		left[b] = true
	}
	used, free, limit, current := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}
	for i, r := range h.pool {
		b := backends[i]
		if !left[b] {
			continue
		}
		delete(left, b)
		inUse, _ := r.Number("ConnUsed")
		idle, _ := r.Number("ConnFree")
		of := limits[proxy.Backend{Address: b.Address, Role: b.Role}]
		used[b.Role], free[b.Role] = used[b.Role]+inUse, free[b.Role]+idle
		current[b.Address] += inUse + idle
		if of[0] > 0 {
			limit[b.Role] += of[0]
			h.Set(proxy.BackendLimit, of[0], b.Address, b.Role)
			h.Set(proxy.Weight, of[1], b.Address, b.Role)
		}
		h.setBackend(r, b)
	}
	for role := range used {
		h.Set(proxy.PoolConnections, used[role], role, proxy.PoolActive)
		h.Set(proxy.PoolConnections, free[role], role, "idle")
		if limit[role] > 0 {
			h.Set(proxy.PoolLimit, limit[role], role)
		}
	}
	for at, n := range current {
		h.Set(proxy.BackendConnections, n, at)
	}
	return shown
}

func (h *hostgroups) setBackend(r mysql.Row, b proxy.Backend) {
	for column, m := range columns {
		if n, ok := r.Number(column); ok {
			h.Set(m, n, b.Address, b.Role)
		}
	}
	if n, ok := r.Number("ConnERR"); ok {
		h.Set(proxy.ErrorsTotal, n, b.Address, b.Role, "connect")
	}
	for column, direction := range map[string]string{"Bytes_data_sent": "sent", "Bytes_data_recv": "received"} {
		if n, ok := r.Number(column); ok {
			h.Set(proxy.BackendBytesTotal, n, b.Address, b.Role, direction)
		}
	}
	if us, ok := r.Number("Latency_us"); ok && us > 0 { // a ping of the monitor
		h.Set(proxy.ConnectSeconds, us/1e6, b.Address, b.Role)
	}
}

// variables of stats_mysql_global with a metric.
var variables = map[string]*measure.Metric{
	"Questions": engine.QueriesTotal, "Client_Connections_connected": proxy.ClientConnections,
	"Client_Connections_created": proxy.AcceptedTotal, "Client_Connections_aborted": proxy.RefusedTotal,
}

func (h *hostgroups) setGlobal() {
	all := map[string]mysql.Row{}
	for _, r := range h.global {
		all[r.Text("Variable_Name")] = r
	}
	number := func(name string) (float64, bool) {
		r, ok := all[name]
		if !ok {
			return 0, false
		}
		return r.Number("Variable_Value")
	}
	for name, m := range variables {
		if n, ok := number(name); ok && n >= 0 {
			h.Set(m, n)
		}
	}
	if n, ok := number("Client_Connections_connected"); ok {
		h.Set(engine.Connections, n)
	}
	if seconds, ok := number("ProxySQL_Uptime"); ok && seconds > 0 {
		h.Uptime = time.Duration(min(seconds, 1<<33)) * time.Second
	}
	for name, direction := range map[string]string{"Queries_frontends_bytes_recv": "received", "Queries_frontends_bytes_sent": "sent"} {
		if n, ok := number(name); ok {
			h.Set(engine.BytesTotal, n, direction)
		}
	}
}

// address returns a server's address; empty without a host.
func address(r mysql.Row, host, port string) string {
	if r.Text(host) == "" {
		return ""
	}
	return net.JoinHostPort(r.Text(host), r.Text(port))
}
