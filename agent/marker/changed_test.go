package marker

import (
	"testing"
	"testing/synctest"
	"time"
)

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
