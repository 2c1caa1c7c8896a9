package atlasproxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// program is the name of Atlas's binary.
const program = "mysql-proxy"

// prober samples one proxy through one admin connection and, on this machine, procfs.
type prober struct {
	target  engine.Target
	admin   *proxy.Admin
	budget  engine.Budget
	version string // empty: not asked since the last error
	process proxy.Process
}

func newProber(t engine.Target) (*prober, error) {
	p := &prober{target: t}
	p.process = proxy.Process{
		Program: program, PIDFile: t.Options[proxy.OptionPIDFile], Clients: t.Options[proxy.OptionAddress],
	}

	var err error
	if p.admin, err = proxy.OpenAdmin(&p.target, &p.budget, p.process.Connected); err != nil {
		return nil, fmt.Errorf("atlas: %w", err)
	}
	return p, nil
}

// Close ends the connection.
func (p *prober) Close() error { return p.admin.Close() }

// Probe reads the states of the backends (one statement) and the process.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.budget.Renew()
	if p.version == "" {
		rows, err := p.admin.Query(ctx, "SELECT VERSION")
		if err != nil {
			return nil, p.explain(err)
		}
		if len(rows) > 0 {
			p.version = rows[0].Text("version")
		}
		if p.version == "" {
			return nil, p.notAdmin("it has no version")
		}
	}
	rows, err := p.admin.Query(ctx, "SELECT * FROM backends")
	if err != nil {
		p.version = ""
		return nil, p.explain(err)
	}
	s := &engine.Status{Version: p.version, Flavour: "atlas", Role: proxy.Role}
	backends := make([]proxy.Backend, len(rows))
	for i, row := range rows {
		backends[i] = proxy.Backend{Address: row.Text("address"), State: row.Text("state"), Role: row.Text("type")}
	}
	proxy.SetBackends(s, states, backends)
	s.Members = proxy.Members(backends, "")
	s.Set(engine.AgentStatementsTotal, float64(p.admin.Statements))
	p.process.Sample(s, backends, time.Now())
	return s, nil
}

// explain turns an error into one line with a remedy.
func (p *prober) explain(err error) error {
	var answer *driver.MySQLError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &answer) && answer.Number == proxy.Denied:
		return engine.Explain(err, "atlas: login refused (%s): user and password are admin-username and admin-password of Atlas", answer.Message)
	case errors.As(err, &answer):
		return p.notAdmin(answer.Message)
	}
	if explained := engine.ExplainConnection(p.target.Address, err); explained != nil {
		err = explained
	} else {
		err = fmt.Errorf("%s: %w", p.target.Address, err)
	}
	return fmt.Errorf("atlas: %w", err)
}

func (p *prober) notAdmin(why string) error {
	return engine.Explain(nil, "atlas: %s is not Atlas's admin interface (%s): set address to its admin-address, not to the port for clients", p.target.Address, why)
}
