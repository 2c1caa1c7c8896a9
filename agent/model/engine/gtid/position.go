package gtid

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Kind distinguishes the two notations, which can't be compared.
type Kind uint8

const (
	MySQL Kind = iota
	MariaDB
)

// Position is what one server has executed. A replica's own transactions are kept separately: only
// servers that replicate from this replica receive them, so other servers are not behind without
// them.
type Position struct {
	Kind Kind
	// Executed are transactions that the server's peers also have or receive.
	Executed Set
	// Own are transactions that a replica wrote itself.
	Own Set
	// Server identifies this server, Sources the servers from which it replicates.
	Server  string
	Sources []string
	// Text is the position in the server's notation.
	Text string
}

// Behind implements engine.Position. It counts the missing numbers in all intervals.
func (p *Position) Behind(other engine.Position) (uint64, bool) {
	o, ok := other.(*Position)
	if !ok || o.Kind != p.Kind || !related(p, o) {
		return 0, false
	}
	n := p.missing(o.Executed)
	if len(o.Own) > 0 && slices.Contains(p.Sources, o.Server) {
		n = add(n, p.missing(o.Own))
	}
	return n, true
}

// missing considers both parts, since writes of a former replica may have been replicated since.
func (p *Position) missing(other Set) uint64 {
	var n uint64
	for origin, theirs := range other {
		ours := p.Executed[origin]
		if own := p.Own[origin]; len(own) > 0 {
			ours = normalize(slices.Concat(ours, own))
		}
		n = add(n, missing(ours, theirs))
	}
	return n
}

// With returns the position with additional executed transactions of the server's peers, and
// without its own ones.
func (p *Position) With(more Set) *Position {
	all := Set{}
	for _, set := range []Set{p.Executed, more} {
		for origin, intervals := range set {
			all[origin] = normalize(slices.Concat(all[origin], intervals))
		}
	}
	return &Position{Kind: p.Kind, Executed: all, Text: p.Text}
}

// related reports whether two servers have a common origin. A server that has not executed anything
// is related to every server.
func related(a, b *Position) bool {
	if a.empty() || b.empty() {
		return true
	}
	for _, part := range []Set{a.Executed, a.Own} {
		for origin := range part {
			if len(b.Executed[origin]) > 0 || len(b.Own[origin]) > 0 {
				return true
			}
		}
	}
	return false
}

// Origin implements engine.Originator.
func (p *Position) Origin() string { return p.Server }

// Collides implements engine.Originator. A replica of MariaDB knows one transaction of each domain, whichever
// source wrote it.
func (p *Position) Collides(other engine.Position) bool {
	o, ok := other.(*Position)
	if !ok || p.Kind != MariaDB || o.Kind != MariaDB || p.Server == o.Server {
		return false
	}
	for domain := range p.Executed {
		if len(o.Executed[domain]) > 0 {
			return true
		}
	}
	return false
}

func (p *Position) empty() bool { return len(p.Executed) == 0 && len(p.Own) == 0 }

// Scalar implements engine.Position. It returns the number of executed transactions.
func (p *Position) Scalar() float64 { return float64(p.Executed.Count()) }

// String implements engine.Position.
func (p *Position) String() string {
	return strings.Join(strings.Fields(p.Text), "")
}
