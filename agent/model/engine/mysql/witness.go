package mysql

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// WitnessDetail is a Detail that can say what holds up the sessions of a server.
type WitnessDetail interface {
	Detail
	// Testify adds to the answer. What the server refuses is in Missing. An error ends the answer.
	Testify(ctx context.Context, q Querier, server *Server, a *evidence.Answer) error
}

// keepIdle is the statement with which the connection of a witness outlives the server's wait_timeout.
const keepIdle = "SET SESSION wait_timeout = 604800"

// Arm implements engine.Witness.
func (p *prober) Arm(ctx context.Context) error {
	p.budget.Renew()
	s, err := p.connector.connect(ctx)
	if err != nil {
		return explain(&p.target, p.progress, err)
	}
	p.conn = &conn{session: s, statements: &p.statements}
	if err := p.conn.execute(ctx, keepIdle); err != nil && !answered(err) {
		p.drop()
		return err
	}
	return nil
}

// Testify implements engine.Witness.
func (p *prober) Testify(ctx context.Context) (*evidence.Answer, error) {
	p.budget.Renew()
	if p.conn == nil {
		if err := p.Arm(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.refresh(ctx); err != nil {
		return nil, p.budget.Check(err)
	}
	a := &evidence.Answer{Version: p.conn.server.Version}
	clear(p.status)
	if err := p.conn.values(ctx, p.showStatus, p.status); err != nil {
		return nil, p.budget.Check(err)
	}
	for _, name := range slices.Sorted(maps.Keys(p.status)) {
		if n, ok := p.status.Number(name); ok {
			a.Set(name, n)
		} else {
			a.Say(name, p.status[name])
		}
	}
	for _, name := range []string{"max_connections", purgeLimit} {
		if n, ok := p.conn.server.Variables.Number(name); ok {
			a.Set(name, n)
		}
	}
	if n, ok := p.status.Number("Threads_running"); ok { // until they are listed, which may need space on a disk
		a.Active = max(0, int(n)-1)
	}
	for _, d := range p.details {
		w, ok := d.(WitnessDetail)
		if !ok {
			continue
		}
		err := w.Testify(ctx, p.conn, p.conn.server, a)
		if err == nil {
			continue
		}
		a.Missing = append(a.Missing, engine.OneLine(err.Error()))
		if err = p.budget.Check(err); !answered(err) {
			if len(a.Sessions)+len(a.Values) == 0 || errors.Is(err, engine.ErrTooMuch) {
				return nil, err
			}
			p.drop() // what was answered before counts
			break
		}
	}
	return a, nil
}
