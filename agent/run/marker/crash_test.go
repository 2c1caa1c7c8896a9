package marker

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// TestStop: when the process stops, a request in progress is finished if it is quick, otherwise abandoned. The next
// process finds out its result.
func TestStop(t *testing.T) {
	for _, late := range []bool{true, false} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.add(openRun)
				l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
					if m == "POST" && n == 0 {
						return fakegrafana.Slow(5*stopGrace, late)
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

// TestDiedWhileSending: the process dies while it sends, and so does the next one after
// it has delivered the marker. Grafana carries out the first request after all that,
// and has the marker once in the end.
func TestDiedWhileSending(t *testing.T) {
	for lives := range 3 {
		t.Run(fmt.Sprint(lives, " processes"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				l.add(openRun, point("one", time.Second))
				l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
					if m == "POST" && n < 2 {
						return fakegrafana.Slow(2*settleTime, true)
					}
					return nil
				})
				_, stop := l.deliverer()
				time.Sleep(time.Second)
				stop() // gives the request up
				l.grafana.SetFault(nil)
				for range lives {
					d, stop := l.deliverer()
					l.flush(d, time.Minute)
					stop()
				}
				_, stop = l.deliverer()
				defer stop()
				time.Sleep(2 * time.Minute)
				l.check()
			})
		})
	}
}

// TestStopDelivers: waiting markers are delivered when the process stops, including the request in progress.
func TestStopDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.add(point("under way", 0), point("at hand", time.Second))
		l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
			if m == "POST" {
				return fakegrafana.Slow(stopGrace/3, false)
			}
			return nil
		})
		_, stop := l.deliverer()
		synctest.Wait()
		stop()
		l.check()
		if n := l.grafana.Made("POST"); n != 2 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestStaleQueue: a deliverer that read a queue before another one delivered a
// newer version from it does not send the older one.
func TestStaleQueue(t *testing.T) {
	l := newLab(t)
	l.add(openRun)
	d := l.newDeliverer(l.client(""))
	d.scan()
	l.add(closedRun())
	other, stop := l.deliverer()
	l.flush(other, time.Minute)
	stop()
	if s := d.next(time.Now()); s != nil {
		t.Errorf("sends %s", s.marker.Text)
	}
	l.check()
}

// TestTwoDeliverers: the agent and a wrapper on one queue, while markers are
// added, deliver each once.
func TestTwoDeliverers(t *testing.T) {
	l := newLab(t)
	server := httptest.NewServer(l.grafana)
	defer server.Close()
	var ds []*Deliverer
	for range 3 {
		d := l.newDeliverer(l.client(server.URL))
		d.poll = time.Millisecond
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

// TestCrashAtAnyByte cuts the queue file where a crash could have cut it. The markers in whole lines are delivered
// once, whatever Grafana already has.
func TestCrashAtAnyByte(t *testing.T) {
	l := newLab(t)
	l.add(openRun, point("one", time.Second))
	deliverAll := func() {
		t.Helper()
		d := l.newDeliverer(l.client(""))
		d.scan()
		for {
			s := d.next(time.Now())
			if s == nil {
				return
			}
			s.annotation, s.err = s.grafana.upsert(context.Background(), &s.marker, s.verify, s.creating(d.write), d.log)
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
	atEnd := l.grafana.All()
	for n := range len(whole) + 1 {
		if err := os.WriteFile(l.path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		deliverAll()
		if got := len(l.grafana.All()); got != len(atEnd) {
			t.Fatalf("cut after %d bytes: Grafana has %d annotations, want %d", n, got, len(atEnd))
		}
		// Markers that are added afterwards are not lost after the partial line.
		l.add(closedRun(), point("after", 3*time.Second))
		deliverAll()
		items := l.items()
		if last := items[len(items)-1]; len(items) < 2 || last.Text != "after" || !last.delivered() {
			t.Fatalf("cut after %d bytes: %+v", n, items)
		}
		l.grafana.Edit(func([]fakegrafana.Annotation) []fakegrafana.Annotation { return atEnd })
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
		if n := l.grafana.Made("POST"); n != 1 {
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
