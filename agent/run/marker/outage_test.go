package marker

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// TestDownForAnHour: markers wait, the agent logs this once, and they arrive soon after Grafana is back.
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
				l.transport.Down = func() error {
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
				if s := d.Stats(); s.Queued != 2 || s.Retried == 0 {
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
				if n := l.grafana.Made("PATCH"); n != 0 {
					t.Errorf("a run that has ended meanwhile was sent in %d steps", n+1)
				}
			})
		})
	}
}

// TestRetryAfter: Grafana's Retry-After is respected.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.SetFault(func(m string, n int) fakegrafana.Fault {
			if m == "GET" && n == 0 {
				return fakegrafana.Before(fakegrafana.Status(429, "Retry-After: 120", ""))
			}
			return nil
		})
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun)
		time.Sleep(119 * time.Second)
		if n := l.grafana.Made("GET"); n != 1 {
			t.Errorf("%d requests while Grafana asked for none", n)
		}
		l.flush(d, 5*time.Second)
	})
}

// TestNewToken: a refused token is named once in the log, with what to do; a new one in the same file takes effect
// immediately. No token is ever logged.
func TestNewToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.grafana.Token = "glsa_good"
		l.token = filepath.Join(t.TempDir(), "token")
		d, stop := l.deliverer()
		defer stop()
		l.add(openRun)
		time.Sleep(5 * time.Minute) // no file
		if n := l.logged("no such file"); n != 1 {
			t.Errorf("logged %d times that there is no token file", n)
		}
		setToken := func(token string, age time.Duration) {
			if err := os.WriteFile(l.token, []byte(token+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(age) // the file system has another clock
			if err := os.Chtimes(l.token, at, at); err != nil {
				t.Fatal(err)
			}
		}
		setToken("glsa_bad", 0)
		time.Sleep(30 * time.Minute)
		if n := l.logged("service account"); n != 2 { // missing, then wrong
			t.Errorf("logged %d times what to do", n)
		}
		if n := l.grafana.Made("GET"); n > 45 {
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

// TestRefused: a marker that Grafana refuses does not hold up the others, is recorded with the reason and is not given
// up immediately.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		var poison atomic.Bool
		poison.Store(true)
		l.grafana.SetFault(func(m string, _ int) fakegrafana.Fault {
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
					fakegrafana.Answer(w, 400, map[string]any{"message": "Failed to save annotation"})
					return
				}
				serve(w, r)
			}
		})
		d, stop := l.deliverer()
		defer stop()
		l.add(point("poison", 0), point("good", time.Second))
		l.flush(d, 5*time.Second)
		if all := l.grafana.All(); len(all) != 1 || all[0].Text != "good" {
			t.Fatalf("delivered: %+v", all)
		}
		time.Sleep(time.Hour)
		if it := l.items()[0]; !it.refused() || !strings.Contains(it.receipt.Reason, "Failed to save annotation") {
			t.Errorf("recorded: %+v", it)
		}
		if s := d.Stats(); s.Rejected != 1 || s.Queued != 0 {
			t.Errorf("stats %+v", s)
		}
		if n := l.logged("refused"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		if n := l.grafana.Made("POST"); n > 20 {
			t.Errorf("tried %d times in an hour", n)
		}
		poison.Store(false)
		time.Sleep(maxRefusedRetry)
		l.check()

		// New content does not wait for the refused one's next attempt.
		poison.Store(true)
		changed := Marker{ID: "changed", Kind: Alert, Text: "poison", Start: start}
		l.add(changed)
		time.Sleep(time.Hour)
		changed.Text, changed.End = "resolved", start.Add(time.Minute)
		l.add(changed)
		time.Sleep(2 * time.Second)
		l.check()

		poison.Store(true)
		l.add(point("poison two", 0))
		time.Sleep(giveUpAfter + time.Hour)
		n := l.grafana.Made("POST")
		time.Sleep(giveUpAfter + time.Hour)
		if more := l.grafana.Made("POST") - n; more > 0 {
			t.Errorf("given up, but tried %d times", more)
		}
	})
}

type readCloser struct{ *bytes.Reader }
