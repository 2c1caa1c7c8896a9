package marker

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/grafana"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// TestRunIsOneAnnotation follows a run over a real connection: a point in time
// when it begins, a range with the result when it ends, points beside it.
func TestRunIsOneAnnotation(t *testing.T) {
	l := newLab(t)
	l.grafana.Token = "glsa_secret"
	server := httptest.NewServer(http.StripPrefix("/grafana", l.grafana))
	defer server.Close()
	l.token = tokenFile(t, "glsa_secret")
	d := l.newDeliverer(l.client(server.URL + "/grafana/"))
	d.poll = 10 * time.Millisecond
	defer startDeliverer(d)()

	l.add(openRun)
	l.flush(d, time.Minute)
	open := l.grafana.All()
	if len(open) != 1 || open[0].Time != start.UnixMilli() || open[0].TimeEnd != open[0].Time {
		t.Fatalf("open run: %+v", open)
	}
	if got, want := open[0].Text, "16 threads<br>sysbench &lt;oltp> &amp; co"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	l.add(point("set gcs.fc_limit=1000", 20*time.Second), closedRun())
	l.flush(d, time.Minute)
	l.check()
	closed := l.grafana.All()[0]
	if closed.ID != open[0].ID || closed.TimeEnd != start.Add(time.Minute).UnixMilli() {
		t.Errorf("closed run: %+v", closed)
	}
	for _, tag := range []string{"benchwatch", "kind:run", "run:r1", "tool:sysbench", "target:127.0.0.1_3306", "result:failed"} {
		if !slices.Contains(closed.Tags, tag) {
			t.Errorf("tag %s is missing in %q", tag, closed.Tags)
		}
	}
	if s := d.Stats(); s.Delivered != 3 || s.Retried != 0 || s.Rejected != 0 || s.Queued != 0 {
		t.Errorf("stats %+v", s)
	}
	if l.log.Len() > 0 {
		t.Errorf("logged: %s", l.log.String())
	}
}

// TestFaults lets each kind of request fail in each way, three times in a row, before, while and after it is carried
// out. Afterwards Grafana always has each marker once.
func TestFaults(t *testing.T) {
	faults := map[string]fakegrafana.Fault{
		"500 before":                             fakegrafana.Before(fakegrafana.Status(500, "", `{"message":"database is locked"}`)),
		"500 after":                              fakegrafana.After(fakegrafana.Status(500, "", `{"message":"database is locked"}`)),
		"502 HTML before":                        fakegrafana.Before(fakegrafana.Status(502, "Content-Type: text/html", "<html>Bad Gateway</html>")),
		"502 HTML after":                         fakegrafana.After(fakegrafana.Status(502, "Content-Type: text/html", "<html>Bad Gateway</html>")),
		"503 with Retry-After":                   fakegrafana.Before(fakegrafana.Status(503, "Retry-After: 30", "")),
		"504 after":                              fakegrafana.After(fakegrafana.Status(504, "", "")),
		"429":                                    fakegrafana.Before(fakegrafana.Status(429, "Retry-After: 7", `{"message":"slow down"}`)),
		"login page":                             fakegrafana.Before(fakegrafana.Status(200, "Content-Type: text/html", fakegrafana.LoginPage)),
		"login page after":                       fakegrafana.After(fakegrafana.Status(200, "Content-Type: text/html", fakegrafana.LoginPage)),
		"garbage":                                fakegrafana.Before(fakegrafana.Status(200, "Content-Type: application/json", `{"id":`)),
		"garbage after":                          fakegrafana.After(fakegrafana.Status(200, "Content-Type: application/json", `{"id":`)),
		"wrong JSON after":                       fakegrafana.After(fakegrafana.Status(200, "Content-Type: application/json", `"ok"`)),
		"empty after":                            fakegrafana.After(fakegrafana.Status(200, "", "")),
		"endless answer":                         fakegrafana.After(fakegrafana.Status(200, "", strings.Repeat("[", grafana.MaxAnswer+10))),
		"redirect":                               fakegrafana.Before(fakegrafana.Status(302, "Location: http://login.test/?token=1", "")),
		"400 of a proxy":                         fakegrafana.Before(fakegrafana.Status(400, "Content-Type: text/html", "<html>The plain HTTP request was sent to HTTPS port</html>")),
		"404 of a proxy":                         fakegrafana.Before(fakegrafana.Status(404, "", "404 page not found")),
		"400 of Grafana":                         fakegrafana.Before(fakegrafana.Status(400, "", `{"message":"bad request data"}`)),
		"401":                                    fakegrafana.Before(fakegrafana.Status(401, "", `{"message":"Unauthorized"}`)),
		"403":                                    fakegrafana.Before(fakegrafana.Status(403, "", `{"message":"You'll need additional permissions"}`)),
		"405":                                    fakegrafana.Before(fakegrafana.Status(405, "", "")),
		"cut":                                    fakegrafana.Cut,
		"slow, carried out at once":              fakegrafana.Slow(2*grafana.RequestTimeout, false),
		"slow, carried out when it was given up": fakegrafana.Slow(grafana.RequestTimeout+time.Second, true),
		"slow, carried out much later":           fakegrafana.Slow(2*grafana.RequestTimeout, true),
		"slow, carried out after another try worked": fakegrafana.Slow(grafana.RequestTimeout+settleTime+5*time.Second, true),
		"slow but in time":                           fakegrafana.Slow(grafana.RequestTimeout-time.Second, true),
	}
	for name, f := range faults {
		for _, method := range []string{"GET", "POST", "PATCH", "DELETE"} {
			t.Run(method+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t)
					l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
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
					if s := d.Stats(); s.Queued != 0 {
						t.Errorf("stats %+v", s)
					}
				})
			})
		}
	}
}

func (readCloser) Close() error { return nil }

// TestHalfWritten: Grafana wrote the annotation, failed to write its tags and reported an error. The annotation is
// completed, not repeated.
func TestHalfWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.add(openRun)
		l.grafana.Untagged = map[int64]bool{1: true}
		l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
			if m == "POST" && n == 0 {
				return fakegrafana.After(fakegrafana.Status(500, "", `{"message":"Failed to save annotation"}`))
			}
			return nil
		})
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, time.Minute)
		l.check()
		if l.grafana.Untagged[1] {
			t.Error("the annotation still can't be found by its tags")
		}
	})
}

// TestSettles: an abandoned request gets time to be carried out before Grafana is queried for its result, so there is
// nothing to clean up.
func TestSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
			if m == "POST" && n == 0 {
				return fakegrafana.Slow(grafana.RequestTimeout+settleTime/2, true)
			}
			return nil
		})
		l.add(openRun)
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, 2*grafana.RequestTimeout)
		l.check()
		if n := l.grafana.Made("POST"); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestNoGrafana: without a Grafana markers wait silently; one that is
// configured later gets them.
func TestNoGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d := l.newDeliverer(nil)
		defer startDeliverer(d)()
		l.add(openRun, point("one", 0))
		time.Sleep(time.Minute)
		if s := d.Stats(); s != (Stats{}) || l.log.Len() > 0 {
			t.Errorf("stats %+v, log %s", s, l.log.String())
		}
		if p := d.Points(); len(p) != 1 || p[0].Text != "one" {
			t.Errorf("points %+v", p)
		}
		l.use(l.client(""))
		l.flush(d, 5*time.Second)
		l.check()
	})
}

// TestQueuesAreUnloaded guards that the queues of all runs do not accumulate in memory: a queue of a run that is not
// shown is in memory only until everything is delivered. Later markers are still delivered, and removed runs leave
// nothing.
func TestQueuesAreUnloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		var shown sync.Map
		var dirs []rundir.Directory
		for _, id := range []string{"a", "b", "c"} {
			dir := rundir.At(string(l.dir), id)
			if err := os.MkdirAll(string(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			shown.Store(dir, true)
			dirs = append(dirs, dir)
		}
		add := func(dir rundir.Directory, text string) {
			t.Helper()
			if err := Append(dir, Marker{Kind: Point, Run: dir.ID(), Text: text, Start: start}); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range dirs {
			add(dir, "first of "+dir.ID())
		}
		var down atomic.Bool
		down.Store(true)
		l.transport.Down = func() error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		d := l.newDeliverer(l.client(""))
		d.opts.Shown = func() []rundir.Directory {
			var dirs []rundir.Directory
			shown.Range(func(dir, _ any) bool { dirs = append(dirs, dir.(rundir.Directory)); return true })
			return dirs
		}
		stop := startDeliverer(d)
		defer func() { stop() }()
		expect := func(points string, annotations int) {
			t.Helper()
			time.Sleep(listEvery + maxBackoff + time.Second)
			var texts []string
			for _, p := range d.Points() {
				texts = append(texts, p.Text)
			}
			slices.Sort(texts)
			if got := strings.Join(texts, ", "); got != points {
				t.Errorf("points %s, want %s", got, points)
			}
			if n := len(l.grafana.All()); n != annotations {
				t.Errorf("%d annotations, want %d", n, annotations)
			}
		}
		expect("first of a, first of b, first of c", 0)
		shown.Delete(dirs[0])
		expect("first of a, first of b, first of c", 0) // a waits to be delivered
		down.Store(false)
		expect("first of b, first of c", 3)
		add(dirs[0], "second of a")
		expect("first of b, first of c", 4)
		down.Store(true)
		add(dirs[0], "third of a")
		add(dirs[1], "second of b")
		if err := os.RemoveAll(string(dirs[1])); err != nil {
			t.Fatal(err)
		}
		shown.Delete(dirs[1])
		time.Sleep(2 * listEvery)
		if s := d.Stats(); s.Queued != 1 {
			t.Errorf("%d markers wait, want the one of a", s.Queued)
		}
		stop()
		if _, idle := d.idle[dirs[1].ID()]; idle || d.queues[dirs[1]] != nil {
			t.Error("a removed run's queue is kept")
		}
		down.Store(false)
		_, stop = l.deliverer() // after a restart, no run is shown yet
		time.Sleep(time.Second)
		if n := len(l.grafana.All()); n != 5 {
			t.Errorf("%d annotations after a restart, want 5", n)
		}
	})
}

// TestIdleQueuesCostNothing guards that only the list, once a minute, looks at runs that are not shown and have nothing
// to deliver. An agent may have thousands on disk.
func TestIdleQueuesCostNothing(t *testing.T) {
	l := newLab(t)
	for i := range 200 {
		dir := rundir.At(string(l.dir), fmt.Sprint("run", i))
		if err := os.MkdirAll(string(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := Append(dir, Marker{Kind: Point, Run: dir.ID(), Text: "point", Start: start}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d := l.newDeliverer(nil)
	d.scan()
	if n := len(d.idle); n != 200 {
		t.Errorf("%d idle queues", n)
	}
	if n := testing.AllocsPerRun(10, func() { d.scan(); d.publish() }); n > 20 {
		t.Errorf("%v allocations a second", n)
	}
}

// TestAnotherGrafana guards that another Grafana gets what the previous one did
// not take, also of runs that are not shown, and nothing twice.
func TestAnotherGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		old := rundir.At(string(l.dir), "old")
		if err := os.MkdirAll(string(old), 0o755); err != nil {
			t.Fatal(err)
		}
		l.add(openRun)
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, time.Minute)
		l.use(nil)
		if err := Append(old, point("while there was none", 0)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * listEvery)
		another := &fakegrafana.Grafana{}
		g := l.client("http://another.test")
		g.client.HTTP.Transport = &fakegrafana.Transport{Handler: another}
		l.use(g)
		d.Kick()
		time.Sleep(time.Second)
		if all := another.All(); len(all) != 1 || all[0].Text != "while there was none" {
			t.Errorf("the other Grafana has %+v", all)
		}
		if n := len(l.grafana.All()); n != 1 {
			t.Errorf("the first Grafana has %d annotations", n)
		}
	})
}

// TestPoints guards that the points of a queue are bounded, the newest ones and each text once.
func TestPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d := l.newDeliverer(nil)
		defer startDeliverer(d)()
		l.add(openRun, point("same", 0), point("same\n ", 2*time.Second), point("same ", time.Second))
		for i := range 150 {
			l.add(point(fmt.Sprint(i), time.Duration(i+10)*time.Second))
		}
		l.add(point("same", 500*time.Second))
		time.Sleep(5 * time.Second)
		points := d.Points()
		if len(points) != maxPoints {
			t.Fatalf("%d points", len(points))
		}
		last := points[0]
		if last.Text != "same" || last.Run != "r1" || !last.Start.Equal(start.Add(500*time.Second)) {
			t.Errorf("newest point %+v", last)
		}
		for i, p := range points {
			if slices.ContainsFunc(points[i+1:], func(q Marker) bool { return p.Text == q.Text && p.Run == q.Run }) {
				t.Errorf("twice: %+v", p)
			}
		}
	})
}

// TestQueuesOfOneUserAreBounded guards that the full queues of many runs of a user, which that user
// can write at will, are not in memory at once, and that the markers of the next run wait only until
// the others are delivered.
func TestQueuesOfOneUserAreBounded(t *testing.T) {
	l := newLab(t)
	full := []byte(strings.Repeat(`{"rejected":{"id":"`+strings.Repeat("x", 60_000)+`"}}`+"\n", maxQueue/60_000))
	for i := range 4 {
		dir := rundir.At(string(l.dir), fmt.Sprint("run", i))
		if err := os.MkdirAll(string(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := Append(dir, Marker{Kind: Point, Run: dir.ID(), Text: "first", Start: start}); err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(dir.Path(rundir.MarkersFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir.Path(rundir.MarkersFile), append(slices.Clone(full), first...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := l.newDeliverer(l.client(""))
	waiting := func() int {
		d.nextList = time.Time{}
		d.scan()
		held := int64(0)
		for _, q := range d.queues {
			held += q.offset
		}
		if held > maxOwned {
			t.Errorf("%d bytes of queues are in memory", held)
		}
		d.publish()
		return d.Stats().Queued
	}
	if n := waiting(); n != 2 || l.logged("waits: the markers of its owner's other runs") == 0 {
		t.Errorf("%d markers are read, want those of two queues\n%s", n, l.log.String())
	}
	stop := startDeliverer(d)
	l.flush(d, time.Minute)
	stop()
	for range 2 { // those that waited are read once there is room
		stop = func() {}
		if waiting() > 0 {
			stop = startDeliverer(d)
			l.flush(d, time.Minute)
		}
		stop()
	}
	if n := len(l.grafana.All()); n != 4 {
		t.Errorf("%d annotations, want 4\n%s", n, l.log.String())
	}
}
