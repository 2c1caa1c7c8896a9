package marker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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

func (readCloser) Close() error { return nil }

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
