package postgresql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const (
	// refreshEvery is the interval for reading the identity again, and for trying refused statements
	// again.
	refreshEvery = time.Minute
	// slowEvery is the interval of values that change slowly or cost more.
	slowEvery = 10 * time.Second
	// searchEvery is the interval for what the last tick did not have: standbys, subscriptions, vacuums.
	searchEvery = 5 * time.Second
	// oldest is the oldest version that can be sampled.
	oldest = 14
	// largestCatalog is the size of pg_class in bytes, about 1,700 tables with their indexes, up to which
	// the tables of a database are read. With 20,000 tables that would take the server 0.3 s.
	largestCatalog = 1 << 20
	// leastDead is the number of dead rows from which on their share in a table counts.
	leastDead = 1000
	// mostBuffers is the size of shared buffers in bytes up to which their states are counted.
	mostBuffers = 8 << 30
)

// prober samples one server through one connection.
type prober struct {
	target    engine.Target
	log       *slog.Logger
	connector *connector
	budget    engine.Budget
	conn      *conn // nil: not connected

	server    server
	refreshed time.Time
	slowAt    time.Time
	kept      []engine.Value // of the slow statements
	slowAge   float64        // of the oldest prepared transaction
	timeline  uint32         // of the standby's receiver, as last seen
	received  uint64         // of the subscriber, as last seen
	had       struct{ recovery, senders, subscriptions, vacuums, slots, idle bool }
	encrypted float64 // sessions, when all of them were last read
	searched  time.Time
	nodename  string // of this machine, if the server is on it
	waiting   bool   // sessions waited for locks at the last tick
	blocked   waits
	standbys  waits
	own       ownWork
	sent      float64 // statements of earlier connections
	sessions  engine.SessionStates
	logged    map[string]bool
}

// server is what is known about a connection's server, read again every minute.
type server struct {
	version    string
	major      int
	flavour    string
	database   string
	role       string // the agent's user
	system     string
	sees       bool // all sessions
	ioTiming   bool
	walTiming  bool
	large      bool // too many relations
	statements string
	extension  string // version of pg_stat_statements
	cache      string // schema of pg_buffercache, if its summary may be read

	maxConnections, reserved, vacuumWorkers, maxWALSize float64
	texts                                               texts
}

func newProber(t engine.Target, log *slog.Logger) (*prober, error) {
	p := &prober{target: t, log: log, logged: map[string]bool{}}
	var err error
	p.connector, err = newConnector(&p.target, &p.budget)
	return p, err
}

// Probe implements engine.Prober.
func (p *prober) Probe(ctx context.Context) (*engine.Status, error) {
	p.budget.Renew()
	known := p.conn != nil
	status, err := p.sample(ctx)
	if err = p.budget.Check(err); err != nil && known && lost(err) && ctx.Err() == nil {
		// The server was restarted, or closed an idle connection. A second attempt saves the tick.
		p.drop()
		status, err = p.sample(ctx)
		err = p.budget.Check(err)
	}
	if err != nil {
		at := p.connector.at
		p.drop()
		return nil, explain(&p.target, at, err)
	}
	return status, nil
}

// Close implements engine.Prober.
func (p *prober) Close() error {
	p.drop()
	return nil
}

func (p *prober) drop() {
	if p.conn != nil {
		p.sent += p.conn.statements
		p.conn.close()
		p.conn = nil
	}
}

func (p *prober) connect(ctx context.Context) error {
	if p.conn != nil {
		return nil
	}
	pg, err := p.connector.connect(ctx)
	if err != nil {
		return err
	}
	p.conn = &conn{connector: p.connector, pg: pg, raw: p.connector.raw, prepared: map[string]*prepared{}, refused: map[string]*pgconn.PgError{}, hides: map[string]string{}}
	p.refreshed, p.slowAt, p.searched = time.Time{}, time.Time{}, time.Time{}
	p.nodename = p.conn.nodename()
	return p.refresh(ctx)
}

// refresh identifies the server if the last identification is too old.
func (p *prober) refresh(ctx context.Context) error {
	if time.Since(p.refreshed) < refreshEvery {
		return nil
	}
	clear(p.conn.refused)
	s := server{system: p.server.system}
	s.version, _, _ = strings.Cut(p.conn.pg.ParameterStatus("server_version"), " (")
	err := p.conn.ask(ctx, []statement{
		{name: "identity", text: identity, read: func(r row) { s.read(r) }},
		{name: "system", text: system, read: func(r row) { s.system = r.text("system") }},
	})
	if err != nil {
		return err
	}
	if refusal := p.conn.refused["identity"]; refusal != nil && s.version == "" {
		return refusal
	}
	if s.major, err = versionNumber(s.version); err != nil {
		return err
	}
	if s.major < oldest {
		return fmt.Errorf("server version %s is too old: %d is the oldest that can be sampled", s.version, oldest)
	}
	s.texts = textsFor(s.major)
	if s.version != p.server.version {
		p.log.Debug("connected", "flavour", s.flavour, "version", s.version)
	}
	p.server, p.refreshed = s, time.Now()
	return nil
}

// read takes the identity of a server.
func (s *server) read(r row) {
	s.version, _, _ = strings.Cut(r.text("version"), " (")
	s.flavour = "postgresql"
	for _, flavour := range []string{"aurora", "rds", "azure", "cloudsql"} {
		if r.is(flavour) {
			s.flavour = flavour
			break
		}
	}
	s.database, s.role, s.sees = r.text("database"), r.text("role"), r.is("monitor")
	s.ioTiming, s.walTiming = r.is("track_io_timing"), r.is("track_wal_io_timing")
	size, _ := r.number("catalog_size")
	s.large = size > largestCatalog
	s.statements, s.extension = r.text("statements"), r.text("statements_version")
	if n, _ := r.number("shared_buffers"); n <= mostBuffers {
		s.cache = r.text("buffercache")
	}
	for name, to := range map[string]*float64{
		"max_connections": &s.maxConnections, "reserved": &s.reserved, "autovacuum_max_workers": &s.vacuumWorkers, "max_wal_size": &s.maxWALSize,
	} {
		*to, _ = r.number(name)
	}
}

// tick is what the statements of one tick have read.
type tick struct {
	p   *prober
	out *engine.Status

	searching            bool
	recovery, positioned bool
	lsn, replayed        uint64
	received             uint64
	hasReplayed          bool
	hasReceived          bool
	streams              bool
	streaming            bool
	paused               bool
	silence, replayAge   float64
	timeline             uint32
	synchronous          string
	commits, rollbacks   float64
	connected, others    map[string]float64 // counters of databases
	activity             sessions
	senders              map[string]*sender
	snapshots            map[string]float64
	subscriptions        []subscription
	slots                int
}

func (p *prober) sample(ctx context.Context) (*engine.Status, error) {
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	if err := p.refresh(ctx); err != nil {
		return nil, err
	}
	s := &p.server
	t := &tick{p: p, searching: time.Since(p.searched) >= searchEvery, out: &engine.Status{Version: s.version, Flavour: s.flavour, Nodename: p.nodename, Replicating: true},
		silence: math.NaN(), replayAge: math.NaN(), senders: map[string]*sender{}, snapshots: map[string]float64{}}
	if err := p.conn.ask(ctx, t.statements()); err != nil {
		return nil, err
	}
	if t.searching {
		p.searched = time.Now()
	}
	p.had.recovery, p.had.senders, p.had.subscriptions = t.recovery, len(t.senders) > 0, len(t.subscriptions) > 0
	p.had.vacuums = has(t.out, vacuumsRunning) || t.activity.processes[vacuumWorker] > 0
	p.had.slots, p.had.idle = t.slots > 0, s.sees && t.activity.mostlyIdle()
	if err := p.slow(ctx, t); err != nil {
		return nil, err
	}
	if err := p.block(ctx, t); err != nil {
		return nil, err
	}
	p.waitForStandbys(t)
	begin := time.Now()
	if err := p.conn.ping(ctx); err != nil {
		return nil, err
	}
	t.out.RoundTrip = time.Since(begin)
	t.conclude()
	return t.out, nil
}

// statements are executed at every tick. Positions come first, since they are compared with other servers'. Sessions
// come before other statements that use them: the server copies their states once in a transaction, and adds
// what they wait for at that moment.
func (t *tick) statements() []statement {
	s := &t.p.server
	all := []statement{
		{"position", position, "the role and the position of the server", t.readPosition},
		{"timeline", timeline, "", t.readTimeline},
	}
	if t.p.target.Options[engine.OptionSessions] != engine.Off {
		one := statement{"activity", activity, "sessions", t.activity.read}
		if t.p.had.idle && t.p.conn.refused["transactions"] == nil && time.Since(t.p.slowAt) < slowEvery {
			one = statement{"transactions", fewInTransactions, "sessions", t.activity.read}
		}
		all = append(all, one)
	}
	all = append(all, []statement{
		{"databases", s.texts.databases, "counters of databases", t.readDatabases},
		{"counters", s.texts.counters, "counters of WAL and checkpoints", t.readCounters},
		{"checkpointed", checkpointed, "the distance from the last checkpoint", t.readCheckpointed},
		{"slru", slru, "", t.readSLRU},
	}...)
	// What the last tick did not have is searched every few seconds.
	for _, one := range []struct {
		had bool
		statement
	}{
		{t.p.had.slots, statement{"slots", slots, "replication slots", t.readSlot}},
		{t.p.had.recovery, statement{"replay", replay, "the position of a standby", t.readReplay}},
		{t.p.had.recovery, statement{"receiver", receiver, "", t.readReceiver}},
		{t.p.had.senders, statement{"senders", senders, "standbys", t.readSender}},
		{t.p.had.subscriptions, statement{"subscriptions", s.texts.subscriptions, "subscriptions", t.readSubscription}},
		{t.p.had.vacuums, statement{"vacuums", vacuums, "", t.readVacuum}},
	} {
		if one.had || t.searching {
			all = append(all, one.statement)
		}
	}
	if s.texts.inputOutput != "" {
		all = append(all, statement{"io", s.texts.inputOutput, "pg_stat_io", t.readInputOutput})
	}
	return all
}

func (t *tick) readPosition(r row) {
	t.recovery, t.positioned = r.is("recovery"), true
	t.lsn, _ = r.lsn("lsn")
	t.synchronous = r.text("synchronous")
	if seconds, ok := r.number("uptime"); ok && seconds > 0 {
		t.out.Uptime = time.Duration(min(seconds, 1<<33) * float64(time.Second))
	}
	if s := &t.p.server; s.system != "" {
		// Copies of a database have one system identifier, and start at different times.
		t.out.ClusterIDs = append(t.out.ClusterIDs, "postgresql "+s.system)
		if started := r.text("started"); started != "" {
			t.out.ServerID = "postgresql " + s.system + " " + started
		}
	}
	if seconds, ok := r.number("delay"); ok && t.recovery {
		t.out.Delay = time.Duration(min(max(0, seconds), 1<<33) * float64(time.Second))
	}
}

func (t *tick) readTimeline(r row) {
	n, err := strconv.ParseUint(r.text("timeline"), 16, 32)
	if err == nil {
		t.timeline = uint32(n)
	}
}

// readDatabases adds up the counters of databases: of the connected one, and of all others.
func (t *tick) readDatabases(r row) {
	sum := &t.others
	if r.is("connected") {
		sum = &t.connected
	}
	if *sum == nil {
		*sum = map[string]float64{}
	}
	for i, name := range *r.columns {
		if i == 0 {
			continue
		}
		if v, ok := r.number(name); ok && v >= 0 {
			(*sum)[name] += v
		}
	}
	if n, ok := r.number("xact_commit"); ok {
		t.commits += n
	}
	if n, ok := r.number("xact_rollback"); ok {
		t.rollbacks += n
	}
}

// setDatabases sets the counters that readDatabases added up.
func (t *tick) setDatabases(which string, sum map[string]float64) {
	var read engine.Status
	databaseTable.Read(&read, func(name string) (float64, bool) {
		v, ok := sum[name]
		return v, ok
	})
	for i := range read.Values {
		v := &read.Values[i]
		t.out.Set(v.Metric, v.V, append([]string{which}, v.Labels...)...)
	}
	if t.p.server.ioTiming && sum != nil {
		t.out.Set(readTime, sum["blk_read_time"]/milli, which)
		t.out.Set(writeTime, sum["blk_write_time"]/milli, which)
	}
}

func (t *tick) readCounters(r row) {
	counterTable.Read(t.out, r.number)
	if t.p.server.walTiming {
		for metric, name := range map[*metricOf]string{walWriteTime: "wal_write_time", walSyncTime: "wal_sync_time"} {
			if v, ok := r.number(name); ok && v >= 0 {
				t.out.Set(metric, v/milli)
			}
		}
	}
	if b := r.bytes("archiving_fails"); b != nil {
		t.out.SetBool(archivingFails, string(b) == "t")
	}
}

func (t *tick) readCheckpointed(r row) {
	if v, ok := r.number("age"); ok && v >= 0 {
		t.out.Set(checkpointBytes, v)
	}
}

func (t *tick) readSLRU(r row) {
	for _, op := range []struct{ name, column string }{{"hit", "blks_hit"}, {"read", "blks_read"}, {"written", "blks_written"}} {
		if v, ok := r.number(op.column); ok && v >= 0 {
			t.out.Set(slruBlocks, v, r.text("name"), op.name)
		}
	}
}

func (t *tick) readVacuum(r row) {
	n, _ := t.out.Get(vacuumsRunning)
	setOnce(t.out, vacuumsRunning, n+1)
	name := r.text("relation")
	if _, twice := t.out.Get(vacuumProgress, name); twice {
		return
	}
	if v, ok := r.number("progress"); ok {
		t.out.Set(vacuumProgress, v, name)
	}
}

// readInputOutput reads a row of pg_stat_io. Bytes and times are added up over contexts. Rows of the WAL
// replace the counters that pg_stat_wal had before version 18.
func (t *tick) readInputOutput(r row) {
	backend, object, context := r.text("backend_type"), r.text("object"), r.text("context")
	timed := t.p.server.ioTiming
	if object == "wal" {
		timed = t.p.server.walTiming
	}
	for _, op := range []struct{ name, number, bytes, time string }{
		{"read", "reads", "read_bytes", "read_time"}, {"write", "writes", "write_bytes", "write_time"},
		{"extend", "extends", "extend_bytes", "extend_time"}, {"fsync", "fsyncs", "", "fsync_time"},
		{"hit", "hits", "", ""}, {"evict", "evictions", "", ""}, {"reuse", "reuses", "", ""},
	} {
		n, ok := r.number(op.number)
		if !ok || n <= 0 {
			continue
		}
		t.out.Set(ioOperations, n, backend, object, context, op.name)
		if v, ok := r.number(op.bytes); ok && op.bytes != "" {
			addTo(t.out, ioBytes, v, backend, object, op.name)
		}
		seconds, ok := r.number(op.time)
		if ok && timed {
			addTo(t.out, ioTime, seconds/milli, backend, object, op.name)
		}
		if object != "wal" || context != "normal" {
			continue
		}
		switch op.name {
		case "write":
			addTo(t.out, walWrites, n)
			if timed {
				addTo(t.out, walWriteTime, seconds/milli)
			}
		case "fsync":
			addTo(t.out, walSyncs, n)
			if timed {
				addTo(t.out, walSyncTime, seconds/milli)
			}
		}
	}
}

// slow reads what changes slowly, or adds what was read before.
func (p *prober) slow(ctx context.Context, t *tick) error {
	if time.Since(p.slowAt) < slowEvery {
		t.out.Values = append(t.out.Values, p.kept...)
		if p.slowAge > 0 {
			t.snapshots["prepared transaction"] = p.slowAge
		}
		return nil
	}
	p.slowAt, p.slowAge = time.Now(), 0
	before := len(t.out.Values)
	all := []statement{
		{"freeze", freeze, "freeze ages", func(r row) {
			set(t.out, freezeAge, r, "transactions")
			set(t.out, multixactAge, r, "multixacts")
		}},
		{"prepared", preparedTransactions, "prepared transactions", func(r row) {
			set(t.out, preparedCount, r, "n")
			if age, ok := r.number("snapshot"); ok {
				p.slowAge = age
				t.snapshots["prepared transaction"] = age
			}
		}},
	}
	if !p.server.large {
		all = append(all,
			statement{"tables", tables, "rows of tables", func(r row) { tableTable.Read(t.out, r.number) }},
			statement{"most_dead", mostDead, "", func(r row) {
				if name := r.text("relation"); !has(t.out, tableDead, name) { // another schema may have the same name
					dead, _ := r.number("dead")
					live, _ := r.number("live")
					if before, _ := t.out.Get(worstDead); dead >= leastDead && dead/(dead+live) > before {
						setOnce(t.out, worstDead, dead/(dead+live))
					}
					set(t.out, tableDead, r, "dead", name)
					set(t.out, tableLive, r, "live", name)
					set(t.out, tableScanned, r, "scanned", name)
				}
			}})
	}
	if p.server.cache != "" && p.server.major >= 16 {
		all = append(all, statement{"buffers", inSchema(buffers, p.server.cache), "", func(r row) { cacheTable.Read(t.out, r.number) }})
	}
	if err := p.conn.ask(ctx, all); err != nil {
		return err
	}
	p.kept = append([]engine.Value(nil), t.out.Values[before:]...)
	return nil
}

// conclude sets what needs several answers.
func (t *tick) conclude() {
	p, out := t.p, t.out
	t.concludeReplication()
	t.activity.set(t)
	t.setDatabases("connected", t.connected)
	t.setDatabases("others", t.others)
	served, undone := p.own.leaveOut(t.commits, t.rollbacks, p.conn)
	if t.commits > 0 {
		out.Set(engine.CommitsTotal, served)
		out.Set(engine.RollbacksTotal, undone)
	}
	s := &p.server
	if s.maxConnections > 0 {
		out.Set(engine.ConnectionsLimit, s.maxConnections)
		out.Set(reserved, s.reserved)
	}
	out.Set(workersLimit, s.vacuumWorkers)
	if s.maxWALSize > 0 {
		out.Set(maxWALSize, s.maxWALSize)
	}
	if !has(out, vacuumsRunning) && p.conn.refused["vacuums"] == nil {
		out.Set(vacuumsRunning, 0)
	}
	for holder, age := range t.snapshots {
		out.Set(snapshotAge, age, holder)
	}
	out.Set(engine.AgentStatementsTotal, p.sent+p.conn.statements)
	t.reportMissing()
}

// reportMissing adds what the user can't see, and logs once what a setting leaves out.
func (t *tick) reportMissing() {
	p, s := t.p, &t.p.server
	if !s.sees && (t.activity.hidden > 0 || len(t.senders) > 0) {
		t.out.Missing = append(t.out.Missing, "sessions of other users and what standbys report: GRANT pg_monitor TO "+s.role)
	}
	for name, refusal := range p.conn.refused {
		what := p.conn.hides[name]
		switch {
		case isBrief(refusal):
			t.out.Missing = append(t.out.Missing, fmt.Sprintf("%s: the server took too long, and is asked once a minute", name))
		case what != "" && refusal.Code == insufficientPrivilege:
			t.out.Missing = append(t.out.Missing, fmt.Sprintf("%s (%s): GRANT pg_monitor TO %s", what, refusal.Message, s.role))
		case what != "":
			t.out.Missing = append(t.out.Missing, fmt.Sprintf("%s: %s refuses: %s", what, s.flavour, refusal.Message))
		}
	}
	p.say(!s.ioTiming, "times of reads and writes of blocks are not known: track_io_timing is off")
	p.say(!s.walTiming, "times of writes and synchronisations of the WAL are not known: track_wal_io_timing is off")
	p.say(s.large, "the tables are not read: the database has too many relations")
}

// say logs a text once.
func (p *prober) say(when bool, text string) {
	if when && !p.logged[text] {
		p.logged[text] = true
		p.log.Info(text, "target", p.target.Name)
	}
}

// ownWork leaves the agent's own transactions out of the server's counters. A session adds its
// transactions to them up to a second later, so that the result must not fall.
type ownWork struct{ served, undone, raw float64 }

func (w *ownWork) leaveOut(commits, rollbacks float64, c *conn) (served, undone float64) {
	if commits < w.raw { // the server was restarted, or its counters were reset
		*w = ownWork{}
		c.commits, c.rollbacks = 0, 0
	}
	w.raw = commits
	w.served, w.undone = max(w.served, commits-c.commits), max(w.undone, rollbacks-c.rollbacks)
	return w.served, w.undone
}

var errNotConnected = errors.New("not connected")

func has(s *engine.Status, m *metricOf, labels ...string) bool {
	_, ok := s.Get(m, labels...)
	return ok
}

// set sets a metric to a column, if that is a number.
func set(s *engine.Status, m *metricOf, r row, column string, labels ...string) {
	if v, ok := r.number(column); ok {
		s.Set(m, v, labels...)
	}
}

// setOnce sets a metric that may be set already.
func setOnce(s *engine.Status, m *metricOf, v float64, labels ...string) {
	if old := find(s, m, labels...); old != nil {
		old.V = v
		return
	}
	s.Set(m, v, labels...)
}

// addTo adds to a metric.
func addTo(s *engine.Status, m *metricOf, v float64, labels ...string) {
	old, _ := s.Get(m, labels...)
	setOnce(s, m, old+v, labels...)
}
