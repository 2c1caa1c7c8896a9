package engine

import "slices"

// mostSessionStates bounds the label sets of one server.
const mostSessionStates = 32

// SessionState is what a session that executes a statement waits for: its class, and the
// server's own name of it.
type SessionState struct{ Class, Event string }

// SessionStates are the states that one server's sessions had so far, in the order in which
// they came. The zero value has none.
type SessionStates struct{ seen []SessionState }

// Known returns a state, that of all others if there are too many.
func (s *SessionStates) Known(state SessionState) SessionState {
	if !slices.Contains(s.seen, state) {
		if len(s.seen) >= mostSessionStates-1 {
			state = SessionState{Other, Other}
		}
		if !slices.Contains(s.seen, state) {
			s.seen = append(s.seen, state)
		}
	}
	return state
}

// Set sets ActiveSessions to how many sessions there are of each state. What was seen once
// stays, as 0.
func (s *SessionStates) Set(out *Status, counts map[SessionState]float64) {
	known := map[SessionState]float64{}
	s.Known(SessionState{Running, Running})
	for state, n := range counts {
		if n > 0 {
			known[s.Known(state)] += n
		}
	}
	for _, state := range s.seen {
		out.Set(ActiveSessions, known[state], state.Class, state.Event)
	}
}
