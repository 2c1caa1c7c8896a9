package web

import (
	"strconv"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/tool"
)

const (
	// maxClients is how many streams are open at once.
	maxClients = 32
	// clientBuffer is how many events a client may be behind. One that is further
	// is dropped; it comes back and asks for all anew.
	clientBuffer = 512
)

// hub hands events to the browsers that listen. Each is encoded once. mu guards
// all of it; nothing is waited for under it.
type hub struct {
	mu      sync.Mutex
	clients map[*client]struct{}
	closed  bool
}

// client is one browser's stream. Its channel is closed under the hub's mutex:
// by leave, by close, or because it was too slow.
type client struct{ events chan []byte }

func newHub() *hub { return &hub{clients: map[*client]struct{}{}} }

// join opens a stream; false if there are too many or the hub is closed.
func (h *hub) join() (*client, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.clients) >= maxClients {
		return nil, false
	}
	c := &client{make(chan []byte, clientBuffer)}
	h.clients[c] = struct{}{}
	return c, true
}

func (h *hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(c)
}

// drop ends a stream. mu is held.
func (h *hub) drop(c *client) {
	if _, ok := h.clients[c]; ok {
		delete(h.clients, c)
		close(c.events)
	}
}

// send gives an event to all without waiting for any.
func (h *hub) send(event []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.clients {
		select {
		case c.events <- event:
		default:
			h.drop(c)
		}
	}
}

func (h *hub) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients) == 0
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.clients {
		h.drop(c)
	}
}

// event is one server-sent event. JSON has no line ends in it.
func event(kind string, data []byte) []byte {
	b := make([]byte, 0, len(data)+len(kind)+20)
	b = append(append(append(b, "event: "...), kind...), "\ndata: "...)
	return append(append(b, data...), "\n\n"...)
}

// timedRow is the event of a new row of a table that belongs to no run alone.
func timedRow(table string, at time.Time, cells []cell) []byte {
	b := appendString([]byte(`{"table":`), table)
	b = strconv.AppendInt(append(b, `,"at":`...), at.UnixMilli(), 10)
	b = appendCells(append(b, `,"cells":`...), cells)
	return event("row", append(b, '}'))
}

// intervalEvent is the event of a new report of a run's tool.
func intervalEvent(id string, elapsed float64, cells []cell, r *tool.Report) []byte {
	b := appendString([]byte(`{"table":"intervals","run":`), id)
	b = appendSeconds(append(b, `,"x":`...), elapsed)
	if r.Phase == tool.Warmup && r.IntervalSeconds.Known {
		b = appendNumber(append(b, `,"warmup":`...), r.IntervalSeconds.Value)
	}
	b = appendCells(append(b, `,"cells":`...), cells)
	return event("row", append(b, '}'))
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte { return append(b, encode(s)...) }
