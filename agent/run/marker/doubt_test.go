package marker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// life is a delivering process that can be killed: from then on it writes and sends nothing, but Grafana still carries
// out its earlier requests.
type life struct {
	dead atomic.Bool
	next http.RoundTripper
	stop func()
}

var errDead = errors.New("the process is dead")

func (l *lab) live() *life {
	p := &life{next: l.transport}
	g := l.client("")
	g.client.HTTP.Transport = p
	d := l.newDeliverer(g)
	d.write = func(path string, e entry) error {
		if p.dead.Load() {
			return errDead
		}
		return appendEntry(path, e)
	}
	p.stop = startDeliverer(d)
	return p
}

// RoundTrip implements http.RoundTripper.
func (p *life) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	answer, err := p.next.RoundTrip(r)
	if p.dead.Load() {
		return nil, errDead
	}
	return answer, err
}

func (p *life) kill() {
	p.dead.Store(true)
	p.stop()
}

// TestDoubtLasts: Grafana carries out a request 6 s after the process that made it was
// killed. The next process has delivered the marker again by then, and is killed while
// Grafana hangs for longer than any time limit. The third one removes the duplicate.
func TestDoubtLasts(t *testing.T) {
	for _, hang := range []time.Duration{64 * time.Second, 3 * time.Hour} {
		for _, added := range []bool{false, true} {
			t.Run(fmt.Sprint(hang, added), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t)
					l.add(openRun)
					l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
						if m == "POST" && n == 0 {
							return fakegrafana.Slow(6*time.Second, true)
						}
						return nil
					})
					p := l.live()
					time.Sleep(time.Second)
					p.kill()
					p = l.live()
					time.Sleep(2 * time.Second)
					if n := len(l.grafana.All()); n != 1 {
						t.Fatalf("Grafana has %d annotations before the late one", n)
					}
					if added { // another version does not end the doubt
						l.add(closedRun())
						time.Sleep(2 * time.Second)
					}
					l.grafana.SetFault(func(string, int) fakegrafana.Fault { return fakegrafana.Slow(hang, true) })
					time.Sleep(hang)
					if n := len(l.grafana.All()); n != 2 {
						t.Fatalf("Grafana has %d annotations while it hangs", n)
					}
					p.kill()
					l.grafana.SetFault(nil)
					p = l.live()
					defer p.stop()
					time.Sleep(2 * verifyAfter)
					l.check()
					time.Sleep(hang) // the last request ends
				})
			})
		}
	}
}

// TestKilledAtAnyTime delivers 500 markers by processes that are killed at any time, to a Grafana that is late, hangs,
// fails before or after it has carried out a request, and deletes only at the second attempt. In the end, it has each
// marker once.
func TestKilledAtAnyTime(t *testing.T) {
	const markers = 50
	// Grafana carries out a request 40 s after the process that made it was killed.
	seeds := []uint64{11850599106593049318}
	for range 9 {
		seeds = append(seeds, rand.Uint64())
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, ofGrafana := rand.New(rand.NewPCG(seed, 4)), rand.New(rand.NewPCG(seed, 5))
				l := newLab(t)
				faults := func(string, int) fakegrafana.Fault {
					seconds := time.Duration(ofGrafana.ExpFloat64() * float64(8*time.Second))
					switch ofGrafana.IntN(12) {
					case 0:
						return fakegrafana.Slow(seconds, true)
					case 1:
						return fakegrafana.Slow(seconds, false)
					case 2:
						return fakegrafana.Before(fakegrafana.Status(503, "", ""))
					case 3:
						return fakegrafana.After(fakegrafana.Status(500, "", `{"message":"database is locked"}`))
					case 4:
						return fakegrafana.Cut
					}
					return nil
				}
				l.grafana.SetFault(faults)
				kills := 0
				for n := 0; n < markers; {
					p := l.live()
					for range 1 + r.IntN(5) {
						l.add(point(fmt.Sprint("p", n), time.Duration(n)*time.Second))
						n++
						time.Sleep(time.Duration(r.IntN(10_000)) * time.Millisecond)
					}
					p.kill()
					kills++
					time.Sleep(time.Duration(r.IntN(5_000)) * time.Millisecond)
				}
				l.grafana.SetFault(nil)
				time.Sleep(2 * time.Minute) // what was late is done
				before := len(l.grafana.All())
				p := l.live()
				time.Sleep(10 * time.Minute)
				l.check()
				p.stop()
				t.Logf("%d kills; before the last process Grafana had %d annotations for %d markers", kills, before, markers)
			})
		})
	}
}

// TestDoubtIsWritten: a request to create is in the queue file before it is sent, only once however often it is
// repeated. A marker that was delivered immediately is not searched again.
func TestDoubtIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.add(openRun)
		creating := 0
		l.write = func(path string, e entry) error {
			if e.Creating != nil {
				creating++
				if n := l.grafana.Made("POST"); n != 0 {
					t.Errorf("written after %d requests", n)
				}
			}
			return appendEntry(path, e)
		}
		l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
			if m == "POST" && n < 5 {
				return fakegrafana.After(fakegrafana.Status(502, "", ""))
			}
			return nil
		})
		d := l.newDeliverer(l.client(""))
		_, err := d.opts.Grafana().upsert(context.Background(), &l.items()[0].Marker, true, func() { t.Error("creates") }, d.log)
		if err != nil {
			t.Fatal(err)
		}
		defer startDeliverer(d)()
		l.flush(d, time.Hour)
		time.Sleep(time.Minute)
		l.check()
		if creating != 1 {
			t.Errorf("%d times in the queue file", creating)
		}
		searches := l.grafana.Made("GET")
		l.grafana.SetFault(nil)
		l.add(point("one", time.Second))
		time.Sleep(10 * time.Minute)
		l.check()
		if n := l.grafana.Made("GET") - searches; n > 2+searches {
			t.Errorf("searched %d times for a marker that was delivered at once", n)
		}
	})
}
