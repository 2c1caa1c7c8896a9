package marker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// TestChangedInGrafana: edits of an annotation in Grafana do not lead to a second one.
func TestChangedInGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun, point("one", 0))
		l.flush(d, time.Minute)
		l.grafana.Edit(func(all []fakegrafana.Annotation) []fakegrafana.Annotation {
			all[0].Time += 3600_000
			all[0].TimeEnd += 3600_000
			return all[:1] // the point was deleted
		})
		l.add(closedRun())
		l.flush(d, time.Minute)
		time.Sleep(time.Hour)
		all := l.grafana.All()
		if len(all) != 1 || all[0].Time != start.UnixMilli() || all[0].TimeEnd != start.Add(time.Minute).UnixMilli() {
			t.Errorf("%+v", all)
		}
	})
}

// TestDeletedInGrafana: a user deletes an annotation whose existence was uncertain for a while. The later check does
// not restore it.
func TestDeletedInGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
			if m == "POST" && n == 0 {
				return fakegrafana.After(fakegrafana.Status(500, "", ""))
			}
			return nil
		})
		l.add(openRun)
		d, stop := l.deliverer()
		defer stop()
		l.flush(d, 10*time.Second)
		l.grafana.Edit(func([]fakegrafana.Annotation) []fakegrafana.Annotation { return nil })
		time.Sleep(10 * time.Minute)
		if n := len(l.grafana.All()); n != 0 {
			t.Errorf("%d annotations", n)
		}
		if n := l.grafana.Made("GET"); n > 10 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestReinstalledGrafana: a foreign annotation with the same number is left alone.
func TestReinstalledGrafana(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun)
		l.flush(d, time.Minute)
		l.grafana.Edit(func([]fakegrafana.Annotation) []fakegrafana.Annotation {
			return []fakegrafana.Annotation{{ID: 1, Text: "somebody's", Time: 5, TimeEnd: 5, Tags: []string{"benchwatch"}}}
		})
		l.add(closedRun())
		l.flush(d, time.Minute)
		all := l.grafana.All()
		if len(all) != 2 || all[0].Text != "somebody's" || all[1].TimeEnd != start.Add(time.Minute).UnixMilli() {
			t.Errorf("%+v", all)
		}
	})
}
