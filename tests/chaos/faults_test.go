//go:build chaos

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// reset closes the connection so that the client gets a reset.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// abandoned carries the request out some time after its connection was closed.
func abandoned(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	reset(w, r)
	time.Sleep(2 * time.Second)
	serve(&fakegrafana.Recorder{}, r)
}

// answers are the answers of a failing Grafana, or of a proxy in front of it.
var answers = map[string]http.HandlerFunc{
	"500":            fakegrafana.Status(500, "", `{"message":"database is locked"}`),
	"502 HTML":       fakegrafana.Status(502, "Content-Type: text/html", "<html>Bad Gateway</html>"),
	"503":            fakegrafana.Status(503, "Retry-After: 1", ""),
	"504":            fakegrafana.Status(504, "", ""),
	"200 garbage":    fakegrafana.Status(200, "Content-Type: application/json", `{"id":`),
	"200 login":      fakegrafana.Status(200, "Content-Type: text/html", fakegrafana.LoginPage),
	"200 other":      fakegrafana.Status(200, "Content-Type: application/json", `"ok"`),
	"200 empty":      fakegrafana.Status(200, "", ""),
	"reset":          reset,
	"429":            fakegrafana.Status(429, "Retry-After: 1", `{"message":"slow down"}`),
	"401":            fakegrafana.Status(401, "", `{"message":"Unauthorized"}`),
	"302":            fakegrafana.Status(302, "Location: /login", ""),
	"404 of a proxy": fakegrafana.Status(404, "", "404 page not found"),
}

// grafanaFaults are all ways to fail, before and after the request is carried out.
func grafanaFaults() (faults []fakegrafana.Fault) {
	for _, name := range sortedKeys(answers) {
		faults = append(faults, fakegrafana.Before(answers[name]))
		switch name {
		case "429", "401", "302", "404 of a proxy": // nothing was carried out
		default:
			faults = append(faults, fakegrafana.After(answers[name]))
		}
	}
	return append(faults, fakegrafana.Cut, abandoned, fakegrafana.Slow(time.Second, false), fakegrafana.Slow(time.Second, true),
		fakegrafana.Slow(3*time.Second, false), fakegrafana.Slow(3*time.Second, true))
}

// fail makes Grafana fail with a probability; now and then it hangs for longer than the
// agent waits.
func (g *grafana) fail(l *lab, p float64) {
	faults := grafanaFaults()
	hang := []fakegrafana.Fault{fakegrafana.Slow(22*time.Second, false), fakegrafana.Slow(22*time.Second, true)}
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(l.rand.Uint64(), 0))
	g.SetFault(func(string, int) fakegrafana.Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.Float64() >= p {
			return nil
		}
		total.add("faulty answers of Grafana", 1)
		if random.IntN(200) == 0 {
			return hang[random.IntN(2)]
		}
		return faults[random.IntN(len(faults))]
	})
}

// alert sends an alert of a run as Alertmanager does: again and again until it is taken,
// and sometimes once more. Some of its attempts fail.
func (l *lab) alert(r *run) {
	text := fmt.Sprintf("Alert%d", len(l.texts))
	start := time.Now().Add(-time.Second)
	alert := map[string]any{
		"status": "firing", "labels": map[string]string{"alertname": text, "run": r.id, "password": l.secret}, "startsAt": start,
		"annotations": map[string]string{"summary": "it fires"}, "fingerprint": fmt.Sprintf("%016x", l.rand.Uint64()),
	}
	firing := l.message(alert)
	alert["status"], alert["endsAt"] = "resolved", start.Add(time.Second)
	resolved := l.message(alert)
	for _, body := range [][]byte{firing, firing, resolved} {
		if l.chance(0.3) {
			l.brokenPost(body)
		}
		l.until(30*time.Second, "an alert is taken", func() error {
			return l.post(bytes.NewReader(body), l.token())
		})
	}
	l.texts = append(l.texts, "alert "+text)
	total.add("alerts", 1)
}

func (l *lab) token() string { return "hook" + l.secret }

func (l *lab) message(alerts ...map[string]any) []byte {
	body, err := json.Marshal(map[string]any{"version": "4", "status": "firing", "receiver": "benchwatch", "alerts": alerts})
	l.must(err)
	return body
}

var sender = &http.Client{Timeout: 5 * time.Second}

func (l *lab) post(body io.Reader, token string) error {
	req, err := http.NewRequest(http.MethodPost, "http://"+l.agent.Address+"/api/v1/alerts", body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := sender.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("status %s", res.Status)
	}
	return nil
}

// brokenPost sends requests that must be refused.
func (l *lab) brokenPost(body []byte) {
	switch l.rand.IntN(4) {
	case 0:
		if l.post(bytes.NewReader(body), "wrong") == nil {
			l.t.Error("an alert with a wrong token was accepted")
		}
	case 1:
		if l.post(strings.NewReader("{"+string(body)), l.token()) == nil {
			l.t.Error("an alert that is not JSON was accepted")
		}
	case 2: // half of it, and the connection ends
		l.half(fmt.Sprintf("POST /api/v1/alerts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			l.token(), len(body), body[:len(body)/2])).Close()
	case 3: // the answer is not read
		l.half(fmt.Sprintf("POST /api/v1/alerts HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			l.token(), len(body), body)).Close()
	}
	total.add("broken posts", 1)
}

// half opens a connection to the agent and sends text. The connection is closed at the
// end of the scenario at the latest.
func (l *lab) half(text string) net.Conn {
	conn, err := net.DialTimeout("tcp", l.agent.Address, 5*time.Second)
	if err != nil { // the agent is being restarted
		return nothing{}
	}
	l.t.Cleanup(func() { conn.Close() })
	_, _ = conn.Write([]byte(text)) // the agent may have closed it
	return conn
}

// nothing is a missing connection.
type nothing struct{ net.Conn }

func (nothing) Close() error { return nil }

// attack has clients read slowly or never, and send partial requests, until the returned function is called.
func (l *lab) attack(count int) (stop func()) {
	requests := []string{
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",                          // half a body
		"GET /metrics HTTP/1.1\r\nHost: loc",                                                                 // half a header
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",                                                   // never reads
		"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n",                                                // never reads a stream
		"POST /api/v1/alerts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{\"version\":\"4", // without a token
		"GET / HTTP/1.1\r\nHost: evil.example.com\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"",
	}
	var conns []net.Conn
	for i := range count {
		conns = append(conns, l.half(requests[i%len(requests)]))
	}
	total.add("half-open clients", count)
	return func() {
		for _, c := range conns {
			c.Close()
		}
	}
}

// page attaches a live page until the returned function is called.
func (l *lab) page() (stop func()) {
	res, err := http.Get("http://" + l.agent.Address + "/api/events")
	if err != nil {
		return func() {}
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, res.Body) }) // until it is closed
	return func() {
		res.Body.Close()
		reading.Wait()
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
