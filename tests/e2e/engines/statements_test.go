//go:build e2e || versions || mongodb

package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
)

// sessionsOf returns how many sessions of a class a sample has.
func sessionsOf(s *engine.Sample, class string) (n float64, known bool) {
	if !s.Up() {
		return 0, false
	}
	for i := range s.Status.Values {
		if v := &s.Status.Values[i]; v.Metric == engine.ActiveSessions && v.Labels[0] == class {
			n, known = n+v.V, true
		}
	}
	return n, known
}

// sample samples targets once a second, and returns the sampler.
func sample(t *testing.T, targets []engine.Target) (*engine.Sampler, *watcher) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s := engine.NewSampler(targets, func(target engine.Target) (engine.Prober, error) {
		return registry.ByName(target.Engine).Open(target, log)
	}, time.Second, engine.Options{Logger: log})
	ctx, cancel := context.WithCancel(context.Background())
	frames, _ := s.Subscribe(1000)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-done)
	})
	return s, &watcher{t: t, frames: frames}
}

// account creates a user with rights, and returns it as a target.
func (s group) account(t *testing.T, name string, grants ...string) engine.Target {
	t.Helper()
	a := s.admin(t, 1)
	a.do("CREATE USER " + name + "@127.0.0.1 IDENTIFIED BY '" + name + "'")
	for _, g := range grants {
		a.do("GRANT " + g + " TO " + name + "@127.0.0.1")
	}
	return engine.Target{Name: name, Engine: "mysql", Address: s.Address(1), User: name, Password: engine.Secret(name)}
}

// sysbench runs the benchmark tool on server 1.
func (s group) sysbench(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sysbench", append([]string{"--config-file=" + filepath.Join(s.Dir, "sysbench.cnf"), "--tables=2", "--table-size=2000"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("sysbench: %v\n%s", err, out)
	}
}

// reading reads the statements of one target.
func reading(t *testing.T, s *engine.Sampler, target string, before *engine.StatementReading) engine.StatementsAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return s.ReadStatements(ctx, map[string]*engine.StatementReading{target: before})[target]
}

// checkStatements guards that the statements of a run are as many as the server's clients sent, by an account with
// exactly the documented privileges, with and without prepared statements; that they have no literals; that reset
// counters are detected; and what an account without privileges gets.
func checkStatements(t *testing.T, s group, histograms bool, rights ...string) {
	s.sysbench(t, "oltp_read_write", "prepare")
	exact, plain := s.account(t, "exact", rights...), s.account(t, "plain")
	off := exact
	off.Name, off.Options = "off", map[string]string{"statements": "off"}
	sampler, w := sample(t, []engine.Target{exact, plain, off})
	w.until("all answer", 30*time.Second, func(f engine.Frame) bool { return f.Samples[0].Up() && f.Samples[1].Up() && f.Samples[2].Up() })
	if a := reading(t, sampler, "plain", nil); !errors.As(a.Err, new(engine.MissingError)) || !strings.Contains(a.Err.Error(), "events_statements_summary_by_digest") {
		t.Errorf("without rights: %v", a.Err)
	}
	if a := reading(t, sampler, "off", nil); !errors.Is(a.Err, engine.ErrSwitchedOff) {
		t.Errorf("switched off: %v", a.Err)
	}
	for _, mode := range []string{"disable", "auto"} {
		t.Run(mode, func(t *testing.T) {
			before := reading(t, sampler, "exact", nil)
			must(t, before.Err)
			s.sysbench(t, "oltp_read_write", "--threads=2", "--time=0", "--events=400", "--db-ps-mode="+mode, "run")
			after := reading(t, sampler, "exact", before.StatementReading)
			must(t, after.Err)
			d, err := engine.StatementsBetween(before.StatementReading, after.StatementReading)
			must(t, err)
			total := d.Total()
			t.Logf("%v executions, %v questions, %d kinds of statements", total.Executions, d.Questions.Value, len(d.Statements))
			if !(d.Questions.Value > 8000) || math.Abs(total.Executions-d.Questions.Value) > 0.01*d.Questions.Value {
				t.Errorf("%v executions, %v questions", total.Executions, d.Questions.Value)
			}
			found := false
			for i := range d.Statements {
				one := &d.Statements[i]
				found = found || strings.HasPrefix(strings.TrimPrefix(one.Text, "EXECUTE "), "SELECT `c` FROM `sbtest1` WHERE") && one.RowsExamined > 0 && one.Latency != nil == histograms
				if strings.Contains(one.Text, "'") {
					t.Errorf("literal in %q", one.Text)
				}
			}
			if i := len(d.Statements); i == 0 || !found && d.Statements[0].Digest != engine.DigestPrepared {
				t.Errorf("%+v", d.Statements)
			}
			count := uint64(0)
			for _, b := range d.Latency {
				count += b.N
			}
			if histograms && math.Abs(float64(count)-total.Executions) > 0.02*total.Executions || !histograms && d.Latency != nil {
				t.Errorf("%d values of %v executions in the histogram", count, total.Executions)
			}
		})
	}
	t.Run("reset", func(t *testing.T) {
		before := reading(t, sampler, "exact", nil)
		must(t, before.Err)
		s.admin(t, 1).do("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest")
		w.next() // the agent's own statements are counted again
		w.next()
		s.sysbench(t, "oltp_read_write", "--threads=2", "--time=0", "--events=900", "--db-ps-mode=disable", "run")
		after := reading(t, sampler, "exact", before.StatementReading)
		must(t, after.Err)
		if _, err := engine.StatementsBetween(before.StatementReading, after.StatementReading); !errors.Is(err, engine.ErrStatementsReset) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cost", func(t *testing.T) {
		admin := s.admin(t, 1)
		for i := range 1500 {
			admin.do(fmt.Sprintf("SELECT 1 AS c%d", i))
		}
		begun, ended := 0.0, 0.0
		const rounds = 10
		for range rounds {
			began := cpu(t, s.PID(1))
			before := reading(t, sampler, "exact", nil)
			must(t, before.Err)
			between := cpu(t, s.PID(1))
			after := reading(t, sampler, "exact", before.StatementReading)
			must(t, after.Err)
			begun, ended = begun+between-began, ended+cpu(t, s.PID(1))-between
			if len(before.Statements) < 1500 {
				t.Fatalf("%d digests", len(before.Statements))
			}
		}
		t.Logf("CPU of the server with 1,500 digests: %.1f ms for a reading at the beginning, %.1f ms for one at the end, what else it did in that time included", begun/rounds*1e3, ended/rounds*1e3)
	})
}

// cpu returns the CPU time that a process took, in seconds.
func cpu(t *testing.T, pid int) float64 {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	must(t, err)
	sum := 0.0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		must(t, err)
		ns, _, _ := strings.Cut(string(data), " ")
		n, err := strconv.ParseFloat(ns, 64)
		must(t, err)
		sum += n / 1e9
	}
	return sum
}

// checkRowLockWait guards that a session that waits 10 s for a row lock is in 10 samples of that class, give or take
// one, and in no sample after its wait.
func checkRowLockWait(t *testing.T, s group, target engine.Target) {
	admin := s.admin(t, 1)
	admin.do("CREATE TABLE sbtest.queued (id INT PRIMARY KEY, n INT) ENGINE=InnoDB", "INSERT INTO sbtest.queued VALUES (1, 0)")
	w := watch(t, []engine.Target{target})
	w.until("it answers", 30*time.Second, func(f engine.Frame) bool { return f.Samples[0].Up() })
	holder, waiter := s.open(t, 1, "bench"), s.open(t, 1, "bench")
	tx, err := holder.Begin()
	must(t, err)
	_, err = tx.Exec("UPDATE sbtest.queued SET n = n + 1")
	must(t, err)
	began := time.Now()
	ended := make(chan time.Time, 1)
	go func() {
		_, err := waiter.Exec("UPDATE sbtest.queued SET n = n + 1")
		if err != nil {
			t.Error(err)
		}
		ended <- time.Now()
	}()
	_, err = tx.Exec("DO SLEEP(10)")
	must(t, err)
	must(t, tx.Commit())
	end := <-ended
	within, after, unknown := 0, 0, 0
	for after < 3 {
		f := w.next()
		if len(f.Samples) == 0 || !f.Samples[0].Up() { // the machine was too slow for the server to answer
			unknown++
			continue
		}
		n, known := sessionsOf(&f.Samples[0], engine.RowLock)
		switch asked := f.Samples[0].Asked; {
		case asked.After(end):
			if after++; !known || n != 0 {
				t.Errorf("%v sessions wait (known: %t) after the end", n, known)
			}
		case n == 1:
			within++
		case n > 1:
			t.Errorf("%v sessions wait, of one", n)
		}
	}
	if seconds := end.Sub(began).Seconds(); float64(within)-seconds > 1.2 || seconds-float64(within+unknown) > 1.2 || within+unknown < 9 || unknown > 3 {
		t.Errorf("%d samples of a wait of %.1f s, and %d without an answer", within, seconds, unknown)
	}
}
