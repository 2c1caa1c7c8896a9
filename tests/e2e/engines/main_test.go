//go:build e2e || versions || mongodb

// Package engines tests the sampler and the engines on real servers: a Galera
// cluster, and a MariaDB primary with a replica, on loopback (`make e2e`); the same
// on other versions of MariaDB, and MySQL 9 as source and replica and as a group
// (`make test-versions`); replica sets of MongoDB (`make test-mongodb`).
package engines

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// group is the servers of a test.
type group struct{ *servers.Group }

// start runs n servers for as long as the test lasts.
func start(t *testing.T, kind servers.Kind, n int) group {
	t.Helper()
	return startWith(t, kind, servers.Options{Servers: n})
}

func startWith(t *testing.T, kind servers.Kind, o servers.Options) group {
	t.Helper()
	o.Attached = true
	dir, err := os.MkdirTemp("", "benchwatch-engines.")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// The database servers' own user must be able to pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	g, err := servers.Start(t.Context(), filepath.Join(dir, "servers"), kind, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	return group{g}
}

// mariadbVersions and postgresqlVersions are the tested versions. The empty one is installed.
var mariadbVersions, postgresqlVersions = []string{""}, []string{""}

// onMariaDB runs a test on n servers of each version, beside others: it waits for its own servers most of the time.
func onMariaDB(t *testing.T, kind servers.Kind, n int, test func(t *testing.T, s group), settings ...string) {
	t.Helper()
	t.Parallel()
	for _, version := range mariadbVersions {
		t.Run(cmp.Or(version, "installed"), func(t *testing.T) {
			test(t, startWith(t, kind, servers.Options{Servers: n, Version: version, Settings: settings}))
		})
	}
}

// must fails the test if something that a test does to a server fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s group) password(t *testing.T, user string) string {
	t.Helper()
	secret, err := s.Password(user)
	must(t, err)
	return secret
}

// open connects a user to server n.
func (s group) open(t *testing.T, n int, user string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(%s)/?timeout=5s", user, s.password(t, user), s.Address(n)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// admin is an administrator's session on a server. Ending it ends its locks.
type admin struct {
	t       *testing.T
	session *sql.Conn
}

func (s group) admin(t *testing.T, n int) *admin {
	t.Helper()
	db, err := s.Admin(n)
	if err != nil {
		t.Fatal(err)
	}
	session, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = db.Close()
	})
	return &admin{t: t, session: session}
}

// do runs statements.
func (a *admin) do(statements ...string) {
	a.t.Helper()
	for _, s := range statements {
		if _, err := a.session.ExecContext(a.t.Context(), s); err != nil {
			a.t.Fatalf("%s: %v", s, err)
		}
	}
}

// watch samples all servers once a second and returns the frames.
func (s group) watch(t *testing.T) *watcher {
	t.Helper()
	var targets []engine.Target
	name := "mysql"
	if s.Kind == servers.PostgreSQL {
		name = "postgresql"
	}
	for n := 1; n <= s.N; n++ {
		targets = append(targets, engine.Target{
			Name: fmt.Sprintf("n%d", n), Engine: name, Cluster: "c",
			Address: s.Address(n),
			User:    "monitor", Password: engine.Secret(s.password(t, "monitor")),
		})
	}
	return watch(t, targets)
}

// watcher waits for frames of a sampler that meet a condition.
type watcher struct {
	t      *testing.T
	frames <-chan engine.Frame
}

// in returns the watcher for a subtest.
func (w *watcher) in(t *testing.T) *watcher { return &watcher{t: t, frames: w.frames} }

func watch(t *testing.T, targets []engine.Target) *watcher {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s := engine.NewSampler(targets, func(target engine.Target) (engine.Prober, error) {
		return registry.ByName(target.Engine).Open(target, log)
	}, time.Second, engine.Options{Logger: log})
	ctx, cancel := context.WithCancel(context.Background())
	s.ReadSettings()
	frames, _ := s.Subscribe(1000)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &watcher{t: t, frames: frames}
}

// settings waits until the settings of all servers were read.
func (w *watcher) settings() []engine.Settings {
	w.t.Helper()
	f := w.until("settings of all servers", 30*time.Second, func(f engine.Frame) bool {
		return !slices.ContainsFunc(f.Samples, func(s engine.Sample) bool { return s.Settings == nil })
	})
	var all []engine.Settings
	for i := range f.Samples {
		if err := f.Samples[i].Settings.Err; err != nil {
			w.t.Errorf("settings of %s: %v", f.Samples[i].Target.Name, err)
		}
		all = append(all, f.Samples[i].Settings.Settings)
	}
	return all
}

// next returns the next frame.
func (w *watcher) next() engine.Frame {
	w.t.Helper()
	select {
	case f := <-w.frames:
		return f
	case <-time.After(10 * time.Second):
		w.t.Fatal("no frame for 10 s")
		panic("unreachable")
	}
}

// until waits for a frame that meets a condition.
func (w *watcher) until(what string, limit time.Duration, condition func(engine.Frame) bool) engine.Frame {
	w.t.Helper()
	end := time.Now().Add(limit)
	for {
		f := w.next()
		if condition(f) {
			return f
		}
		if time.Now().After(end) {
			w.t.Fatalf("not within %v: %s; last frame:\n%s", limit, what, describe(f))
		}
	}
}

func describe(f engine.Frame) string {
	var b strings.Builder
	for i := range f.Samples {
		s := &f.Samples[i]
		if !s.Up() {
			fmt.Fprintf(&b, "%s: %v\n", s.Target.Name, s.Err)
			continue
		}
		fmt.Fprintf(&b, "%s: at %v, lag %s transactions, %s s, role %s\n", s.Target.Name, s.Status.Position, optional(s.LagTransactions), optional(s.LagSeconds), s.Status.Role)
	}
	return b.String()
}

func optional(v series.Optional[float64]) string {
	if !v.Known {
		return "unknown"
	}
	return fmt.Sprint(v.Value)
}

// value returns a series of a sample by its name.
func value(s *engine.Sample, name string, labels ...string) (float64, bool) {
	if !s.Up() {
		return 0, false
	}
	for _, v := range s.Status.Values {
		if v.Metric.Name == name && strings.Join(v.Labels, ",") == strings.Join(labels, ",") {
			return v.V, true
		}
	}
	return 0, false
}

func is(s *engine.Sample, want float64, name string, labels ...string) bool {
	v, ok := value(s, name, labels...)
	return ok && v == want
}

// load inserts rows through server n until it is stopped.
func (s group) load(t *testing.T, n int) (stop func()) {
	t.Helper()
	db := s.open(t, n, "bench")
	db.SetMaxOpenConns(2)
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS sbtest.engines (id BIGINT AUTO_INCREMENT PRIMARY KEY, c CHAR(50))"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for ctx.Err() == nil {
				// The tests provoke errors: the server is down.
				_, _ = db.ExecContext(ctx, "INSERT INTO sbtest.engines (c) VALUES ('x')")
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		writers.Wait()
	})
	t.Cleanup(stop)
	return stop
}
