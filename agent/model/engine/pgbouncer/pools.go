package pgbouncer

import (
	"net"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// ownDatabase is the console itself.
const ownDatabase = "pgbouncer"

// states of a database. PgBouncer checks no server: it notices a dead one when it opens a connection.
var states = proxy.States{Up: []string{"active"}, Down: []string{"paused", "disabled"}}

// pools sets the metrics of the console's answers. The role of a backend is its database.
type pools struct {
	*engine.Status
	config                  engine.Settings
	databases, pools, stats []row
	net                     netTimes
}

// set sets the metrics and returns the backends that have series.
func (p *pools) set() []proxy.Backend {
	var backends []proxy.Backend
	current := map[string]float64{}
	for _, d := range p.databases {
		if d["name"] == ownDatabase {
			continue
		}
		b := backendOf(d)
		backends = append(backends, b)
		if n, ok := d.number("current_connections"); ok {
			current[b.Address] += n
		}
	}
	shown := proxy.SetBackends(p.Status, states, backends)
	for _, b := range shown {
		if n, ok := current[b.Address]; ok {
			p.Set(proxy.BackendConnections, n, b.Address)
			delete(current, b.Address)
		}
	}
	p.Members = proxy.Members(backends, "postgresql")
	p.setPools(shown)
	p.setStats(shown)
	return shown
}

// backendOf returns the server of a database. A host that is a list or the folder of a socket is no address.
func backendOf(d row) proxy.Backend {
	b := proxy.Backend{Role: d["name"], State: "active", Address: d["name"]}
	if host := d["host"]; host != "" && !strings.ContainsAny(host, ",/@") && d["port"] != "" {
		b.Address = net.JoinHostPort(host, d["port"])
	}
	for _, state := range states.Down {
		if d[state] == "1" {
			b.State = state
		}
	}
	return b
}

// poolStates are the columns with connections to servers, by state.
var poolStates = map[string]string{
	"sv_active": proxy.PoolActive, "sv_idle": "idle", "sv_used": "used", "sv_tested": "tested", "sv_login": "login",
}

// setPools sets queues and connections. A pool is of one user and one database; users of a database are added up. The
// limit is the sum over pools with clients.
func (p *pools) setPools(shown []proxy.Backend) {
	sizes := map[string]row{}
	for _, d := range p.databases {
		sizes[d["name"]] = d
	}
	sum, users := map[string]map[string]float64{}, map[string]float64{}
	clients := 0.0
	for _, r := range p.pools {
		database := r["database"]
		if database == ownDatabase {
			continue
		}
		active, _ := r.number("cl_active")
		waiting, _ := r.number("cl_waiting")
		clients += active + waiting
		if sum[database] == nil {
			sum[database] = map[string]float64{}
		}
		if active+waiting > 0 { // a pool without clients limits nobody
			users[database]++
		}
		sum[database]["cl_waiting"] += waiting
		for column := range poolStates {
			n, _ := r.number(column)
			sum[database][column] += n
		}
	}
	for _, b := range shown {
		of := sum[b.Role]
		p.Set(proxy.QueueLength, of["cl_waiting"], b.Role)
		if of == nil {
			continue
		}
		for column, state := range poolStates {
			p.Set(proxy.PoolConnections, of[column], b.Role, state)
		}
		if limit := poolLimit(sizes[b.Role], users[b.Role]); limit > 0 {
			p.Set(proxy.PoolLimit, limit, b.Role)
		}
	}
	p.Set(proxy.ClientConnections, clients)
	p.Set(engine.Connections, clients)
	if limit, ok := (row(p.config)).number("max_client_conn"); ok && limit > 0 {
		p.Set(proxy.ClientLimit, limit)
		p.Set(engine.ConnectionsLimit, limit)
	}
}

// poolLimit is how many connections the pools of a database may have, 0 if that is not limited.
func poolLimit(database row, users float64) float64 {
	size, _ := database.number("pool_size")
	limit := size * users
	if most, ok := database.number("max_connections"); ok && most > 0 && (limit == 0 || most < limit) {
		limit = most
	}
	return limit
}

// times are the columns of SHOW STATS with a metric, in microseconds. The times of transactions and queries contain the
// time that their clients waited for a connection to a server.
var times = map[string]*measure.Metric{"total_xact_time": proxy.TransactionSecondsTotal, "total_query_time": proxy.QuerySecondsTotal}

// netTimes are times without the waits. A wait is counted before the transaction that it belongs to, so the difference can
// fall: then the highest value so far counts.
type netTimes map[[2]string]netTime

type netTime struct{ gross, highest float64 }

func (n netTimes) next(database, column string, gross, waited float64) float64 {
	key := [2]string{database, column}
	last := n[key]
	if gross < last.gross { // the counters began again
		last = netTime{}
	}
	last.gross, last.highest = gross, max(last.highest, gross-waited)
	if len(n) < maxNetTimes || n[key].gross > 0 {
		n[key] = last
	}
	return last.highest
}

// maxNetTimes is how many databases have series: the first ones.
const maxNetTimes = 4 * proxy.MaxBackends

func (p *pools) setStats(shown []proxy.Backend) {
	of := map[string]row{}
	sum := map[string]float64{}
	for _, r := range p.stats {
		if r["database"] == ownDatabase {
			continue
		}
		of[r["database"]] = r
		for column := range r {
			n, _ := r.number(column)
			sum[column] += n
		}
	}
	p.Set(engine.QueriesTotal, sum["total_query_count"])
	p.Set(engine.BytesTotal, sum["total_received"], "received")
	p.Set(engine.BytesTotal, sum["total_sent"], "sent")
	if n, ok := sum["total_client_login_count"]; ok { // from 1.24 on
		p.Set(proxy.AcceptedTotal, n)
	}
	for _, b := range shown {
		r, ok := of[b.Role]
		if !ok {
			continue
		}
		waited, _ := r.number("total_wait_time")
		p.Set(proxy.QueueSecondsTotal, waited/1e6, b.Role)
		for column, m := range times {
			if gross, ok := r.number(column); ok {
				p.Set(m, p.net.next(b.Role, column, gross, waited)/1e6, b.Role)
			}
		}
		if n, ok := r.number("total_xact_count"); ok {
			p.Set(proxy.SessionsTotal, n, b.Address, b.Role)
		}
		if n, ok := r.number("total_server_assignment_count"); ok { // from 1.23 on
			p.Set(proxy.ReusedTotal, n, b.Address, b.Role)
		}
	}
}
