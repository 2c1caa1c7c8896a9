package mysqlrouter

import (
	"maps"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// states: Router does not report which destinations it uses.
var states = proxy.States{Unknown: []string{"listed"}}

// routes sets the metrics of all routes. The role of a backend is its route.
type routes struct {
	*engine.Status
	known         *known
	all           []route
	routing       routingStatus
	idle, stashed float64
	pooled        bool
}

// route is what one route did.
type route struct {
	name         string
	status       routeStatus
	destinations []destination
	connections  []connection
}

func (r *routes) addPool(p poolStatus) {
	if p.Idle != nil {
		r.idle, r.pooled = r.idle+*p.Idle, true
	}
	if p.Stashed != nil {
		r.stashed += *p.Stashed
	}
}

func (r *routes) set(bytes *counter) []proxy.Backend {
	var backends []proxy.Backend
	current, open, total, blocked := map[string]float64{}, 0.0, 0.0, 0.0
	for i := range r.all {
		route := &r.all[i]
		for _, d := range route.destinations {
			backends = append(backends, proxy.Backend{Address: d.String(), Role: route.name, State: "listed"})
			current[d.String()] += 0
		}
		for _, c := range route.connections {
			current[c.Destination]++
		}
		for _, part := range []struct {
			from *float64
			to   *float64
		}{{route.status.ActiveConnections, &open}, {route.status.TotalConnections, &total}, {route.status.BlockedHosts, &blocked}} {
			if part.from != nil {
				*part.to += *part.from
			}
		}
		if limit := r.known.configs[route.name].MaxConnections; limit > 0 {
			r.Set(proxy.PoolLimit, limit, route.name)
		}
	}
	shown := proxy.SetBackends(r.Status, states, backends)
	for _, b := range shown {
		if n, ok := current[b.Address]; ok {
			r.Set(proxy.BackendConnections, n, b.Address)
			delete(current, b.Address)
		}
	}
	r.Members = proxy.Members(backends, "mysql")
	r.Set(proxy.ClientConnections, open)
	r.Set(engine.Connections, open)
	r.Set(proxy.AcceptedTotal, total)
	r.setLimit()
	if r.pooled {
		r.Set(proxy.PoolConnections, r.idle, "", "idle")
		r.Set(proxy.PoolConnections, r.stashed, "", "stashed")
	}
	bytes.count(r.all)
	r.setBytes(bytes, shown)
	return shown
}

// setLimit sets the limit of clients: that of Router, or of its only route.
func (r *routes) setLimit() {
	limit := 0.0
	if n := r.routing.MaxTotalConnections; n != nil {
		limit, r.known.routing = *n, r.routing
	}
	if len(r.all) == 1 {
		if own := r.known.configs[r.all[0].name].MaxConnections; own > 0 && (limit == 0 || own < limit) {
			limit = own
		}
	}
	if limit > 0 {
		r.Set(proxy.ClientLimit, limit)
		r.Set(engine.ConnectionsLimit, limit)
	}
}

func (r *routes) setBytes(bytes *counter, shown []proxy.Backend) {
	in, out := 0.0, 0.0
	for k, n := range bytes.sum {
		if k.direction == sent {
			in += n
		} else {
			out += n
		}
	}
	r.Set(engine.BytesTotal, in, "received") // from clients, and on to the servers
	r.Set(engine.BytesTotal, out, "sent")
	for _, b := range shown {
		for _, direction := range []string{sent, received} {
			r.Set(proxy.BackendBytesTotal, bytes.sum[key{b.Role, b.Address, direction}], b.Address, b.Role, direction)
		}
	}
}

// Directions, from Router to the server and back.
const sent, received = "sent", "received"

// key is a counter of bytes.
type key struct{ route, backend, direction string }

// counter adds up the bytes of connections, whose own counters end with them.
type counter struct {
	seen map[string]connection
	sum  map[key]float64
}

// mostCounters bounds the destinations that are counted: their addresses change with a cluster.
const mostCounters = 512

func (c *counter) count(all []route) {
	now := map[string]connection{}
	for i := range all {
		for _, one := range all[i].connections {
			id := all[i].name + " " + one.Source + " " + one.Started
			before := c.seen[id]
			now[id] = one
			for direction, n := range map[string]float64{sent: one.ToServer - before.ToServer, received: one.FromServer - before.FromServer} {
				if k := (key{all[i].name, one.Destination, direction}); n > 0 {
					c.sum[k] += n
				}
			}
		}
	}
	c.seen = now
	if len(c.sum) > mostCounters {
		for _, k := range slices.Collect(maps.Keys(c.sum))[:len(c.sum)-mostCounters] {
			delete(c.sum, k)
		}
	}
}
