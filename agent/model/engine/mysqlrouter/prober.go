package mysqlrouter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

const (
	// processName is the name of Router's binary.
	processName = "mysqlrouter"
	// api is the version of the REST interface, the only one so far.
	api = "/api/20190715"
	// mostRoutes bounds the routes that are read.
	mostRoutes = 32
	// slowInterval is the time between two readings of what changes only when Router is restarted.
	slowInterval = 30 * time.Second
)

// prober samples one Router.
type prober struct {
	target   engine.Target
	budget   engine.Budget
	client   *proxy.Client
	process  proxy.Process
	requests uint64
	known    *known // nil: not read since the last error
	readAt   time.Time
	bytes    counter
}

// known is what changes only when Router is restarted.
type known struct {
	status  routerStatus
	routing routingStatus // of all routes; from 8.0.29 on
	routes  []string
	configs map[string]routeConfig
	pools   []string // the names of pools of connections
}

type routerStatus struct {
	ProcessID   int       `json:"processId"`
	TimeStarted time.Time `json:"timeStarted"`
	Version     string    `json:"version"`
	Hostname    string    `json:"hostname"`
}

type routingStatus struct {
	MaxTotalConnections     *float64 `json:"maxTotalConnections"`
	CurrentTotalConnections *float64 `json:"currentTotalConnections"`
}

// routeConfig is the configuration of a route. It has no secrets.
type routeConfig struct {
	BindAddress      string  `json:"bindAddress"`
	BindPort         int     `json:"bindPort"`
	ClientTimeout    float64 `json:"clientConnectTimeoutInMs"`
	ConnectTimeout   float64 `json:"destinationConnectTimeoutInMs"`
	MaxConnections   float64 `json:"maxActiveConnections"`
	MaxConnectErrors float64 `json:"maxConnectErrors"`
	Protocol         string  `json:"protocol"`
	Strategy         string  `json:"routingStrategy"`
}

type routeStatus struct {
	ActiveConnections *float64 `json:"activeConnections"`
	TotalConnections  *float64 `json:"totalConnections"`
	BlockedHosts      *float64 `json:"blockedHosts"`
}

type destination struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
}

func (d destination) String() string { return net.JoinHostPort(d.Address, strconv.Itoa(d.Port)) }

type connection struct {
	FromServer  float64 `json:"bytesFromServer"`
	ToServer    float64 `json:"bytesToServer"`
	Source      string  `json:"sourceAddress"`
	Destination string  `json:"destinationAddress"`
	Started     string  `json:"timeStarted"`
}

type items[T any] struct {
	Items []T `json:"items"`
}

type named struct {
	Name string `json:"name"`
}

type poolStatus struct {
	Idle    *float64 `json:"idleServerConnections"`
	Stashed *float64 `json:"stashedServerConnections"` // shared, from 8.0.30 on
}

func newProber(t engine.Target) *prober {
	p := &prober{target: t, bytes: counter{seen: map[string]connection{}, sum: map[key]float64{}}}
	p.client = proxy.NewClient(&p.target, &p.budget)
	p.process = proxy.Process{
		Program: processName, PIDFile: t.Options[proxy.OptionPIDFile], Clients: t.Options[proxy.OptionAddress], Search: true,
	}
	p.client.Connected = p.process.Connected
	return p
}

// Close ends the connection.
func (p *prober) Close() error { p.client.Close(); return nil }

// Probe reads the routes and the process.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.budget.Renew()
	s, err := p.probe(ctx)
	if err != nil {
		p.known = nil
		return nil, p.client.Explain("mysqlrouter", "the configuration needs the sections rest_api, rest_router and rest_routing", err)
	}
	return s, nil
}

func (p *prober) probe(ctx context.Context) (*engine.Status, error) {
	if p.known == nil || time.Since(p.readAt) >= slowInterval {
		if err := p.readKnown(ctx); err != nil {
			return nil, err
		}
	}
	k := p.known
	s := &engine.Status{Version: k.status.Version, Flavour: "mysqlrouter", Role: proxy.Role, Nodename: k.status.Hostname}
	if !k.status.TimeStarted.IsZero() {
		s.Uptime = max(0, time.Since(k.status.TimeStarted))
	}
	p.process.PID = k.status.ProcessID
	r := &routes{Status: s, known: k}
	begin := time.Now()
	for i, name := range k.routes {
		if err := p.readRoute(ctx, r, name); err != nil {
			return nil, err
		}
		if i == 0 {
			s.RoundTrip = time.Since(begin) / 3 // of the three requests
		}
	}
	for _, name := range k.pools {
		var status poolStatus
		if err := p.get(ctx, "/connection_pool/"+url.PathEscape(name)+"/status", &status); err != nil {
			return nil, err
		}
		r.addPool(status)
	}
	if err := p.optional(ctx, "/routing/status", &r.routing); err != nil {
		return nil, err
	}
	shown := r.set(&p.bytes)
	s.Set(engine.AgentStatementsTotal, float64(p.requests))
	p.process.Sample(s, shown, time.Now())
	return s, nil
}

// readRoute reads what a route did.
func (p *prober) readRoute(ctx context.Context, r *routes, name string) error {
	route := route{name: name}
	var destinations items[destination]
	var connections items[connection]
	path := "/routes/" + url.PathEscape(name)
	for _, part := range []struct {
		what string
		into any
	}{{"/status", &route.status}, {"/destinations", &destinations}, {"/connections", &connections}} {
		if err := p.get(ctx, path+part.what, part.into); err != nil {
			return err
		}
	}
	route.destinations, route.connections = destinations.Items, connections.Items
	r.all = append(r.all, route)
	return nil
}

// readKnown reads what changes only when Router is restarted.
func (p *prober) readKnown(ctx context.Context) error {
	k := &known{configs: map[string]routeConfig{}}
	var routes, pools items[named]
	if err := p.get(ctx, "/router/status", &k.status); err != nil {
		return err
	}
	if err := p.get(ctx, "/routes", &routes); err != nil {
		return err
	}
	if err := p.optional(ctx, "/connection_pool", &pools); err != nil {
		return err
	}
	for _, r := range routes.Items[:min(len(routes.Items), mostRoutes)] {
		var config routeConfig
		if err := p.get(ctx, "/routes/"+url.PathEscape(r.Name)+"/config", &config); err != nil {
			return err
		}
		k.routes, k.configs[r.Name] = append(k.routes, r.Name), config
	}
	for _, pool := range pools.Items[:min(len(pools.Items), mostRoutes)] {
		k.pools = append(k.pools, pool.Name)
	}
	p.known, p.readAt = k, time.Now()
	return nil
}

// get reads one resource.
func (p *prober) get(ctx context.Context, path string, into any) error {
	p.requests++
	body, err := p.client.Get(ctx, api+path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer to %s is not Router's: %w", path, err)
	}
	return nil
}

// optional reads a resource that versions or configurations lack.
func (p *prober) optional(ctx context.Context, path string, into any) error {
	err := p.get(ctx, path, into)
	var status *proxy.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// Settings implements engine.Configured.
func (p *prober) Settings(context.Context) (engine.Settings, error) {
	if p.known == nil {
		return nil, errors.New("mysqlrouter: not connected")
	}
	out := engine.Settings{}
	number := func(name string, n float64) { out[name] = strconv.FormatFloat(n, 'f', -1, 64) }
	if n := p.known.routing.MaxTotalConnections; n != nil {
		number("max_total_connections", *n)
	}
	for name, c := range p.known.configs {
		out[name+" routing_strategy"], out[name+" protocol"] = c.Strategy, c.Protocol
		number(name+" max_connections", c.MaxConnections)
		number(name+" max_connect_errors", c.MaxConnectErrors)
		number(name+" connect_timeout_ms", c.ConnectTimeout)
		number(name+" client_connect_timeout_ms", c.ClientTimeout)
	}
	return out, nil
}
