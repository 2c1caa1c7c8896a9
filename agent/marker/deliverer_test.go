package marker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(delivererURL); url != "" {
		deliverUntilKilled(url, os.Getenv(delivererQueue))
	}
	goleak.VerifyTestMain(m)
}

var (
	start   = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)
	openRun = Marker{
		Kind: Range, Run: "r1", Text: "16 threads\nsysbench <oltp> & co", Start: start,
		Tags: []string{"tool:sysbench", "target:127.0.0.1:3306"},
	}
)

func closedRun() Marker {
	m := openRun
	m.End = start.Add(time.Minute)
	m.Text += "\nfailed"
	m.Tags = append([]string{"result:failed"}, m.Tags...)
	return m
}

func point(text string, at time.Duration) Marker {
	return Marker{Kind: Point, Run: "r1", Text: text, Start: start.Add(at)}
}

// lab is a queue, a Grafana and what was logged.
type lab struct {
	t         *testing.T
	grafana   *fakeGrafana
	transport *inProcess
	path      string
	token     Token
	log       bytes.Buffer
	logMu     sync.Mutex
	write     func(string, entry) error
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, grafana: &fakeGrafana{}, path: filepath.Join(t.TempDir(), "markers.jsonl")}
	l.transport = &inProcess{handler: l.grafana}
	return l
}

func (l *lab) Write(p []byte) (int, error) {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	return l.log.Write(p)
}

func (l *lab) logged(part string) int {
	l.logMu.Lock()
	defer l.logMu.Unlock()
	return strings.Count(l.log.String(), part)
}

func (l *lab) add(ms ...Marker) {
	l.t.Helper()
	for _, m := range ms {
		if _, err := Append(l.path, m); err != nil {
			l.t.Fatal(err)
		}
	}
}

// deliverer starts one; the function returned stops it.
func (l *lab) deliverer() (*Deliverer, func()) {
	l.t.Helper()
	g, err := NewGrafana("http://grafana.test/", l.token, l.transport)
	if err != nil {
		l.t.Fatal(err)
	}
	d := New(g, slog.New(slog.NewTextHandler(l, nil)), Options{write: l.write})
	d.Watch(l.path)
	return d, startDeliverer(d)
}

func startDeliverer(d *Deliverer) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { d.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// flush waits for everything to be delivered.
func (l *lab) flush(d *Deliverer, limit time.Duration) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := d.Flush(ctx); err != nil {
		l.t.Fatalf("not delivered within %s: %+v\n%s", limit, d.Stats(), l.log.String())
	}
}

// check compares what Grafana holds with the queue: each marker once, as it is.
func (l *lab) check() {
	l.t.Helper()
	states, err := Read(l.path)
	if err != nil {
		l.t.Fatal(err)
	}
	all := l.grafana.all()
	for _, s := range states {
		want := annotationOf(&s.Marker)
		want.TimeEnd = max(want.TimeEnd, want.Time)
		var got []annotation
		for _, a := range all {
			if slices.Contains(a.Tags, identityTag(s.ID)) {
				got = append(got, a)
			}
		}
		if len(got) != 1 {
			l.t.Errorf("%s is in Grafana %d times", describe(&s.Marker), len(got))
			continue
		}
		want.ID = got[0].ID
		if diff := cmp.Diff(want, got[0]); diff != "" {
			l.t.Errorf("%s (-want +got):\n%s", describe(&s.Marker), diff)
		}
		if !s.Delivered {
			l.t.Errorf("%s: its delivery is not recorded", describe(&s.Marker))
		}
	}
	if len(all) != len(states) {
		l.t.Errorf("Grafana has %d annotations, the queue %d markers", len(all), len(states))
	}
}

// TestRunIsOneAnnotation follows a run over a real connection: a point in time
// when it begins, a range with the result when it ends, points beside it.
func TestRunIsOneAnnotation(t *testing.T) {
	l := newLab(t)
	l.grafana.token = "glsa_secret"
	server := httptest.NewServer(http.StripPrefix("/grafana", l.grafana))
	defer server.Close()
	g, err := NewGrafana(server.URL+"/grafana/", Token{Value: "glsa_secret"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := New(g, slog.New(slog.NewTextHandler(l, nil)), Options{Poll: 10 * time.Millisecond})
	d.Watch(l.path)
	defer startDeliverer(d)()

	l.add(openRun)
	l.flush(d, time.Minute)
	open := l.grafana.all()
	if len(open) != 1 || open[0].Time != start.UnixMilli() || open[0].TimeEnd != open[0].Time {
		t.Fatalf("open run: %+v", open)
	}
	if got, want := open[0].Text, "16 threads<br>sysbench &lt;oltp> &amp; co"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	l.add(point("set gcs.fc_limit=1000", 20*time.Second), closedRun())
	l.flush(d, time.Minute)
	l.check()
	closed := l.grafana.all()[0]
	if closed.ID != open[0].ID || closed.TimeEnd != start.Add(time.Minute).UnixMilli() {
		t.Errorf("closed run: %+v", closed)
	}
	for _, tag := range []string{"benchwatch", "kind:run", "run:r1", "tool:sysbench", "target:127.0.0.1_3306", "result:failed"} {
		if !slices.Contains(closed.Tags, tag) {
			t.Errorf("tag %s is missing in %q", tag, closed.Tags)
		}
	}
	if s := d.Stats(); s.Delivered != 3 || s.Retried != 0 || s.Rejected != 0 || s.Queued != 0 || s.Problem != "" {
		t.Errorf("stats %+v", s)
	}
	if l.log.Len() > 0 {
		t.Errorf("logged: %s", l.log.String())
	}
}

// TestFaults lets each kind of request fail in each way, three times in a row,
// before, while and after it is carried out. What is in Grafana afterwards is
// always each marker once.
func TestFaults(t *testing.T) {
	faults := map[string]fault{
		"500 before":                             before(status(500, "", `{"message":"database is locked"}`)),
		"500 after":                              after(status(500, "", `{"message":"database is locked"}`)),
		"502 HTML before":                        before(status(502, "Content-Type: text/html", "<html>Bad Gateway</html>")),
		"502 HTML after":                         after(status(502, "Content-Type: text/html", "<html>Bad Gateway</html>")),
		"503 with Retry-After":                   before(status(503, "Retry-After: 30", "")),
		"504 after":                              after(status(504, "", "")),
		"429":                                    before(status(429, "Retry-After: 7", `{"message":"slow down"}`)),
		"login page":                             before(status(200, "Content-Type: text/html", loginPage)),
		"login page after":                       after(status(200, "Content-Type: text/html", loginPage)),
		"garbage":                                before(status(200, "Content-Type: application/json", `{"id":`)),
		"garbage after":                          after(status(200, "Content-Type: application/json", `{"id":`)),
		"wrong JSON after":                       after(status(200, "Content-Type: application/json", `"ok"`)),
		"empty after":                            after(status(200, "", "")),
		"endless answer":                         after(status(200, "", strings.Repeat("[", maxAnswer+10))),
		"redirect":                               before(status(302, "Location: http://login.test/?token=1", "")),
		"400 of a proxy":                         before(status(400, "Content-Type: text/html", "<html>The plain HTTP request was sent to HTTPS port</html>")),
		"404 of a proxy":                         before(status(404, "", "404 page not found")),
		"400 of Grafana":                         before(status(400, "", `{"message":"bad request data"}`)),
		"401":                                    before(status(401, "", `{"message":"Unauthorized"}`)),
		"403":                                    before(status(403, "", `{"message":"You'll need additional permissions"}`)),
		"405":                                    before(status(405, "", "")),
		"cut":                                    cut,
		"slow, carried out at once":              slow(2*requestTimeout, false),
		"slow, carried out when it was given up": slow(requestTimeout+time.Second, true),
		"slow, carried out much later":           slow(2*requestTimeout, true),
		"slow, carried out after another try worked": slow(requestTimeout+settleTime+5*time.Second, true),
		"slow but in time":                           slow(requestTimeout-time.Second, true),
	}
	for name, f := range faults {
		for _, method := range []string{"GET", "POST", "PATCH", "DELETE"} {
			t.Run(method+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t)
					l.grafana.setFault(func(m string, n int) fault {
						if m == method && n < 3 {
							return f
						}
						return nil
					})
					d, stop := l.deliverer()
					defer stop()
					l.add(openRun, point("one", time.Second))
					time.Sleep(10 * time.Second)
					l.add(closedRun(), point("two", 2*time.Second))
					l.flush(d, 10*time.Minute)
					time.Sleep(3 * time.Minute) // what was given up is over, and verified
					l.check()
					if s := d.Stats(); s.Queued != 0 || s.Problem != "" {
						t.Errorf("stats %+v", s)
					}
				})
			})
		}
	}
}

// TestDownForAnHour: markers wait, the log says so once, and they are there
// soon after Grafana is.
func TestDownForAnHour(t *testing.T) {
	for name, down := range map[string]error{
		"refused": &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"no host": &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "grafana.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				back := time.Now().Add(time.Hour)
				var attempts atomic.Int64
				l.transport.down = func() error {
					attempts.Add(1)
					if time.Now().Before(back) {
						return down
					}
					return nil
				}
				d, stop := l.deliverer()
				defer stop()
				l.add(openRun)
				time.Sleep(time.Minute)
				l.add(closedRun(), point("one", time.Second))
				time.Sleep(59*time.Minute - time.Second)
				if s := d.Stats(); s.Queued != 2 || s.Problem == "" || s.Retried == 0 {
					t.Errorf("stats while Grafana is down: %+v", s)
				}
				if n := attempts.Load(); n > 1200 {
					t.Errorf("%d attempts in an hour", n)
				}
				l.flush(d, maxBackoff+2*time.Second)
				l.check()
				if n := l.logged("markers wait for grafana"); n != 1 {
					t.Errorf("logged %d times that markers wait", n)
				}
				if n := l.grafana.made("PATCH"); n != 0 {
					t.Errorf("a run that has ended meanwhile was sent in %d steps", n+1)
				}
			})
		})
	}
}

// TestRetryAfter: what Grafana asks for is respected.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.setFault(func(m string, n int) fault {
			if m == "GET" && n == 0 {
				return before(status(429, "Retry-After: 120", ""))
			}
			return nil
		})
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun)
		time.Sleep(119 * time.Second)
		if n := l.grafana.made("GET"); n != 1 {
			t.Errorf("%d requests while Grafana asked for none", n)
		}
		l.flush(d, 5*time.Second)
	})
}

// TestNewToken: a refused token is named once in the log, with what to do; a
// new one in the same file counts at once. No token is ever logged.
func TestNewToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.token = "glsa_good"
		l.token.File = filepath.Join(t.TempDir(), "token")
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun)
		time.Sleep(5 * time.Minute) // no file
		if n := l.logged("no such file"); n != 1 {
			t.Errorf("logged %d times that there is no token file", n)
		}
		setToken := func(token string, age time.Duration) {
			if err := os.WriteFile(l.token.File, []byte(token+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(age) // the file system has another clock
			if err := os.Chtimes(l.token.File, at, at); err != nil {
				t.Fatal(err)
			}
		}
		setToken("glsa_bad", 0)
		time.Sleep(30 * time.Minute)
		if n := l.logged("service account"); n != 2 { // missing, then wrong
			t.Errorf("logged %d times what to do", n)
		}
		if n := l.grafana.made("GET"); n > 45 {
			t.Errorf("a refused token was tried %d times in half an hour", n)
		}
		setToken("glsa_good", time.Second)
		l.flush(d, 3*time.Second)
		l.check()
		if l.logged("glsa_") > 0 {
			t.Errorf("a token was logged: %s", l.log.String())
		}
	})
}

// TestRefused: a marker that Grafana refuses does not hold up the others, is
// recorded with the reason and is not given up at once.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		var poison atomic.Bool
		poison.Store(true)
		l.grafana.setFault(func(m string, _ int) fault {
			return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
				var body bytes.Buffer
				if r.Body != nil {
					body.ReadFrom(r.Body)
					r.Body.Close()
				}
				r.Body = http.NoBody
				if body.Len() > 0 {
					r.Body = readCloser{bytes.NewReader(body.Bytes())}
				}
				if poison.Load() && strings.Contains(body.String(), "poison") {
					answer(w, 400, map[string]any{"message": "Failed to save annotation"})
					return
				}
				serve(w, r)
			}
		})
		d, stop := l.deliverer()
		defer stop()
		l.add(point("poison", 0), point("good", time.Second))
		l.flush(d, 5*time.Second)
		if all := l.grafana.all(); len(all) != 1 || all[0].Text != "good" {
			t.Fatalf("delivered: %+v", all)
		}
		time.Sleep(time.Hour)
		states, err := Read(l.path)
		if err != nil || !strings.Contains(states[0].Refused, "Failed to save annotation") {
			t.Errorf("recorded: %+v, %v", states[0], err)
		}
		if s := d.Stats(); s.Rejected != 1 || s.Queued != 0 {
			t.Errorf("stats %+v", s)
		}
		if n := l.logged("refused"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		if n := l.grafana.made("POST"); n > 20 {
			t.Errorf("tried %d times in an hour", n)
		}
		poison.Store(false)
		time.Sleep(maxRefusedRetry)
		l.check()

		poison.Store(true)
		l.add(point("poison two", 0))
		time.Sleep(giveUpAfter + time.Hour)
		n := l.grafana.made("POST")
		time.Sleep(giveUpAfter + time.Hour)
		if more := l.grafana.made("POST") - n; more > 0 {
			t.Errorf("given up, but tried %d times", more)
		}
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// TestStop: a request under way is finished when the process stops, if it is
// quick; else it is given up. What comes next finds out what became of it.
func TestStop(t *testing.T) {
	for _, late := range []bool{true, false} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.add(openRun)
				l.grafana.setFault(func(m string, n int) fault {
					if m == "POST" && n == 0 {
						return slow(5*stopGrace, late)
					}
					return nil
				})
				_, stop := l.deliverer()
				time.Sleep(time.Second)
				before := time.Now()
				stop()
				if waited := time.Since(before); waited > stopGrace {
					t.Errorf("stopping took %s", waited)
				}
				time.Sleep(5 * stopGrace)
				d, stop := l.deliverer()
				defer stop()
				l.flush(d, time.Minute)
				l.check()
			})
		})
	}
}

// TestTwoDeliverers: the agent and a wrapper on one queue, while markers are
// added, deliver each once.
func TestTwoDeliverers(t *testing.T) {
	l := newLab(t)
	server := httptest.NewServer(l.grafana)
	defer server.Close()
	var ds []*Deliverer
	for range 3 {
		g, err := NewGrafana(server.URL, Token{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := New(g, slog.New(slog.NewTextHandler(l, nil)), Options{Poll: time.Millisecond})
		d.Watch(l.path)
		defer startDeliverer(d)()
		ds = append(ds, d)
	}
	for i := range 30 {
		l.add(openRun, point(fmt.Sprint("p", i), time.Duration(i)*time.Second))
	}
	l.add(closedRun())
	for _, d := range ds {
		l.flush(d, time.Minute)
	}
	l.check()
	delivered := uint64(0)
	for _, d := range ds {
		delivered += d.Stats().Delivered
	}
	// The run's range may have been sent open and then closed.
	if delivered != 31 && delivered != 32 {
		t.Errorf("%d deliveries", delivered)
	}
}

// TestCrashAtAnyByte cuts the queue file where a crash could have left it. What
// whole lines say is delivered once, whatever Grafana already has.
func TestCrashAtAnyByte(t *testing.T) {
	l := newLab(t)
	l.add(openRun, point("one", time.Second))
	g, err := NewGrafana("http://grafana.test", Token{}, l.transport)
	if err != nil {
		t.Fatal(err)
	}
	deliverAll := func() {
		t.Helper()
		d := New(g, slog.New(slog.NewTextHandler(l, nil)), Options{})
		d.Watch(l.path)
		d.look(true)
		for {
			s := d.next(time.Now())
			if s == nil {
				return
			}
			s.send(context.Background())
			if s.err != nil {
				t.Fatal(s.err)
			}
			d.finish(s, time.Now())
		}
	}
	deliverAll()
	l.add(closedRun())
	deliverAll()
	whole, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	atEnd := l.grafana.all()
	for n := range len(whole) + 1 {
		if err := os.WriteFile(l.path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		deliverAll()
		if got := len(l.grafana.all()); got != len(atEnd) {
			t.Fatalf("cut after %d bytes: Grafana has %d annotations, want %d", n, got, len(atEnd))
		}
		// What is added afterwards is not lost behind the half line.
		l.add(closedRun(), point("after", 3*time.Second))
		deliverAll()
		states, err := Read(l.path)
		if err != nil || len(states) < 2 || states[len(states)-1].Text != "after" || !states[len(states)-1].Delivered {
			t.Fatalf("cut after %d bytes: %+v, %v", n, states, err)
		}
		l.grafana.mu.Lock()
		l.grafana.annotations = nil
		for _, a := range atEnd {
			l.grafana.annotations = append(l.grafana.annotations, &a)
		}
		l.grafana.mu.Unlock()
	}
}

// TestDiskFull: a delivery that can't be recorded is not repeated, and is
// recorded when there is room again.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		var full atomic.Bool
		full.Store(true)
		l.write = func(path string, e entry) error {
			if full.Load() {
				return &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			}
			return appendEntry(path, e)
		}
		l.add(openRun)
		d, stop := l.deliverer()
		defer stop()
		time.Sleep(10 * time.Minute)
		if n := l.grafana.made("POST"); n != 1 {
			t.Errorf("sent %d times", n)
		}
		if s := d.Stats(); s.Queued != 0 || s.Delivered != 1 {
			t.Errorf("stats %+v", s)
		}
		if n := l.logged("no space left"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		l.add(closedRun())
		time.Sleep(10 * time.Second)
		full.Store(false)
		time.Sleep(10 * time.Second)
		l.check()
	})
}

// TestHalfWritten: Grafana wrote the annotation, failed to write its tags and
// said so. The annotation is completed, not repeated.
func TestHalfWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.add(openRun)
		l.grafana.untagged = map[int64]bool{1: true}
		l.grafana.setFault(func(m string, n int) fault {
			if m == "POST" && n == 0 {
				return after(status(500, "", `{"message":"Failed to save annotation"}`))
			}
			return nil
		})
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, time.Minute)
		l.check()
		if l.grafana.untagged[1] {
			t.Error("the annotation still can't be found by its tags")
		}
	})
}

// TestChangedInGrafana: what people do to an annotation in Grafana does not
// make a second one.
func TestChangedInGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun, point("one", 0))
		l.flush(d, time.Minute)
		l.grafana.mu.Lock()
		l.grafana.annotations[0].Time += 3600_000
		l.grafana.annotations[0].TimeEnd += 3600_000
		l.grafana.annotations = l.grafana.annotations[:1] // the point was deleted
		l.grafana.mu.Unlock()
		l.add(closedRun())
		l.flush(d, time.Minute)
		time.Sleep(time.Hour)
		all := l.grafana.all()
		if len(all) != 1 || all[0].Time != start.UnixMilli() || all[0].TimeEnd != start.Add(time.Minute).UnixMilli() {
			t.Errorf("%+v", all)
		}
	})
}

// TestSettles: a request that was given up gets time to be carried out before
// Grafana is asked what became of it, so that there is nothing to clean up.
func TestSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.setFault(func(m string, n int) fault {
			if m == "POST" && n == 0 {
				return slow(requestTimeout+settleTime/2, true)
			}
			return nil
		})
		l.add(openRun)
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, 2*requestTimeout)
		l.check()
		if n := l.grafana.made("POST"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestDeletedInGrafana: somebody deletes an annotation of which it was not
// certain for a while whether it is there; looking again does not bring it back.
func TestDeletedInGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.setFault(func(m string, n int) fault {
			if m == "POST" && n == 0 {
				return after(status(500, "", ""))
			}
			return nil
		})
		l.add(openRun)
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, 10*time.Second)
		l.grafana.mu.Lock()
		l.grafana.annotations = nil
		l.grafana.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if n := len(l.grafana.all()); n != 0 {
			t.Errorf("%d annotations", n)
		}
		if n := l.grafana.made("GET"); n > 10 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestReinstalledGrafana: an annotation with the same number that is another's
// is left alone.
func TestReinstalledGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun)
		l.flush(d, time.Minute)
		l.grafana.mu.Lock()
		l.grafana.annotations = []*annotation{{ID: 1, Text: "somebody's", Time: 5, TimeEnd: 5, Tags: []string{"benchwatch"}}}
		l.grafana.mu.Unlock()
		l.add(closedRun())
		l.flush(d, time.Minute)
		all := l.grafana.all()
		if len(all) != 2 || all[0].Text != "somebody's" || all[1].TimeEnd != start.Add(time.Minute).UnixMilli() {
			t.Errorf("%+v", all)
		}
	})
}

// TestSetGrafana: without a Grafana markers wait silently; one that is
// configured later gets them.
func TestSetGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d := New(nil, slog.New(slog.NewTextHandler(l, nil)), Options{})
		d.Watch(l.path)
		defer startDeliverer(d)()
		l.add(openRun, point("one", 0))
		time.Sleep(time.Minute)
		if s := d.Stats(); s != (Stats{}) || l.log.Len() > 0 {
			t.Errorf("stats %+v, log %s", s, l.log.String())
		}
		if p := d.Points(); len(p) != 1 || p[0].Text != "one" {
			t.Errorf("points %+v", p)
		}
		if err := d.Flush(context.Background()); err != nil {
			t.Error(err)
		}
		g, err := NewGrafana("http://grafana.test", Token{}, l.transport)
		if err != nil {
			t.Fatal(err)
		}
		d.SetGrafana(g)
		l.flush(d, 5*time.Second)
		l.check()
	})
}

// TestForget: a queue is let go only when it is empty.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		var down atomic.Bool
		down.Store(true)
		l.transport.down = func() error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun)
		time.Sleep(time.Second)
		d.Forget(l.path)
		time.Sleep(time.Minute)
		down.Store(false)
		time.Sleep(2 * time.Minute)
		l.check()
		l.add(closedRun())
		time.Sleep(2 * time.Minute)
		if n := l.grafana.made("PATCH"); n != 0 {
			t.Error("a queue that was forgotten is still delivered")
		}
		d.Watch(l.path)
		l.flush(d, 5*time.Second)
		l.check()
		if err := os.Remove(l.path); err != nil { // the run was deleted
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := d.Stats(); s.Queued != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// TestPoints: series are bounded and never look the same twice.
func TestPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d := New(nil, slog.New(slog.NewTextHandler(l, nil)), Options{})
		d.Watch(l.path)
		defer startDeliverer(d)()
		l.add(openRun, point("same", 0), point("same\n ", 2*time.Second), point("same ", time.Second))
		for i := range 150 {
			l.add(point(fmt.Sprintf("%d %s", i, strings.Repeat("é", 300)), time.Duration(i+10)*time.Second))
		}
		l.add(point("same", 500*time.Second))
		time.Sleep(5 * time.Second)
		points := d.Points()
		if len(points) != maxPoints {
			t.Fatalf("%d points", len(points))
		}
		last := points[len(points)-1]
		if last.Text != "same" || last.Run != "r1" || !last.Time.Equal(start.Add(500*time.Second)) {
			t.Errorf("last point %+v", last)
		}
		if n := len([]rune(points[0].Text)); n != maxPointText {
			t.Errorf("%d runes", n)
		}
		for i, p := range points {
			if slices.ContainsFunc(points[i+1:], func(q PointInTime) bool { return p.Text == q.Text && p.Run == q.Run }) {
				t.Errorf("twice: %+v", p)
			}
		}
	})
}
