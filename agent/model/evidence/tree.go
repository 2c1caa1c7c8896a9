package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// deepest bounds the length of a chain of sessions that wait for each other.
const deepest = 20

// root is a session that does not wait, and the sessions that wait for it, directly or through others.
type root struct {
	*Session
	waiting []*Session
	// first is the session between it and most of the waiting ones; nil if they wait for the root itself.
	first *Session
}

// roots returns the sessions for which others wait, those with the most waiting ones first.
func (a *Answer) roots() []*root {
	byID, between := map[string]*root{}, map[string]map[*Session]int{}
	var all []*root
	for i := range a.Sessions {
		s := &a.Sessions[i]
		if s.Waits == nil || len(s.Waits.By) == 0 {
			continue
		}
		id, via := a.rootOf(s)
		holder := a.Session(id)
		if holder == nil || id == s.ID || holder.Waits != nil && len(holder.Waits.By) > 0 { // in a circle
			continue
		}
		r := byID[id]
		if r == nil {
			r = &root{Session: holder}
			byID[id], between[id] = r, map[*Session]int{}
			all = append(all, r)
		}
		r.waiting = append(r.waiting, s)
		if via != nil && via.ID != s.ID {
			between[id][via]++
		}
	}
	for id, r := range byID {
		for via, n := range between[id] {
			if 2*n > len(r.waiting)-1 { // it waits itself
				r.first = via
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *root) int {
		return cmp.Or(cmp.Compare(len(b.waiting), len(a.waiting)), strings.Compare(a.ID, b.ID))
	})
	return all
}

// rootOf follows the sessions that a session waits for. via is the last one before the root, nil if it is the session
// itself.
func (a *Answer) rootOf(s *Session) (id string, via *Session) {
	seen := map[string]bool{}
	for range deepest {
		seen[s.ID] = true
		next := ""
		for _, by := range s.Waits.By { // sessions that wait for the same lock come before it in the queue
			holder := a.Session(by)
			if holder == nil || seen[by] {
				continue
			}
			if holder.Waits == nil || len(holder.Waits.By) == 0 {
				return by, via
			}
			next = cmp.Or(next, by)
		}
		if next == "" {
			return s.ID, via
		}
		s = a.Session(next)
		via = s
	}
	return s.ID, via
}

// Tree returns who waits for whom, a line for each session, the waiting ones below the one that they wait for. At most n
// sessions below each are listed.
func (a *Answer) Tree(n int) (lines []string) {
	below := map[string][]*Session{}
	for i := range a.Sessions {
		s := &a.Sessions[i]
		if s.Waits != nil && len(s.Waits.By) > 0 {
			by := a.directly(s)
			below[by] = append(below[by], s)
		}
	}
	seen := map[string]bool{}
	var add func(s *Session, depth int)
	add = func(s *Session, depth int) {
		if seen[s.ID] || depth > deepest {
			return
		}
		seen[s.ID] = true
		lines = append(lines, strings.Repeat("  ", depth)+s.line(len(below[s.ID]) > 0))
		waiting := below[s.ID]
		slices.SortStableFunc(waiting, func(a, b *Session) int { return cmp.Compare(len(below[b.ID]), len(below[a.ID])) })
		for i, w := range waiting {
			if i >= n && len(below[w.ID]) == 0 {
				lines = append(lines, fmt.Sprintf("%s%d more wait for it", strings.Repeat("  ", depth+1), len(waiting)-i))
				break
			}
			add(w, depth+1)
		}
	}
	for _, r := range a.roots() {
		add(r.Session, 0)
	}
	return lines
}

// directly returns the session that a session waits for: of several, the one that waits itself, since the others come
// after it.
func (a *Answer) directly(s *Session) string {
	for _, by := range s.Waits.By {
		if h := a.Session(by); h != nil && h.Waits != nil && len(h.Waits.By) > 0 && h.Waits.On != s.Waits.On && !slices.Contains(h.Waits.By, s.ID) {
			return by
		}
	}
	id, _ := a.rootOf(s)
	if slices.Contains(s.Waits.By, id) {
		return id
	}
	return s.Waits.By[0]
}

// line describes a session in the tree, and what it holds if others wait for it.
func (s *Session) line(isHolder bool) string {
	text := s.Name()
	if s.Holds != "" && isHolder {
		text += ", holds " + s.Holds
	}
	if s.Waits != nil {
		text += ", waits for " + string(s.Waits.Kind)
		if s.Waits.On != "" {
			text += " " + s.Waits.On
		}
	}
	return table.Plain(text)
}

// shownStatement is the number of characters of a statement in a sentence.
const shownStatement = 80

// Name describes a session in a sentence: "session 4711 (ALTER TABLE t …, app@10.0.0.5, for 9 s)".
func (s *Session) Name() string {
	var about []string
	switch statement := table.Clip(table.Plain(s.Statement), shownStatement); {
	case s.Idle && statement != "":
		about = append(about, "idle after "+statement)
	case s.Idle:
		about = append(about, "idle")
	case statement != "":
		about = append(about, statement)
	case s.State != "":
		about = append(about, table.Plain(s.State))
	}
	switch {
	case s.User != "" && s.Host != "":
		about = append(about, table.Plain(s.User+"@"+s.Host))
	case s.User != "" || s.Host != "":
		about = append(about, table.Plain(s.User+s.Host))
	}
	if s.Seconds.Known {
		about = append(about, "for "+seconds(s.Seconds.Value))
	}
	if t := s.Transaction; t.Known && (!s.Seconds.Known || t.Value > s.Seconds.Value+1) {
		about = append(about, "in a transaction of "+seconds(t.Value))
	}
	name := "session " + table.Plain(s.ID)
	if len(about) > 0 {
		name += " (" + strings.Join(about, ", ") + ")"
	}
	return name
}

func seconds(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f s", v)
	}
	return table.Duration(v)
}
