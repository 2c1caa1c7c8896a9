package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// mostStatus is the number of variables from which their memory is not kept for the next tick.
const mostStatus = 1024

// prober samples one server through one connection.
type prober struct {
	target  engine.Target
	details []Detail
	log     *slog.Logger

	connector  *connector
	progress   progress
	budget     engine.Budget
	conn       *conn  // nil: not connected
	statements uint64 // sent so far
	status     Values // of the current tick
	autocommit autocommits
	// asked: a refused login was tried with TLS; needsTLS: that worked.
	asked, needsTLS bool

	showStatus, showVariables, showSettings string // statements
}

func newProber(t engine.Target, details []Detail, log *slog.Logger) (engine.Prober, error) {
	p := &prober{target: t, details: details, log: log, status: Values{}}
	status, system, settings := slices.Concat(variables.Names(), []string{"Uptime"}, autocommitNames, combinedNames),
		slices.Clone(serverVariables), slices.Clone(settingNames)
	options := engine.OptionChecks{}
	for _, d := range details {
		needs := d.Needs()
		status = append(status, needs.Status...)
		system = append(system, needs.Variables...)
		settings = append(settings, needs.Settings...)
		maps.Copy(options, needs.Options)
	}
	p.showStatus, p.showVariables, p.showSettings = show("STATUS", status), show("VARIABLES", system), show("VARIABLES", settings)
	err := options.Check(&t)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	p.connector, err = newConnector(t, &p.progress, &p.budget)
	return p, err
}

// Probe implements engine.Prober.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.budget.Renew()
	known := p.conn != nil
	status, err := p.sample(ctx)
	err = p.budget.Check(err)
	if err != nil && known && lost(err) && ctx.Err() == nil {
		// The server was restarted, or closed an idle connection. A second attempt saves the tick.
		p.drop()
		status, err = p.sample(ctx)
	}
	if err != nil {
		at := p.progress
		at.needsTLS = p.needsTLS
		p.drop()
		return nil, explain(&p.target, at, err)
	}
	return status, nil
}

// Close implements engine.Prober.
func (p *prober) Close() error {
	p.drop()
	var err error
	for _, d := range p.details {
		if c, ok := d.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

func (p *prober) drop() {
	if p.conn != nil {
		_ = p.conn.Close() // a lost connection is closed already
		p.conn = nil
	}
}

// refresh identifies the server if the last identification is too old.
func (p *prober) refresh(ctx context.Context) error {
	c := p.conn
	if c.server != nil && time.Since(c.refreshed) < refreshEvery {
		return nil
	}
	variables := Values{}
	if err := c.values(ctx, p.showVariables, variables); err != nil {
		return err
	}
	server, err := NewServer(variables)
	if err != nil {
		return err
	}
	if c.server == nil || c.server.Version != server.Version || c.server.Flavour != server.Flavour {
		p.log.Debug("connected", "flavour", server.Flavour, "version", server.Version)
	}
	c.server, c.refreshed, c.refused = server, time.Now(), map[string]error{}
	return nil
}

func (p *prober) sample(ctx context.Context) (*engine.Status, error) {
	if p.conn == nil {
		p.progress = progress{at: dialling}
		s, err := p.connector.connect(ctx)
		if err != nil {
			p.askForTLS(ctx, err)
			return nil, err
		}
		p.conn = &conn{session: s, statements: &p.statements}
	}
	p.progress.at = asking
	if err := p.refresh(ctx); err != nil {
		return nil, err
	}
	if len(p.status) > mostStatus {
		p.status = Values{}
	}
	clear(p.status)
	if err := p.conn.values(ctx, p.showStatus, p.status); err != nil {
		return nil, err
	}
	trip, err := p.roundTrip(ctx)
	if err != nil {
		return nil, err
	}
	tick := &Tick{Target: &p.target, Server: p.conn.server, Status: p.status}
	out, err := Decode(ctx, tick, p.conn, p.details)
	if err != nil {
		return nil, err
	}
	out.RoundTrip, out.Encrypted = trip, p.conn.encrypted()
	out.Set(engine.AgentStatementsTotal, float64(p.statements))
	if n, ok := p.autocommit.read(p.conn.server, p.status); ok {
		out.Set(engine.AutocommitsTotal, n)
	}
	return out, nil
}

// askForTLS finds out, once, whether a refused login needs TLS.
func (p *prober) askForTLS(ctx context.Context, err error) {
	if p.asked || p.progress.at != greeting || p.progress.encrypted || !hasNumber(err, accessDenied) || p.target.Password == "" {
		return
	}
	p.asked = true
	p.needsTLS = demandsTLS(ctx, p.target)
}

// roundTrip measures an exchange in which the server has nothing to do. It uses a statement, since
// proxies answer a ping themselves.
func (p *prober) roundTrip(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	if p.target.Behind == "" {
		err := p.conn.ping(ctx)
		return time.Since(begin), err
	}
	err := p.conn.query(ctx, "DO 0", func(sqldriver.Rows) error { return nil })
	if answered(err) { // refused, which must not fail the sample
		return 0, nil
	}
	return time.Since(begin), err
}

// Decode returns the status of one tick's answers.
func Decode(ctx context.Context, tick *Tick, q Querier, details []Detail) (*engine.Status, error) {
	out := &engine.Status{Version: tick.Server.Version, Flavour: tick.Server.Flavour, Nodename: tick.Server.Variables["hostname"]}
	out.ServerID = tick.Server.id()
	if seconds, ok := tick.Status.Uint("Uptime"); ok {
		out.Uptime = time.Duration(min(seconds, 1<<33)) * time.Second
	}
	readVariables(tick, out)
	for _, d := range details {
		err := d.Read(ctx, q, tick, out)
		switch {
		case err == nil:
		case answered(err): // only the values of this detail are missing
			out.Missing = append(out.Missing, engine.OneLine(err.Error()))
		default:
			return nil, err
		}
	}
	return out, nil
}
