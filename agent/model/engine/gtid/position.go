package gtid

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Kind keeps the two notations apart; they can't be compared.
type Kind uint8

const (
	MySQL Kind = iota
	MariaDB
)

// Position is what one server has executed. A replica's own transactions are kept
// apart: only servers that replicate from that replica will ever receive them, so
// no other is behind for lacking them.
type Position struct {
	Kind Kind
	// Executed is what the server's peers have or receive too.
	Executed Set
	// Own is what a replica wrote itself.
	Own Set
	// Server identifies this server, Sources those it replicates from.
	Server  string
	Sources []string
	// Text is the position in the server's notation.
	Text string
}

// Behind implements engine.Position: it counts the numbers of all intervals.
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

// missing counts in both parts: what a former replica wrote may have been
// replicated since.
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

// With returns the position with more transactions of the server's peers executed. It has
// none of the server's own.
func (p *Position) With(more Set) *Position {
	all := Set{}
	for _, set := range []Set{p.Executed, more} {
		for origin, intervals := range set {
			all[origin] = normalize(slices.Concat(all[origin], intervals))
		}
	}
	return &Position{Kind: p.Kind, Executed: all, Text: p.Text}
}

// related reports whether two servers have an origin in common. A server that
// has executed nothing yet is related to all.
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

func (p *Position) empty() bool { return len(p.Executed) == 0 && len(p.Own) == 0 }

// Scalar implements engine.Position: the number of transactions executed.
func (p *Position) Scalar() float64 { return float64(p.Executed.Count()) }

// String implements engine.Position.
func (p *Position) String() string {
	return strings.Join(strings.Fields(p.Text), "")
}
