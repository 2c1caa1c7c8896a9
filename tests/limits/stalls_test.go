//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// stalling is a stall that a test injects into a run. It returns the session that held what the clients waited for, if
// there is one, and for how long.
type stalling struct {
	name, reason string
	inject       func(t *testing.T, l *lab, meta rundir.Meta) (holder string, seconds float64)
}

// stalled is how long the injected stalls last.
const stalled = 5 * time.Second

// holder is a session that holds something until it releases it.
func holder(t *testing.T, l *lab) (execute func(string), id string) {
	t.Helper()
	db, err := l.group.Admin(1)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	con, err := db.Conn(context.Background())
	must(t, err)
	t.Cleanup(func() { must(t, con.Close()) })
	must(t, con.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&id))
	return func(statement string) {
		t.Helper()
		_, err := con.ExecContext(context.Background(), statement)
		must(t, err)
	}, id
}

// held executes statements, and others after the time of a stall.
func held(begin, end []string) func(*testing.T, *lab, rundir.Meta) (string, float64) {
	return func(t *testing.T, l *lab, _ rundir.Meta) (string, float64) {
		t.Helper()
		execute, id := holder(t, l)
		for _, s := range begin {
			execute(s)
		}
		from := time.Now()
		<-time.After(stalled)
		for _, s := range end {
			execute(s)
		}
		return id, time.Since(from).Seconds()
	}
}

// paused stops a process for the time of a stall.
func paused(pid func(*lab, rundir.Meta) int) func(*testing.T, *lab, rundir.Meta) (string, float64) {
	return func(t *testing.T, l *lab, meta rundir.Meta) (string, float64) {
		t.Helper()
		from := time.Now()
		must(t, syscall.Kill(pid(l, meta), syscall.SIGSTOP))
		<-time.After(stalled)
		must(t, syscall.Kill(pid(l, meta), syscall.SIGCONT))
		return "", time.Since(from).Seconds()
	}
}

var stallings = []stalling{
	{"FLUSH TABLES WITH READ LOCK", "global read lock", held([]string{"FLUSH TABLES WITH READ LOCK"}, []string{"UNLOCK TABLES"})},
	{"LOCK TABLES", "metadata lock", held([]string{"LOCK TABLES sbtest.sbtest1 WRITE, sbtest.sbtest2 WRITE"}, []string{"UNLOCK TABLES"})},
	{"row locks of a transaction", "row lock", held([]string{"BEGIN", "UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id <= 20000", "UPDATE sbtest.sbtest2 SET k = k + 1 WHERE id <= 20000"}, []string{"ROLLBACK"})},
	{"a stopped server", "server stopped", paused(func(l *lab, _ rundir.Meta) int { return l.group.PID(1) })},
	{"a stopped tool", "tool stopped", paused(func(_ *lab, meta rundir.Meta) int { return meta.PID })},
}

// TestStalls injects a stall into each of several runs. Each has exactly the stalls that were injected, with the right
// reason, session and length.
func TestStalls(t *testing.T) {
	query(t, "INSTALL SONAME 'metadata_lock_info'")
	t.Cleanup(func() { query(t, "UNINSTALL SONAME 'metadata_lock_info'") })
	l := newLab(t, env.server, env.server.Address(1), env.server.Address(1))
	for i, s := range stallings {
		t.Run(s.name, func(t *testing.T) {
			var session string
			var seconds float64
			id := fmt.Sprintf("stall%d", i)
			l.one(t, id, func(meta rundir.Meta) {
				<-time.After(9 * time.Second) // what is usual must be known
				session, seconds = s.inject(t, l, meta)
			}, "--threads=8", "--table-size=20000", "--rand-type=uniform", "--time=22", "oltp_read_write")
			s.judge(t, stallsOf(t, l, id), session, seconds)
		})
	}
}

// judge compares the worst stall of a run with what was injected.
func (s *stalling) judge(t *testing.T, all []review.Stall, session string, seconds float64) {
	t.Helper()
	worst := review.Stall{}
	for _, x := range all {
		t.Logf("%s: %s: %s", x.Title(), x.Reason, x.Evidence)
		if x.Seconds > worst.Seconds {
			worst = x
		}
	}
	if worst.Reason != s.reason || !strings.Contains(worst.Evidence, "session "+session+" ") && session != "" {
		t.Errorf("reason %q: %s; expected %q, session %q", worst.Reason, worst.Evidence, s.reason, session)
	}
	if math.Abs(worst.Seconds-seconds) > 1 {
		t.Errorf("%.1f s, expected %.1f s", worst.Seconds, seconds)
	}
}

// stallsOf reads the stalls of a run from its report.
func stallsOf(t *testing.T, l *lab, id string) []review.Stall {
	t.Helper()
	out, err := exec.Command(env.binary, "report", id, "--config.file="+l.Config, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct {
			Stalls []review.Stall `json:"stalls"`
		}
	}
	must(t, json.Unmarshal(out, &report))
	if len(report.Runs) != 1 {
		t.Fatalf("%d runs", len(report.Runs))
	}
	return report.Runs[0].Stalls
}
