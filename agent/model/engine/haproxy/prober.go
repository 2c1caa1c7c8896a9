package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// processName is the name of HAProxy's binary.
const processName = "haproxy"

// prober samples one HAProxy.
type prober struct {
	target   engine.Target
	budget   engine.Budget
	client   *proxy.Client // nil: the address is a runtime socket
	process  proxy.Process
	commands uint64
	info     info        // as last read
	last     *statistics // as last read
}

func newProber(t engine.Target) *prober {
	p := &prober{target: t}
	p.process = proxy.Process{
		Program: processName, PIDFile: t.Options[proxy.OptionPIDFile], Clients: t.Options[proxy.OptionAddress], Search: true,
	}
	if t.Options[optionStatsPath]+t.Options[optionMetricsPath] != "" {
		p.client = proxy.NewClient(&p.target, &p.budget)
		p.client.Connected = p.process.Connected
	}
	return p
}

// Close ends the connection.
func (p *prober) Close() error {
	if p.client != nil {
		p.client.Close()
	}
	return nil
}

// Probe reads the statistics and the process.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.budget.Renew()
	read := p.readSocket
	switch {
	case p.target.Options[optionStatsPath] != "":
		read = p.readPage
	case p.client != nil:
		read = p.readMetrics
	}
	stats, info, err := read(ctx)
	if err != nil {
		p.last, p.info = nil, nil
		return nil, err
	}
	p.last, p.info = stats, info
	s := &engine.Status{Version: info["Version"], Flavour: "haproxy", Role: proxy.Role, Nodename: info["node"]}
	if uptime, ok := info.number("Uptime_sec"); ok {
		s.Uptime = time.Duration(min(uptime, 1<<33)) * time.Second
	}
	if pid, ok := info.number("Pid"); ok {
		p.process.PID = int(pid)
	}
	shown := (&sections{Status: s, stats: stats, info: info, only: p.only()}).set()
	s.Set(engine.AgentStatementsTotal, float64(p.commands))
	p.process.Sample(s, shown, time.Now())
	return s, nil
}

// only are the sections that the user chose; empty: all.
func (p *prober) only() (names []string) {
	for name := range strings.SplitSeq(p.target.Options[optionBackends], ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// readPage reads the page with statistics as CSV.
func (p *prober) readPage(ctx context.Context) (*statistics, info, error) {
	p.commands++
	path := p.target.Options[optionStatsPath]
	text, err := p.client.Get(ctx, path+";csv")
	if err != nil {
		return nil, nil, p.client.Explain("haproxy", "set stats_path to the uri of the page (stats uri)", err)
	}
	stats, err := parseStatistics(text)
	if err != nil {
		return nil, nil, engine.Explain(err, "haproxy: %s%s: %v; set stats_path to the uri of the page", p.target.Address, path, err)
	}
	return stats, info{}, nil
}

// readMetrics reads the endpoint for Prometheus.
func (p *prober) readMetrics(ctx context.Context) (*statistics, info, error) {
	p.commands++
	path := p.target.Options[optionMetricsPath]
	text, err := p.client.Get(ctx, path)
	if err != nil {
		return nil, nil, p.client.Explain("haproxy", "set metrics_path to the path of the service prometheus-exporter", err)
	}
	stats, info, err := parseMetrics(text)
	if err != nil {
		return nil, nil, engine.Explain(err, "haproxy: %s%s: %v", p.target.Address, path, err)
	}
	return stats, info, nil
}

// readSocket sends both commands to the runtime socket, which closes the connection after its answer.
func (p *prober) readSocket(ctx context.Context) (*statistics, info, error) {
	network := "tcp"
	if strings.HasPrefix(p.target.Address, "/") {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, p.target.Address)
	if err != nil {
		return nil, nil, p.explain(err)
	}
	defer conn.Close()
	p.process.Connected(conn)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	p.commands += 2
	text, err := exchange(p.budget.Conn(conn), "show info;show stat\n")
	if err = p.budget.Check(err); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, nil, p.explain(err)
	}
	return p.parseAnswer(text)
}

func exchange(conn net.Conn, command string) ([]byte, error) {
	if _, err := io.WriteString(conn, command); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(conn, 1<<30)) // the budget is smaller
}

func (p *prober) parseAnswer(text []byte) (*statistics, info, error) {
	if bytes.HasPrefix(text, []byte("HTTP/")) {
		return nil, nil, engine.Explain(nil, "haproxy: %s answers with HTTP: set stats_path (stats uri) or metrics_path of the target", p.target.Address)
	}
	at := bytes.Index(text, []byte("# pxname,"))
	if at < 0 || !bytes.Contains(text[:at], []byte("Name: HAProxy")) {
		return nil, nil, engine.Explain(nil, "haproxy: %s is not a runtime socket of HAProxy (stats socket): it answered %q",
			p.target.Address, text[:min(len(text), 80)])
	}
	stats, err := parseStatistics(text[at:])
	if err != nil {
		return nil, nil, engine.Explain(err, "haproxy: %s: %v", p.target.Address, err)
	}
	return stats, parseInfo(text[:at]), nil
}

// explain turns an error of the runtime socket into one line with a remedy.
func (p *prober) explain(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.EACCES):
		return engine.Explain(err, "haproxy: permission denied at the socket %s: set user, group or mode of `stats socket`, "+
			"or run the agent as a member of its group", p.target.Address)
	case errors.Is(err, fs.ErrNotExist):
		return engine.Explain(err, "haproxy: there is no socket %s: set address to the path of `stats socket`", p.target.Address)
	case errors.Is(err, engine.ErrTooMuch):
		return engine.Explain(err, "haproxy: %s: %v", p.target.Address, err)
	}
	if explained := engine.ExplainConnection(p.target.Address, err); explained != nil {
		return fmt.Errorf("haproxy: %w", explained)
	}
	return fmt.Errorf("haproxy: %s: %w", p.target.Address, err)
}

// settingNames are the lines of `show info` that are settings.
var settingNames = []string{"Nbthread", "Maxconn", "Ulimit-n", "ConnRateLimit", "SessRateLimit", "Nbproc"}

// Settings implements engine.Configured: what the last sample contained of limits, weights and algorithms. HAProxy shows
// nothing else of its configuration while it runs.
func (p *prober) Settings(context.Context) (engine.Settings, error) {
	if p.last == nil {
		return nil, errors.New("haproxy: not connected")
	}
	out := engine.Settings{}
	for _, name := range settingNames {
		if value := p.info[name]; value != "" {
			out[name] = value
		}
	}
	for _, cells := range p.last.rows[:min(len(p.last.rows), 2*proxy.MaxBackends)] {
		r := row{p.last, cells}
		columns := map[string]string{"slim": "maxconn", "qlimit": "maxqueue", "weight": "weight"}
		if r.kind() != server {
			columns = map[string]string{"slim": "maxconn", "mode": "mode", "algo": "balance"}
		}
		if r.kind() == backend {
			delete(columns, "slim") // fullconn, which limits nothing
		}
		for column, name := range columns {
			if value := r.text(column); value != "" {
				out[r.text("pxname")+"/"+r.text("svname")+" "+name] = value
			}
		}
	}
	return out, nil
}
