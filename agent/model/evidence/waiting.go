package evidence

import (
	"cmp"
	"fmt"
	"maps"
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
	{Reads: "sessions that wait, and the sessions for which they wait", Find: blocked},
	{Name: "server did not answer", Reads: "failures of a server to answer within its deadline, on a connection that was open", Find: silent},
}})

// blocked finds what most clients waited for, and who held it.
func blocked(s *Scene) (Found, bool) {
	worst, _ := s.Worst(func(a *Answer) float64 {
		kind, n := a.most()
		if a.rootFor(kind) == nil { // another look may show who held it
			return float64(n) / 2
		}
		return float64(n)
	})
	if worst == nil {
		return Found{}, false
	}
	kind, count := worst.most()
	if count == 0 {
		return Found{}, false
	}
	n := float64(count)
	if !s.Most(func(a *Answer) bool { return s.Share(float64(a.Waiting[kind]), a) >= least }) {
		return Found{}, false
	}
	f := Found{Name: string(kind), Share: s.Share(n, worst), Tree: worst.Tree(shownInTree)}
	if kind == Committing || slices.Contains(elsewhere, kind) { // what holds that up says more
		f.Share *= 0.8
	}
	waited := fmt.Sprintf("%s waited for the %s", s.clients(n), kind)
	r := worst.rootFor(kind)
	switch {
	case r == nil && slices.Contains(elsewhere, kind):
		f.Text = fmt.Sprintf("%s on %s%s%s", waited, s.Target, about(worst, kind), s.Absent())
	case r == nil && kind == Committing:
		f.Text = fmt.Sprintf("%s waited for their commits on %s%s", s.clients(n), s.Target, s.Absent())
	case r == nil:
		f.Text = fmt.Sprintf("%s waited for a %s on %s; who held it is not visible%s", s.clients(n), kind, s.Target, missing(worst))
	case s.changes(kind):
		on := ""
		if w := r.waiting[0].Waits; w.On != "" {
			on = " of " + w.On
		}
		f.Text = fmt.Sprintf("%s waited for the %s%s, one after the other: another session held it at each look, last %s",
			s.clients(n), kind, on, r.Name())
	case r.first != nil:
		f.Text = fmt.Sprintf("%s behind %s, which waited for %s", waited, r.first.Name(), r.Name())
	default:
		f.Text = fmt.Sprintf("%s that %s held", waited, r.Name())
	}
	if r != nil && slices.ContainsFunc(r.waiting, func(w *Session) bool { return w.Waits.Likely }) {
		f.Text += ": most likely, as the server does not list who holds it"
	}
	return f, true
}

// elsewhere are the kinds of waits for other servers.
var elsewhere = []Kind{FlowControl, Acknowledging, OtherNodes}

// about says who is waited for, if that is known.
func about(a *Answer, kind Kind) string {
	if text := a.Texts[string(kind)]; text != "" {
		return ": " + table.Plain(text)
	}
	return ""
}

// Absent names the other servers that did not answer: "; n3 did not answer". It is empty if all did.
func (s *Scene) Absent() string {
	var names []string
	for _, other := range s.All {
		if other != s && other.Failed > 0 && 2*other.Failed >= len(other.Answers)+other.Failed-1 {
			names = append(names, other.Target)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + strings.Join(names, ", ") + " did not answer"
}

// clients is "31 of 32 clients".
func (s *Scene) clients(n float64) string {
	if s.Clients == 0 {
		return table.Plural(int(n), "client")
	}
	if queued := s.queued(); queued > 0 {
		return fmt.Sprintf("%.0f of %.0f clients (%.0f more were in the queue of a proxy)", min(n, s.Clients), s.Clients, queued)
	}
	return fmt.Sprintf("%.0f of %.0f clients", min(n, s.Clients), s.Clients)
}

// most returns the kind for which most sessions wait, and how many.
func (a *Answer) most() (kind Kind, n int) {
	for _, k := range slices.SortedFunc(maps.Keys(a.Waiting), func(x, y Kind) int {
		return cmp.Or(cmp.Compare(a.Waiting[y], a.Waiting[x]), strings.Compare(string(x), string(y)))
	}) {
		return k, a.Waiting[k]
	}
	return "", 0
}

// rootFor returns the session for which most sessions wait with such a lock; nil if it is not known.
func (a *Answer) rootFor(kind Kind) *root {
	var best *root
	most := 0
	for _, r := range a.roots() {
		n := 0
		for _, w := range r.waiting {
			if w.Waits.Kind == kind {
				n++
			}
		}
		if n > most {
			best, most = r, n
		}
	}
	return best
}

// changes reports whether the session that holds what clients wait for is another one at almost every look.
func (s *Scene) changes(kind Kind) bool {
	before, looks, changes := "", 0, 0
	for _, a := range s.Answers {
		r := a.rootFor(kind)
		if r == nil {
			continue
		}
		if looks > 0 && r.ID != before {
			changes++
		}
		before, looks = r.ID, looks+1
	}
	return looks >= 3 && changes >= looks-2
}

// missing says what would show it.
func missing(a *Answer) string {
	if len(a.Missing) == 0 {
		return ""
	}
	return " (missing: " + table.Plain(strings.Join(a.Missing, "; ")) + ")"
}

// silent finds a server that did not answer.
func silent(s *Scene) (Found, bool) {
	if s.Failed == 0 || s.Failed < len(s.Answers) {
		return Found{}, false
	}
	return Found{Share: 0.8, Text: fmt.Sprintf("%s did not answer: %s", s.Target, table.Plain(s.Error))}, true
}
