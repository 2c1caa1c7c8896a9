package marker

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// delivererURL and delivererQueue make the test binary a process that delivers
// until it is killed.
const (
	delivererURL   = "BENCHWATCH_TEST_DELIVERER_URL"
	delivererQueue = "BENCHWATCH_TEST_DELIVERER_QUEUE"
)

func deliverUntilKilled(url, dir string) {
	g, err := NewGrafana(url, "")
	if err != nil {
		panic(err)
	}
	d := New(Options{DataDir: dir, Shown: none, Grafana: func() *Grafana { return g }, Log: slog.New(slog.DiscardHandler)})
	d.poll = 5 * time.Millisecond
	startDeliverer(d)
	select {}
}

// TestKill kills the delivering process again and again while markers are added:
// at each request that a new marker takes, before Grafana carries it out, between
// that and the answer, and after the answer. In the end Grafana has each marker
// once.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	l := newLab(t)
	server := httptest.NewServer(l.grafana)
	defer server.Close()
	l.add(openRun)
	const requests, moments = 3, 4 // find, find again, create
	for i := range 2 * requests * moments {
		l.add(point(fmt.Sprint("p", i), time.Duration(i)*time.Second))
		if i == 20 {
			l.add(closedRun())
		}
		reached, killed, handled := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var request atomic.Int64
		l.grafana.SetFault(func(string, int) fakegrafana.Fault {
			if request.Add(1) != int64(1+i%requests) {
				return nil
			}
			return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
				defer close(handled)
				switch i / requests % moments {
				case 0: // never carried out
					close(reached)
					<-killed
				case 1: // carried out when the process is dead
					body, _ := io.ReadAll(r.Body)
					r.Body = readCloser{bytes.NewReader(body)}
					close(reached)
					<-killed
					serve(w, r)
				case 2: // carried out, but not answered
					serve(&fakegrafana.Recorder{}, r)
					close(reached)
					<-killed
				case 3:
					serve(w, r)
					close(reached)
				}
			}
		})
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), delivererURL+"="+server.URL, delivererQueue+"="+string(l.dir))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-reached:
		case <-time.After(time.Minute):
			t.Error("the process made no request")
		}
		if i/requests%moments == 3 { // before, while or after the answer is recorded
			<-time.After(rand.N(2 * time.Millisecond))
		}
		cmd.Process.Kill()
		cmd.Wait()
		close(killed)
		<-handled
	}
	l.grafana.SetFault(nil)
	t.Logf("%d annotations were made by processes that were killed", len(l.grafana.All()))
	d := l.newDeliverer(l.client(server.URL))
	d.poll = 10 * time.Millisecond
	defer startDeliverer(d)()
	l.flush(d, time.Minute)
	l.check()
}
