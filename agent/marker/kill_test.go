package marker

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"
)

// delivererURL and delivererQueue make the test binary a process that delivers
// until it is killed.
const (
	delivererURL   = "BENCHWATCH_TEST_DELIVERER_URL"
	delivererQueue = "BENCHWATCH_TEST_DELIVERER_QUEUE"
)

func deliverUntilKilled(url, dir string) {
	g, err := NewGrafana(url, "", nil)
	if err != nil {
		panic(err)
	}
	d := New(Options{DataDir: dir, Grafana: g, Log: slog.New(slog.DiscardHandler)})
	d.poll = 5 * time.Millisecond
	startDeliverer(d)
	select {}
}

// TestKill kills the delivering process at any moment, again and again, while
// markers are added. In the end Grafana has each once.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	l := newLab(t)
	l.grafana.setFault(func(string, int) fault {
		return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
			time.Sleep(rand.N(2 * time.Millisecond))
			serve(w, r)
			time.Sleep(rand.N(2 * time.Millisecond))
		}
	})
	server := httptest.NewServer(l.grafana)
	defer server.Close()
	l.add(openRun)
	for i := range 25 {
		l.add(point(fmt.Sprint("p", i), time.Duration(i)*time.Second))
		if i == 20 {
			l.add(closedRun())
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), delivererURL+"="+server.URL, delivererQueue+"="+string(l.dir))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Millisecond + rand.N(60*time.Millisecond)) // the moment is what is varied
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Logf("%d annotations were made by processes that were killed", len(l.grafana.all()))
	d := l.newDeliverer(l.client(server.URL))
	d.poll = 10 * time.Millisecond
	defer startDeliverer(d)()
	l.flush(d, time.Minute)
	l.check()
}
