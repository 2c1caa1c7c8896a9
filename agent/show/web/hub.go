package web

import "sync"

const (
	// maxClients is how many streams are open at once.
	maxClients = 32
	// clientBuffer is how many events may wait for a client. A client that is
	// slower is dropped; it reconnects and reads everything again.
	clientBuffer = 512
)

// hub distributes events, each encoded once, to the connected browsers. mu guards
// all of it and is never held while waiting.
type hub struct {
	mu      sync.Mutex
	clients map[*client]struct{}
	closed  bool
}

// client is one browser's stream. Its channel is closed under the hub's mutex: by
// leave, by close, or because the client was too slow.
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

// drop ends a stream. The caller holds mu.
func (h *hub) drop(c *client) {
	if _, ok := h.clients[c]; ok {
		delete(h.clients, c)
		close(c.events)
	}
}

// send passes an event to all clients without waiting for any.
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
