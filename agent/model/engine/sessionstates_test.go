package engine

import "testing"

// TestSessionStates guards that a server with ever new states creates no more series, that all of
// its sessions are counted, and that a state that occurred stays.
func TestSessionStates(t *testing.T) {
	var states SessionStates
	counts := map[SessionState]float64{}
	for i := range 1000 {
		counts[SessionState{Running, string(rune('a' + i))}] = 1
	}
	var first, second Status
	states.Set(&first, counts)
	sum := 0.0
	for _, v := range first.Values {
		sum += v.V
	}
	if len(first.Values) != mostSessionStates || sum != 1000 {
		t.Errorf("%d series with %g sessions", len(first.Values), sum)
	}
	states.Set(&second, nil)
	if n, ok := second.Get(ActiveSessions, Other, Other); !ok || n != 0 || len(second.Values) != len(first.Values) {
		t.Errorf("%v %t, %d series", n, ok, len(second.Values))
	}
}
