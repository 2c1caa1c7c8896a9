package evidence

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

var unknown = math.NaN()

// shownInTree is how many sessions that wait for the same one are listed one by one.
const shownInTree = 5

// Reasons that answers of every engine can have.
var _ = Declare(Rules{Reasons: []Reason{
	{Reads: "sessions that wait, and the sessions for which they wait", Each: waits},
	{Name: "server did not answer", Reads: "failures of a server to answer within its deadline, on a connection that was open", Level: Symptom,
		Part: func(l *Look) float64 { return failed(l) * l.Remaining() },
		Text: func(s *Scene, worst *Look) string {
			return fmt.Sprintf("%s did not answer: %s", s.Target, table.Plain(worst.Error))
		}},
	{Name: "outside of the servers", Reads: "idle sessions of all clients, at servers that answer", Level: Symptom,
		Part: outside,
		Text: func(s *Scene, worst *Look) string {
			return fmt.Sprintf("%s had nothing to do: %d of %d sessions executed a statement; the network, the tool or its machine held the clients up",
				s.Target, worst.Active, worst.Connected)
		}},
}})

// nobody is the share of the clients that must be idle for the servers to have nothing to do.
const nobody = 0.9

// outside is 1 if the sessions of nearly all clients are idle, at servers that all answer.
func outside(l *Look) float64 {
	connected, active := 0.0, l.InProxies()
	for _, other := range *l.beside {
		if other.Error != "" {
			return 0
		}
		connected, active = connected+float64(other.Connected), active+float64(other.Active)
	}
	clients := l.scene.Clients
	if l.Connected == 0 || clients == 0 || connected < clients || 1-active/clients < nobody {
		return 0
	}
	return 1
}

// symptoms are the kinds of waits that something else holds up: another server, or the disk.
var symptoms = map[Kind]bool{FlowControl: true, Acknowledging: true, OtherNodes: true, Committing: true, LogWrite: true}

// locks are the kinds of waits for something that a session holds.
var locks = []Kind{RowLock, Lock, TableLock, MetadataLock, GlobalLock, BackupLock, UserLock}

// waits returns a reason for each kind of lock that sessions waited for in the end.
func waits(s *Scene) (all []Reason) {
	for _, l := range s.Looks {
		for kind := range l.ends() {
			if slices.ContainsFunc(all, func(r Reason) bool { return r.Name == string(kind) }) {
				continue
			}
			r := Reason{
				Name: string(kind),
				Part: func(l *Look) float64 { return l.Share(l.ends()[kind]) },
				Text: func(s *Scene, _ *Look) string { return s.waited(kind) },
				Tree: func(_ *Look) []string { return s.shown(kind).Tree(shownInTree) },
			}
			if symptoms[kind] {
				r.Level = Symptom
			}
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Reason) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ends counts the sessions by what they wait for in the end: a session that waits for the rows of another one, which
// waits for a metadata lock, waits for the metadata lock. Only some sessions are listed; the others of a kind are taken
// to wait as those do.
func (l *Look) ends() map[Kind]float64 {
	if l.ended != nil {
		return l.ended
	}
	l.ended = map[Kind]float64{}
	listed, moved := map[Kind]float64{}, map[[2]Kind]float64{}
	for i := range l.Sessions {
		s := &l.Sessions[i]
		if s.Waits == nil {
			continue
		}
		listed[s.Waits.Kind]++
		moved[[2]Kind{s.Waits.Kind, l.endOf(s)}]++
	}
	for kind, n := range l.Waiting {
		if listed[kind] == 0 {
			l.ended[kind] += float64(n)
		}
	}
	for between, n := range moved {
		kind, end := between[0], between[1]
		l.ended[end] += n / listed[kind] * max(float64(l.Waiting[kind]), 0)
	}
	for kind, n := range l.ended {
		if n == 0 {
			delete(l.ended, kind)
		}
	}
	return l.ended
}

// endOf is what a session waits for in the end.
func (a *Answer) endOf(s *Session) Kind {
	id, via := a.rootOf(s)
	root := a.Session(id)
	switch {
	case root != nil && root != s && root.Waits != nil: // it waits for no session
		return root.Waits.Kind
	case via != nil && via.ID != id && via.Waits != nil:
		return via.Waits.Kind
	}
	return s.Waits.Kind
}

// shown is the look that a reason describes: the last one with the most sessions that waited, of those at which the lock was
// held by the session that held it for most of the time.
func (s *Scene) shown(kind Kind) *Look {
	held := map[string]float64{}
	for _, l := range s.Looks {
		if r := l.rootFor(kind); r != nil {
			held[r.ID] += l.ends()[kind] * l.weight
		}
	}
	worst, _ := s.Worst(func(l *Look) float64 {
		n, r := l.ends()[kind], l.rootFor(kind)
		switch {
		case r == nil:
			return n * 1e-9
		case n > 0:
			return held[r.ID] + n*1e-6
		}
		return 0
	})
	return worst
}

// waited describes who waited for a lock, and who held it.
func (s *Scene) waited(kind Kind) string {
	l := s.shown(kind)
	who := l.clients(l.ends()[kind])
	waited := fmt.Sprintf("%s waited for the %s", who, kind)
	r := l.rootFor(kind)
	waits := ""
	if r != nil && r.Waits != nil { // it waits too, for no session
		waits, r = ", first "+r.Name(), nil
	}
	text := ""
	switch {
	case r == nil && kind == Committing:
		text = fmt.Sprintf("%s waited for their commits on %s%s", who, s.Target, s.Absent())
	case r == nil && symptoms[kind]:
		text = fmt.Sprintf("%s on %s%s%s", waited, s.Target, about(l, kind), s.Absent())
	case r == nil:
		text = fmt.Sprintf("%s waited for a %s on %s; who held it is not visible%s", who, kind, s.Target, missing(l))
		if waits != "" || !slices.Contains(locks, kind) {
			text = fmt.Sprintf("%s on %s%s", waited, s.Target, waits)
		}
	case s.changes(kind):
		on := ""
		if w := r.waiting[0].Waits; w.On != "" {
			on = " of " + w.On
		}
		text = fmt.Sprintf("%s%s, one after the other: another session held it at each look, last %s", waited, on, r.Name())
	case r.first != nil:
		text = fmt.Sprintf("%s behind %s, which waited for %s", waited, r.first.Name(), r.Name())
	default:
		text = fmt.Sprintf("%s that %s held", waited, r.Name())
	}
	if r != nil && slices.ContainsFunc(r.waiting, func(w *Session) bool { return w.Waits.Likely }) {
		text += ": most likely, as the server does not list who holds it"
	}
	return text
}

// about says who is waited for, if that is known.
func about(l *Look, kind Kind) string {
	if text := l.Texts[string(kind)]; text != "" {
		return ": " + table.Plain(text)
	}
	return ""
}

// clients is "31 of 32 clients".
func (l *Look) clients(n float64) string {
	all := l.scene.Clients
	if all == 0 {
		return table.Plural(int(n), "client")
	}
	text := fmt.Sprintf("%.0f of %.0f clients", min(n, all), all)
	if queued := l.InProxies(); queued > 0 {
		text += fmt.Sprintf(" (%.0f more were in the queue of a proxy)", queued)
	}
	return text
}

// rootFor returns the session for which most sessions wait in the end with such a lock; nil if it is not known.
func (a *Answer) rootFor(kind Kind) *root {
	var best *root
	most := 0
	for _, r := range a.roots() {
		n := 0
		for _, w := range r.waiting {
			if a.endOf(w) == kind {
				n++
			}
		}
		if n > most {
			best, most = r, n
		}
	}
	return best
}

// changes reports whether the session that holds what clients wait for is another one at most looks.
func (s *Scene) changes(kind Kind) bool {
	before, looks, changes := "", 0, 0
	for _, l := range s.Looks {
		r := l.rootFor(kind)
		if r == nil {
			continue
		}
		if looks > 0 && r.ID != before {
			changes++
		}
		before, looks = r.ID, looks+1
	}
	return looks >= 3 && 2*changes > looks
}

// missing says what would show it.
func missing(l *Look) string {
	if len(l.Missing) == 0 {
		return ""
	}
	return " (missing: " + table.Plain(strings.Join(l.Missing, "; ")) + ")"
}
