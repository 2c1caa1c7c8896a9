package haproxy

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// states of a server, in HAProxy's words in lower case. A draining server gets no new connections.
var states = proxy.States{Up: []string{"up", "no check"}, Down: []string{"down", "nolb", "maint", "drain"}}

// sections sets the metrics of the statistics. If there are sections in mode tcp, as in front of databases, only those
// count: the others serve the page with statistics.
type sections struct {
	*engine.Status
	stats *statistics
	info  info
	only  []string
	tcp   bool
}

// missingAddresses is logged once if the answer has no addresses.
const missingAddresses = "the addresses of the servers: the runtime socket needs level operator (stats socket … level operator), " +
	"the page stats show-legends; without them the servers behind the proxy are not known"

// set sets the metrics and returns the servers that have series.
func (s *sections) set() []proxy.Backend {
	for i := range s.stats.rows {
		s.tcp = s.tcp || s.row(i).text("mode") == "tcp"
	}
	var servers []proxy.Backend
	var rows []*row
	var clients front
	for i := range s.stats.rows {
		r := s.row(i)
		switch {
		case !s.chosen(r):
		case r.kind() == frontend:
			clients.add(r)
		case r.kind() == server:
			servers, rows = append(servers, serverOf(r)), append(rows, r)
		}
	}
	shown := proxy.SetBackends(s.Status, states, servers)
	s.setServers(shown, servers, rows)
	s.setQueues()
	clients.set(s)
	if idle, ok := s.info.number("Idle_pct"); ok && idle <= 100 {
		s.Set(proxy.BusyThreads, 1-idle/100)
	}
	s.Members = proxy.Members(servers, "")
	if len(servers) > 0 && len(s.Members) == 0 {
		s.Missing = append(s.Missing, missingAddresses)
	}
	return shown
}

func (s *sections) row(i int) *row { return &row{s.stats, s.stats.rows[i]} }

// chosen reports whether a row belongs to the sections of the target. A frontend has the clients of all of them.
func (s *sections) chosen(r *row) bool {
	mode := r.text("mode")
	if s.tcp && mode != "" && mode != "tcp" {
		return false
	}
	return r.kind() == frontend || len(s.only) == 0 || slices.Contains(s.only, r.text("pxname"))
}

// serverOf returns a server as a backend. Without its address it has its name: section/server.
func serverOf(r *row) proxy.Backend {
	b := proxy.Backend{Address: r.text("addr"), Role: r.text("pxname")}
	if b.Address == "" {
		b.Address = r.text("pxname") + "/" + r.text("svname")
	}
	state := strings.ToLower(r.text("status")) // "UP 1/3", "MAINT (via …)"
	for _, known := range states.All() {
		if strings.HasPrefix(state, known) {
			b.State = known
		}
	}
	return b
}

// serverColumns are the columns of a server with a metric.
var serverColumns = map[string]*measure.Metric{
	"stot": proxy.SessionsTotal, "slim": proxy.BackendLimit, "weight": proxy.Weight, "chkfail": proxy.CheckFailuresTotal,
	"chkdown": proxy.DownsTotal, "connect": proxy.OpenedTotal, "reuse": proxy.ReusedTotal,
}

// errorColumns are the columns with errors, by kind.
var errorColumns = map[string]string{"econ": "connect", "eresp": "response", "srv_abrt": "server_abort", "cli_abrt": "client_abort"}

// setServers sets what HAProxy reports about each server that has series.
func (s *sections) setServers(shown, servers []proxy.Backend, rows []*row) {
	left := map[[2]string]bool{}
	for _, b := range shown {
		left[[2]string{b.Address, b.Role}] = true
	}
	slowest, measured := 0.0, false
	current := map[string]float64{}
	for i, b := range servers {
		key := [2]string{b.Address, b.Role}
		if !left[key] { // beyond the limit, or a second one at the same address
			continue
		}
		delete(left, key)
		r := rows[i]
		for column, m := range serverColumns {
			if v, ok := r.number(column); ok {
				s.Set(m, v, b.Address, b.Role)
			}
		}
		for column, kind := range errorColumns {
			if v, ok := r.number(column); ok {
				s.Set(proxy.ErrorsTotal, v, b.Address, b.Role, kind)
			}
		}
		s.setServerTimes(r, b, &slowest, &measured)
		if v, ok := r.number("scur"); ok {
			current[b.Address] += v
		}
	}
	for address, n := range current {
		s.Set(proxy.BackendConnections, n, address)
	}
	if measured {
		s.Set(proxy.SlowestConnect, slowest)
	}
}

func (s *sections) setServerTimes(r *row, b proxy.Backend, slowest *float64, measured *bool) {
	retries, ok := r.number("wretr")
	again, _ := r.number("wredis")
	if ok {
		s.Set(proxy.RetriesTotal, retries+again, b.Address, b.Role)
	}
	for column, direction := range map[string]string{"bin": "sent", "bout": "received"} {
		if v, ok := r.number(column); ok {
			s.Set(proxy.BackendBytesTotal, v, b.Address, b.Role, direction)
		}
	}
	// The means are of the last connections, however old these are: without any there is no mean.
	if total, ok := r.number("stot"); !ok || total == 0 {
		return
	}
	if seconds, ok := r.mean("ctime"); ok {
		s.Set(proxy.ConnectSeconds, seconds, b.Address, b.Role)
		*slowest, *measured = max(*slowest, seconds), true
	}
	if seconds, ok := r.mean("rtime"); ok && r.text("mode") == "http" {
		s.Set(proxy.ResponseSeconds, seconds, b.Address, b.Role)
	}
}

// setQueues sets the queue and the limit of each section: the queue before a server is chosen, and those of its servers.
// A section has a limit if each server that is up has one.
func (s *sections) setQueues() {
	queue, limit, unlimited := map[string]float64{}, map[string]float64{}, map[string]bool{}
	longest := map[string]float64{}
	for i := range s.stats.rows {
		r := s.row(i)
		if !s.chosen(r) || r.kind() == frontend {
			continue
		}
		name := r.text("pxname")
		n, _ := r.number("qcur")
		queue[name] += n
		if r.kind() == backend {
			continue
		}
		if seconds, ok := r.mean("qtime"); ok {
			longest[name] = max(longest[name], seconds)
		}
		if most, ok := r.number("slim"); slices.Contains(states.Up, serverOf(r).State) {
			limit[name] += most
			unlimited[name] = unlimited[name] || !ok || most == 0
		}
	}
	for name, seconds := range longest {
		s.Set(proxy.QueueSeconds, seconds, name)
	}
	for name, n := range queue {
		s.Set(proxy.QueueLength, n, name)
		if limit[name] > 0 && !unlimited[name] {
			s.Set(proxy.PoolLimit, limit[name], name)
		}
	}
}

// front is what all frontends report together.
type front struct {
	connections, accepted, refused, in, out float64
	limit                                   float64 // of a frontend, the smallest
	known                                   bool
}

func (f *front) add(r *row) {
	sum := func(to *float64, columns ...string) {
		for _, c := range columns {
			if v, ok := r.number(c); ok {
				*to += v
			}
		}
	}
	sum(&f.connections, "scur")
	sum(&f.accepted, "stot")
	sum(&f.refused, "dreq", "dcon", "dses")
	sum(&f.in, "bin")
	sum(&f.out, "bout")
	if limit, ok := r.number("slim"); ok && limit > 0 && (f.limit == 0 || limit < f.limit) {
		f.limit = limit
	}
	f.known = true
}

func (f *front) set(s *sections) {
	if !f.known {
		return
	}
	s.Set(proxy.ClientConnections, f.connections)
	s.Set(engine.Connections, f.connections)
	s.Set(proxy.AcceptedTotal, f.accepted)
	s.Set(proxy.RefusedTotal, f.refused)
	s.Set(engine.BytesTotal, f.in, "received")
	s.Set(engine.BytesTotal, f.out, "sent")
	if most, ok := s.info.number("Maxconn"); ok && most > 0 && (f.limit == 0 || most < f.limit) {
		f.limit = most
	}
	if f.limit > 0 {
		s.Set(proxy.ClientLimit, f.limit)
		s.Set(engine.ConnectionsLimit, f.limit)
	}
}
