package engine

import "slices"

// mostSessionStates limits the label sets of one server.
const mostSessionStates = 32

// SessionState is what an executing session waits for: its class, and the server's own name for it.
type SessionState struct{ Class, Event string }

// SessionStates are the states of one server's sessions so far, in order of first occurrence. The
// zero value has none.
type SessionStates struct{ seen []SessionState }

// Known returns a state, or the state for all others if there are too many.
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

// Set sets ActiveSessions to the number of sessions in each state. A state that occurred before
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
