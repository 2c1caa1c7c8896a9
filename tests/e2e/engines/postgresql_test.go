//go:build e2e || versions

package engines

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// onPostgreSQL runs a test on n servers of each version.
func onPostgreSQL(t *testing.T, n int, test func(t *testing.T, s group), settings ...string) {
	t.Helper()
	t.Parallel()
	for _, version := range postgresqlVersions {
		t.Run(cmp.Or(version, "installed"), func(t *testing.T) {
			test(t, startWith(t, servers.PostgreSQL, servers.Options{Servers: n, Version: version, Settings: settings}))
		})
	}
}

// sql runs statements as administrator in the database of the benchmark.
func (s group) sql(t *testing.T, n int, statements string) [][]string {
	t.Helper()
	rows, err := s.QueryIn(t.Context(), n, "sbtest", statements)
	must(t, err)
	return rows
}

// pgbench runs Debian's pgbench on server 1 and returns what it printed.
func (s group) pgbench(t *testing.T, args ...string) string {
	t.Helper()
	program, err := servers.PostgreSQLClient("pgbench")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest password=%s", s.Port+1, s.password(t, "bench")))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
	return string(out)
}

// session is a connection of the user bench, which executes one statement after the other.
func (s group) session(t *testing.T, n int) func(statement string) error {
	t.Helper()
	c, err := pgconn.ParseConfig(fmt.Sprintf("host=127.0.0.1 port=%d user=bench dbname=sbtest sslmode=disable password=%s", s.Port+n, s.password(t, "bench")))
	must(t, err)
	conn, err := pgconn.ConnectConfig(t.Context(), c)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func(statement string) error {
		_, err := conn.Exec(t.Context(), statement).ReadAll()
		return err
	}
}

// writes inserts rows through server n until it is stopped, however often the server is away.
func (s group) writes(t *testing.T, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			_, _ = s.QueryIn(ctx, n, "sbtest", strings.Repeat("INSERT INTO loaded (c) VALUES (repeat('x', 100));", 20))
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		writer.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// catchUp skips the frames up to now.
func (w *watcher) catchUp() {
	for {
		select {
		case <-w.frames:
		default:
			return
		}
	}
}

const loaded = "CREATE TABLE loaded (id bigserial PRIMARY KEY, c text)"

// level reports whether a server is close to its source.
func level(s *engine.Sample) bool {
	return s.Up() && s.LagBytes.Known && s.LagBytes.Value < 1<<20 && s.LagSeconds.Known && s.LagSeconds.Value < 1
}

func TestPostgreSQLReplication(t *testing.T) { onPostgreSQL(t, 5, checkPostgreSQLReplication) }

func checkPostgreSQLReplication(t *testing.T, s group) {
	s.sql(t, 1, loaded)
	s.sql(t, 5, loaded)
	s.sql(t, 5, "ALTER SUBSCRIPTION n5 REFRESH PUBLICATION")
	w := s.watch(t)
	stop := s.writes(t, 1)
	all := func(f engine.Frame) bool {
		return f.Samples[0].Up() && f.Samples[0].Source && !slices.ContainsFunc(f.Samples[1:], func(s engine.Sample) bool { return !level(&s) })
	}
	w.until("all level", 30*time.Second, all)
	f := w.until("all level again", 20*time.Second, all)
	for i, role := range []string{"primary", "replica", "replica", "replica", "replica"} {
		if got := f.Samples[i].Status.Role; got != role {
			t.Errorf("n%d is %s, want %s", i+1, got, role)
		}
	}
	for name, want := range map[string]float64{"n2": 0, "n3": 0, "n5": 0} {
		if !is(&f.Samples[0], want, "postgresql_standby_synchronous", name) {
			t.Errorf("%s is not reported by the primary", name)
		}
	}
	if _, ok := value(&f.Samples[1], "postgresql_standby_lag_bytes", "n4", "replay"); !ok {
		t.Error("the cascading standby is not reported by its source")
	}

	t.Run("paused", func(t *testing.T) {
		w := w.in(t)
		must(t, s.Lag(t.Context(), 3))
		f := w.until("behind, and growing", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[2]
			return n.LagSeconds.Known && n.LagSeconds.Value > 2 && n.LagBytes.Value > 1000 && is(n, 1, "postgresql_replay_paused") && is(n, 0, "replication_running", "wal", "applier")
		})
		s.closeTo(t, &f, 1, 3)
		if !level(&f.Samples[1]) {
			t.Errorf("others are not affected:\n%s", describe(f))
		}
		must(t, s.Unlag(t.Context(), 3))
		w.until("level again", 30*time.Second, all)
	})

	t.Run("delayed", func(t *testing.T) {
		w := w.in(t)
		_, err := s.Query(t.Context(), 3, "ALTER SYSTEM SET recovery_min_apply_delay = '3s'")
		must(t, err)
		_, err = s.Query(t.Context(), 3, "SELECT pg_reload_conf()")
		must(t, err)
		w.until("held back, but not behind", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[2]
			v, _ := value(n, "postgresql_replay_queue_bytes")
			return n.Up() && n.Status.Delay == 3*time.Second && v > 1000 && n.LagSeconds.Known && n.LagSeconds.Value < 1.5 && !n.LagBytes.Known &&
				is(n, 1, "replication_running", "wal", "applier") && is(n, 1, "replication_running", "wal", "receiver") // late is not stopped
		})
		_, err = s.Query(t.Context(), 3, "ALTER SYSTEM RESET ALL")
		must(t, err)
		_, err = s.Query(t.Context(), 3, "SELECT pg_reload_conf()")
		must(t, err)
		w.until("level again", 30*time.Second, all)
	})

	t.Run("subscriber stopped", func(t *testing.T) {
		w := w.in(t)
		s.sql(t, 5, "ALTER SUBSCRIPTION n5 DISABLE")
		w.until("behind", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[4]
			return n.LagSeconds.Known && n.LagSeconds.Value > 2 && is(n, 0, "replication_running", "n5", "applier") && is(&f.Samples[0], 0, "postgresql_slot_active", "n5")
		})
		s.sql(t, 5, "ALTER SUBSCRIPTION n5 ENABLE")
		w.until("level again", 30*time.Second, all)
	})

	t.Run("receiver stopped", func(t *testing.T) {
		w := w.in(t)
		conninfo := s.setting(t, 2, "primary_conninfo")
		s.set(t, 2, "primary_conninfo", "")
		w.until("behind", 30*time.Second, func(f engine.Frame) bool {
			n, cascade := &f.Samples[1], &f.Samples[3]
			return n.LagSeconds.Known && n.LagSeconds.Value > 2 && cascade.LagSeconds.Known && cascade.LagSeconds.Value > 2 && !n.Status.CoarseLagSeconds.Known
		})
		s.set(t, 2, "primary_conninfo", conninfo)
		w.until("level again", 40*time.Second, all)
	})

	stop()
	t.Run("idle", func(t *testing.T) {
		w := w.in(t)
		w.until("nothing to replay", 20*time.Second, func(f engine.Frame) bool {
			return !slices.ContainsFunc(f.Samples[1:], func(s engine.Sample) bool { return s.LagSeconds.Value != 0 || s.LagBytes.Value != 0 })
		})
		for range 3 {
			if f := w.next(); f.Samples[1].LagSeconds.Value != 0 || f.Samples[1].Status.CoarseLagSeconds.Value != 0 {
				t.Errorf("a standby with nothing to replay is behind:\n%s", describe(f))
			}
		}
	})

	t.Run("promoted", func(t *testing.T) {
		w := w.in(t)
		must(t, s.Kill(1))
		_, err := s.Query(t.Context(), 2, "SELECT pg_promote()")
		must(t, err)
		stop := s.writes(t, 2)
		defer stop()
		w.until("the new primary, followed by its standby", 30*time.Second, func(f engine.Frame) bool {
			return f.Samples[1].Up() && f.Samples[1].Status.Role == "primary" && f.Samples[1].Source && level(&f.Samples[3])
		})
		f := w.next()
		// The other standby lost its source.
		if n := &f.Samples[2]; n.LagSeconds.Known && n.LagSeconds.Value > 60 || n.LagBytes.Value > 1<<30 {
			t.Errorf("a jump:\n%s", describe(f))
		}
	})
}

// setting returns a setting of server n.
func (s group) setting(t *testing.T, n int, name string) string {
	t.Helper()
	rows, err := s.Query(t.Context(), n, "SELECT current_setting('"+name+"')")
	must(t, err)
	return rows[0][0]
}

// set changes a setting of server n.
func (s group) set(t *testing.T, n int, name, value string) {
	t.Helper()
	_, err := s.Query(t.Context(), n, "ALTER SYSTEM SET "+name+" = '"+value+"'")
	must(t, err)
	_, err = s.Query(t.Context(), n, "SELECT pg_reload_conf()")
	must(t, err)
}

// closeTo compares the lag in bytes of a standby, whose replay is paused, with the servers' own positions.
func (s group) closeTo(t *testing.T, f *engine.Frame, from, n int) {
	t.Helper()
	rows, err := s.Query(t.Context(), from, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '"+f.Samples[n-1].Status.Position.String()+"')")
	must(t, err)
	now, err := strconv.ParseFloat(rows[0][0], 64)
	must(t, err)
	if got := f.Samples[n-1].LagBytes.Value; got > now || got <= 0 {
		t.Errorf("%v bytes behind, by the servers %v a moment later", got, now)
	}
}

// Commits over a run are those that pgbench counts, and WAL and statements are the server's.
func TestPostgreSQLCounters(t *testing.T) { onPostgreSQL(t, 1, checkPostgreSQLCounters) }

func checkPostgreSQLCounters(t *testing.T, s group) {
	s.pgbench(t, "-i", "-s", "1", "-q")
	w := s.watch(t)
	prober, err := registry.ByName("postgresql").Open(engine.Target{Name: "n1", Address: s.Address(1), User: "monitor",
		Password: engine.Secret(s.password(t, "monitor"))}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must(t, err)
	defer prober.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := prober.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	reader := prober.(engine.StatementReader)
	before, err := reader.Statements(ctx, nil)
	must(t, err)
	before.At = time.Now()

	w.next()
	w.next()
	first := w.until("quiet", 10*time.Second, func(f engine.Frame) bool { return f.Samples[0].Up() })
	out := s.pgbench(t, "-n", "-c", "4", "-T", "5")
	w.catchUp()
	for range 3 { // the sessions have ended; version 14 needs up to a second to count them
		w.next()
	}
	last := w.next()
	count, err := strconv.ParseFloat(regexp.MustCompile(`actually processed: (\d+)`).FindStringSubmatch(out)[1], 64)
	must(t, err)
	grown := func(name string, labels ...string) float64 {
		a, _ := value(&first.Samples[0], name, labels...)
		b, ok := value(&last.Samples[0], name, labels...)
		if !ok {
			t.Errorf("no %s%q", name, labels)
		}
		return b - a
	}
	if n := grown("db_commits_total"); math.Abs(n-count) > 0.01*count+10 {
		t.Errorf("%v commits, pgbench counted %v", n, count)
	}
	if n := grown("postgresql_wal_bytes_total"); n < count*100 {
		t.Errorf("%v bytes of WAL for %v transactions", n, count)
	}
	if n := grown("postgresql_wal_syncs_total"); n <= 0 || n > count*2 {
		t.Errorf("%v synchronisations for %v commits", n, count)
	}
	if n := grown("postgresql_wal_sync_seconds_total"); n <= 0 || n > 10 {
		t.Errorf("%v s of synchronisations in 5 s", n)
	}
	if n := grown("postgresql_rows_total", "others", "update"); math.Abs(n-3*count) > 0.01*3*count+10 {
		t.Errorf("%v updates for %v transactions", n, count)
	}
	if m := last.Samples[0].Status.Missing; len(m) > 0 {
		t.Errorf("missing: %q", m)
	}

	after, err := reader.Statements(ctx, before)
	must(t, err)
	after.At = time.Now()
	d, err := engine.StatementsBetween(before, after)
	must(t, err)
	i := slices.IndexFunc(d.Statements, func(s engine.Statement) bool {
		return strings.HasPrefix(s.Text, "UPDATE pgbench_accounts SET abalance = abalance + $1")
	})
	if i < 0 || d.Statements[i].Executions != count || d.Statements[i].Rows != count || d.Statements[i].Schema != "sbtest" || d.Statements[i].LogBytes <= 0 || d.Statements[i].Blocks <= 0 {
		t.Errorf("statements: %+v", d.Statements)
	}
	if slices.ContainsFunc(d.Statements, func(s engine.Statement) bool { return strings.Contains(s.Text, "benchwatch") }) {
		t.Error("the agent's own statements count")
	}
	if _, err := s.Query(t.Context(), 1, "SELECT pg_stat_statements_reset()"); err != nil {
		t.Fatal(err)
	}
	s.pgbench(t, "-n", "-c", "1", "-t", "10")
	reset, err := reader.Statements(ctx, after)
	must(t, err)
	reset.At = time.Now()
	if _, err := engine.StatementsBetween(after, reset); err == nil {
		t.Error("a reset was not noticed")
	}
}

// Sessions wait for what the test lets them wait for.
func TestPostgreSQLSessions(t *testing.T) { onPostgreSQL(t, 2, checkPostgreSQLSessions) }

func checkPostgreSQLSessions(t *testing.T, s group) {
	s.sql(t, 1, "CREATE TABLE rows (id int PRIMARY KEY, n int); INSERT INTO rows SELECT i, 0 FROM generate_series(1, 10) i; GRANT ALL ON rows TO bench")
	w := s.watch(t)
	waits := func(class, event string) func(engine.Frame) bool {
		return func(f engine.Frame) bool { return is(&f.Samples[0], 1, "db_active_sessions", class, event) }
	}
	holder, waiter := s.session(t, 1), s.session(t, 1)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for _, test := range []struct{ hold, wait, class, event string }{
		{"BEGIN; UPDATE rows SET n = 1 WHERE id = 1", "UPDATE rows SET n = 2 WHERE id = 1", "row_lock", "Lock:transactionid"},
		{"BEGIN; LOCK TABLE rows", "SELECT * FROM rows", "lock", "Lock:relation"},
		{"BEGIN; SELECT pg_advisory_lock(1)", "SELECT pg_advisory_xact_lock(1)", "lock", "Lock:advisory"},
	} {
		must(t, holder(test.hold))
		waiting.Go(func() { _ = waiter(test.wait) })
		f := w.until(test.event, 10*time.Second, waits(test.class, test.event))
		if !is(&f.Samples[0], 1, "postgresql_sessions", "idle in transaction") {
			t.Errorf("%s: the holder is not idle in a transaction", test.event)
		}
		must(t, holder("COMMIT; SELECT pg_advisory_unlock_all()"))
		waiting.Wait()
		w.until("none waits", 10*time.Second, func(f engine.Frame) bool {
			return is(&f.Samples[0], 0, "db_active_sessions", test.class, test.event)
		})
	}
	waiting.Go(func() { _ = waiter("SELECT pg_sleep(3)") })
	w.until("sleep", 10*time.Second, waits("other", "Timeout:PgSleep"))
	waiting.Wait()

	s.set(t, 1, "synchronous_standby_names", "n2")
	w.until("synchronous", 20*time.Second, func(f engine.Frame) bool {
		return is(&f.Samples[0], 1, "postgresql_standby_synchronous", "n2") && is(&f.Samples[0], 1, "postgresql_synchronous_standbys") && is(&f.Samples[0], 1, "postgresql_synchronous_standbys_wanted")
	})
	must(t, s.Pause(2))
	// The receiver is a process of its own.
	must(t, s.Kill(2))
	waiting.Go(func() { _ = waiter("UPDATE rows SET n = 3 WHERE id = 1") })
	w.until("waiting for the standby", 20*time.Second, waits("replication", "IPC:SyncRep"))
	must(t, s.Rejoin(t.Context(), 2))
	waiting.Wait()
}

// What users see with and without pg_monitor, and a wrong password.
func TestPostgreSQLRights(t *testing.T) { onPostgreSQL(t, 1, checkPostgreSQLRights) }

func checkPostgreSQLRights(t *testing.T, s group) {
	_, err := s.Query(t.Context(), 1, "CREATE USER nothing PASSWORD 'n'; CREATE USER watcher PASSWORD 'w'; GRANT pg_monitor TO watcher")
	must(t, err)
	target := func(name, user string, password engine.Secret, options map[string]string) engine.Target {
		return engine.Target{Name: name, Engine: "postgresql", Address: s.Address(1), User: user, Password: password, Options: options}
	}
	w := watch(t, []engine.Target{
		target("nothing", "nothing", "n", nil), target("watcher", "watcher", "w", nil), target("wrong", "watcher", "x", nil),
		target("database", "watcher", "w", map[string]string{"database": "absent"}),
		target("bench", "bench", engine.Secret(s.password(t, "bench")), map[string]string{"database": "sbtest"}),
	})
	f := w.until("all known", 20*time.Second, func(f engine.Frame) bool {
		return f.Samples[0].Up() && f.Samples[1].Up() && f.Samples[4].Up()
	})
	nothing, watcher := &f.Samples[0], &f.Samples[1]
	if m := nothing.Status.Missing; len(m) != 1 || !strings.Contains(m[0], "GRANT pg_monitor TO nothing") {
		t.Errorf("missing: %q", m)
	}
	if _, ok := value(nothing, "db_commits_total"); !ok || nothing.Status.Position == nil {
		t.Error("what is public is not shown")
	}
	if _, ok := value(nothing, "postgresql_checkpoint_running"); ok {
		t.Error("a user who does not see the checkpointer reports it")
	}
	if len(watcher.Status.Missing) != 0 || watcher.Status.Role != "primary" {
		t.Errorf("watcher: %q, role %q", watcher.Status.Missing, watcher.Status.Role)
	}
	if e := f.Samples[2].Err; e == nil || !strings.Contains(e.Error(), "check user and password_file") {
		t.Errorf("wrong password: %v", e)
	}
	if e := f.Samples[3].Err; e == nil || !strings.Contains(e.Error(), "set the option database") {
		t.Errorf("no such database: %v", e)
	}
	_, err = s.Query(t.Context(), 1, "ALTER USER watcher PASSWORD 'x'")
	must(t, err)
	w.until("recovery without a restart", 20*time.Second, func(f engine.Frame) bool { return f.Samples[2].Up() })
	_, err = s.Query(t.Context(), 1, "ALTER USER watcher PASSWORD 'w'")
	must(t, err)

	f = w.until("settings", 20*time.Second, func(f engine.Frame) bool { return f.Samples[1].Settings != nil })
	if set := f.Samples[1].Settings.Settings; set["shared_buffers"] != "134217728" || set["synchronous_commit"] != "on" || set["max_connections"] != "100" || !strings.Contains(set["extensions"], "pg_stat_statements") {
		t.Errorf("settings: %v", set)
	}

	// A closed connection costs no tick, a restart is noticed, and the counters are not lost.
	for range 2 {
		_, err := s.Query(t.Context(), 1, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'benchwatch'")
		must(t, err)
		if f := w.next(); !f.Samples[1].Up() {
			t.Errorf("tick missed: %v", f.Samples[1].Err)
		}
	}
	must(t, s.Kill(1))
	w.until("down", 5*time.Second, func(f engine.Frame) bool { return !f.Samples[1].Up() })
	must(t, s.Rejoin(t.Context(), 1))
	w.until("restarted", 20*time.Second, func(f engine.Frame) bool { return f.Samples[1].Up() && f.Samples[1].Restarts == 1 })
}

// The values of a tick equal those of the server's own views.
func TestPostgreSQLValues(t *testing.T) { onPostgreSQL(t, 2, checkPostgreSQLValues) }

func checkPostgreSQLValues(t *testing.T, s group) {
	s.pgbench(t, "-i", "-s", "1", "-q")
	s.pgbench(t, "-n", "-c", "2", "-t", "200")
	_, err := s.Query(t.Context(), 1, "CHECKPOINT")
	must(t, err)
	w := s.watch(t)
	for range 3 {
		w.next()
	}
	checkpointer := "SELECT num_requested FROM pg_stat_checkpointer"
	if v, _ := s.Query(t.Context(), 1, "SELECT current_setting('server_version_num')::int < 170000"); v[0][0] == "t" {
		checkpointer = "SELECT checkpoints_req FROM pg_stat_bgwriter"
	}
	all := []struct {
		sql, name string
		labels    []string
		within    float64
	}{
		{"SELECT wal_records FROM pg_stat_wal", "postgresql_wal_records_total", nil, 50},
		{checkpointer, "postgresql_checkpoints_total", []string{"requested"}, 0},
		{"SELECT sum(tup_inserted) FROM pg_stat_database WHERE datname IS DISTINCT FROM 'postgres'", "postgresql_rows_total", []string{"others", "insert"}, 500},
		{"SELECT setting FROM pg_settings WHERE name = 'max_connections'", "db_connections_limit", nil, 0},
		{"SELECT max(age(datfrozenxid)) FROM pg_database", "postgresql_freeze_age_transactions", nil, 5},
		{"SELECT max(mxid_age(datminmxid)) FROM pg_database", "postgresql_freeze_age_multixacts", nil, 0},
		{"SELECT sum(tup_updated) FROM pg_stat_database WHERE datname IS DISTINCT FROM 'postgres'", "postgresql_rows_total", []string{"others", "update"}, 500},
		{"SELECT sum(sessions) FROM pg_stat_database WHERE datname IS DISTINCT FROM 'postgres'", "postgresql_sessions_total", []string{"others"}, 0},
		{"SELECT sum(deadlocks) FROM pg_stat_database WHERE datname IS DISTINCT FROM 'postgres'", "postgresql_deadlocks_total", []string{"others"}, 0},
		{"SELECT sum(temp_bytes) FROM pg_stat_database WHERE datname IS DISTINCT FROM 'postgres'", "postgresql_temporary_bytes_total", []string{"others"}, 0},
		{"SELECT wal_bytes FROM pg_stat_wal", "postgresql_wal_bytes_total", nil, 1 << 16},
		{"SELECT wal_fpi FROM pg_stat_wal", "postgresql_wal_full_page_images_total", nil, 10},
		{"SELECT wal_buffers_full FROM pg_stat_wal", "postgresql_wal_buffers_full_total", nil, 0},
		{"SELECT archived_count FROM pg_stat_archiver", "postgresql_wal_archived_total", []string{"archived"}, 0},
		{"SELECT buffers_alloc FROM pg_stat_bgwriter", "postgresql_buffers_allocated_total", nil, 100},
		{"SELECT buffers_clean FROM pg_stat_bgwriter", "postgresql_buffers_written_total", []string{"bgwriter"}, 0},
		{"SELECT pg_size_bytes(current_setting('max_wal_size'))", "postgresql_max_wal_size_bytes", nil, 0},
		{"SELECT current_setting('autovacuum_max_workers')", "postgresql_autovacuum_workers_limit", nil, 0},
		{"SELECT count(*) FROM pg_prepared_xacts", "postgresql_prepared_transactions", nil, 0},
		{"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender'", "postgresql_processes", []string{"walsender"}, 0},
		{"SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) FROM pg_control_checkpoint()", "postgresql_checkpoint_distance_bytes", nil, 1 << 16},
	}
	wanted := make([]float64, len(all))
	for i, c := range all {
		rows, err := s.Query(t.Context(), 1, c.sql)
		must(t, err)
		wanted[i], err = strconv.ParseFloat(rows[0][0], 64)
		must(t, err)
	}
	w.catchUp()
	w.next()
	f := w.next()
	for i, c := range all {
		if got, ok := value(&f.Samples[0], c.name, c.labels...); !ok || math.Abs(got-wanted[i]) > c.within {
			t.Errorf("%s%q is %v, the server has %v", c.name, c.labels, got, wanted[i])
		}
	}
	exporterAgrees(t, s, w)
	f = w.next()
	names := map[string]bool{}
	for _, v := range f.Samples[0].Status.Values {
		key := v.Name()
		if names[key] {
			t.Errorf("%s is set twice", key)
		}
		names[key] = true
	}
	// The log has no password: a secret setting is not among those that are read.
	for _, set := range w.settings() {
		for name, v := range set {
			if strings.Contains(v, s.password(t, "replica")) || name == "primary_conninfo" {
				t.Errorf("setting %s is %s", name, v)
			}
		}
	}
}
