// Package servers runs the database servers and the monitoring for tests, benchmarks and the demo:
// all on loopback, each group in its own folder, identified by pid files and stopped by process id.
// Nothing outside of that folder is installed or configured.
//
// A test attaches what it starts: if the test crashes, the kernel ends the servers. By hand (`go
// run ./internal/servers/cmd --help`), servers run until they are stopped.
package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // for database/sql
)

// Kind is the kind of servers in a group.
type Kind string

// The kinds. Server 1 is the primary or source; all others replicate from it. In a Galera cluster
// and in a group of MySQL all servers are members. The last of three servers of MongoDB is an arbiter. The fourth server of
// PostgreSQL follows the second, the fifth is a logical subscriber.
const (
	MariaDB     Kind = "mariadb"
	Galera      Kind = "galera"
	MySQL9      Kind = "mysql9"
	MySQL9Group Kind = "mysql9-group"
	MongoDB     Kind = "mongodb"
	PostgreSQL  Kind = "postgresql"
)

// Kinds are all kinds.
var Kinds = []Kind{MariaDB, Galera, MySQL9, MySQL9Group, MongoDB, PostgreSQL}

// system is what differs between the kinds.
type system interface {
	// portsPerServer returns the number of ports per server: base+N, base+10+N …
	portsPerServer() int
	// config returns the configuration file of server n.
	config(n int) (string, error)
	// install fills the data directory of server 1, accounts included.
	install(ctx context.Context) error
	// forget returns the files of server 1 that its copies must not have.
	forget() []string
	// startAll starts servers that have data; none of them is running.
	startAll(ctx context.Context) error
	// start starts a server that is down and waits until it takes part again.
	start(ctx context.Context, n int) error
	// usable reports whether a server is ready for work.
	usable(ctx context.Context, n int) bool
	// describe returns a server's state in a few words.
	describe(ctx context.Context, n int) string
	// appliers returns the statement for the kernel's numbers of the threads that apply what server n
	// receives; empty if it has none or they also serve others.
	appliers(n int) string
	// limit limits the server, or its appliers, to a share of one core.
	limit(ctx context.Context, n, percent int) error
	unlimit(ctx context.Context, n int) error
	// lag makes a server fall behind without delaying the others.
	lag(ctx context.Context, n int) error
	unlag(ctx context.Context, n int) error
}

// Options are the options for starting a group.
type Options struct {
	// Port is the base port: server N listens on 127.0.0.1:Port+N. The default is a free one.
	Port int
	// Servers is the number of servers, 1 to 9.
	Servers int
	// Attached: the kernel ends the servers when the caller dies.
	Attached bool
	// Settings are additional lines for the servers' configuration.
	Settings []string
	// Version is one of MongoDBVersions, by default the first, or one of MariaDBVersions or PostgreSQLVersions, by
	// default the installed one. Auth: MongoDB requires a login.
	Version string
	Auth    bool
}

// Group is a set of servers that replicate from each other. Its folder contains a folder n1, n2 …
// for each, the passwords of the users bench (database sbtest) and monitor in bench.password and
// monitor.password, and sysbench.cnf for sysbench --config-file.
type Group struct {
	Dir     string
	Kind    Kind
	Port    int
	N       int
	Version string // of MongoDB, MariaDB, Galera and PostgreSQL; empty: the installed one
	Auth    bool   // of MongoDB

	attached bool
	settings []string
	system   system
}

// state is the state kept in the folder.
type state struct {
	Kind     Kind   `json:"kind"`
	Port     int    `json:"port"`
	Servers  int    `json:"servers"`
	Complete bool   `json:"complete"` // the data directories are complete
	Version  string `json:"version,omitempty"`
	Auth     bool   `json:"auth,omitempty"`
}

// Start creates and starts servers in a new or empty folder, or restarts those of the folder with
// their data. It does nothing if all of them are running.
func Start(ctx context.Context, dir string, kind Kind, o Options) (_ *Group, err error) {
	if err := o.check(kind); err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	release, err := claim(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer release()
	var s state
	if err := readState(dir, &s); err != nil {
		return nil, err
	}
	if s.Kind != "" && s.Kind != kind {
		return nil, fmt.Errorf("%s holds servers of kind %q", dir, s.Kind)
	}
	g := newGroup(dir, kind, &o, &s)
	if g.system, err = newSystem(ctx, g); err != nil {
		return nil, err
	}
	if running := g.running(); running == g.N && s.Port == g.Port {
		return g, g.waitAll(ctx)
	} else if running > 0 {
		if err := g.stopAll(); err != nil {
			return nil, err
		}
	}
	if err := g.choosePorts(); err != nil {
		return nil, err
	}
	s.Kind, s.Port, s.Servers, s.Version, s.Auth = kind, g.Port, g.N, g.Version, g.Auth
	if err := writeState(dir, s); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.stopAll())
		}
	}()
	if !s.Complete {
		if err := g.create(ctx); err != nil {
			return nil, err
		}
		s.Complete = true
		if err := writeState(dir, s); err != nil {
			return nil, err
		}
	}
	if err := g.startAll(ctx); err != nil {
		return nil, err
	}
	if kind == MongoDB {
		return g, nil
	}
	return g, g.writeSysbenchConfig()
}

// newGroup returns a group with the settings of its folder, if that is complete, and of the options.
func newGroup(dir string, kind Kind, o *Options, s *state) *Group {
	g := &Group{Dir: dir, Kind: kind, Port: o.Port, N: max(o.Servers, 1),
		Version: o.Version, Auth: o.Auth, attached: o.Attached, settings: o.Settings}
	if s.Complete {
		g.N, g.Version, g.Auth = s.Servers, s.Version, s.Auth
		if g.Port == 0 {
			g.Port = s.Port
		}
	}
	return g
}

func (g *Group) startAll(ctx context.Context) error {
	for n := 1; n <= g.N; n++ {
		if err := g.configure(n); err != nil {
			return err
		}
	}
	return g.system.startAll(ctx)
}

func (o *Options) check(kind Kind) error {
	switch {
	case !slices.Contains(Kinds, kind):
		return fmt.Errorf("unknown kind %q of servers", kind)
	case o.Servers < 0 || o.Servers > 9:
		return fmt.Errorf("1 to 9 servers expected, not %d", o.Servers)
	case o.Port != 0 && (o.Port < 1000 || o.Port > 65000):
		return fmt.Errorf("a base port between 1000 and 65000 expected, not %d", o.Port)
	}
	return nil
}

// choosePorts takes free ports, or makes sure that the given ones are free.
func (g *Group) choosePorts() (err error) {
	if g.Port == 0 {
		if g.Port, err = FreePorts(10*(g.system.portsPerServer()-1) + g.N); err != nil {
			return err
		}
	}
	for i := range g.system.portsPerServer() {
		if port := takenPort(g.Port+10*i, g.N); port != 0 {
			return fmt.Errorf("port %d is taken", port)
		}
	}
	return nil
}

// Open returns the group in a folder.
func Open(dir string) (*Group, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var s state
	if err := readState(dir, &s); err != nil {
		return nil, err
	}
	if !slices.Contains(Kinds, s.Kind) {
		return nil, fmt.Errorf("%s holds no database servers", dir)
	}
	g := &Group{Dir: dir, Kind: s.Kind, Port: s.Port, N: s.Servers, Version: s.Version, Auth: s.Auth}
	g.system, err = newSystem(context.Background(), g)
	return g, err
}

func newSystem(ctx context.Context, g *Group) (system, error) {
	switch g.Kind {
	case MariaDB:
		return newMariaDB(ctx, g)
	case Galera:
		return newGalera(ctx, g)
	case MySQL9, MySQL9Group:
		return newMySQL9(ctx, g)
	case MongoDB:
		return newMongoDB(ctx, g)
	case PostgreSQL:
		return newPostgreSQL(ctx, g)
	}
	return nil, fmt.Errorf("unknown kind %q of servers", g.Kind)
}

// create creates the data of server 1 and copies it to the others. Copies start at the same
// position, so none of them needs a transfer.
func (g *Group) create(ctx context.Context) error {
	all := g.N
	g.N = 1 // a cluster of one while its data is created
	err := errors.Join(g.makeFolder(ctx, 1), g.configure(1))
	if err == nil {
		err = g.system.install(ctx)
	}
	g.N = all
	if err != nil {
		return err
	}
	for _, name := range g.system.forget() {
		if err := os.RemoveAll(filepath.Join(g.folder(1), "data", name)); err != nil {
			return err
		}
	}
	for n := 2; n <= g.N; n++ {
		if err := g.makeFolder(ctx, n); err != nil {
			return err
		}
		if err := run(ctx, nil, "cp", "-a", "--reflink=auto", g.folder(1)+"/data/.", g.folder(n)+"/data/"); err != nil {
			return err
		}
	}
	return nil
}

// folder returns the folder of server n.
func (g *Group) folder(n int) string { return filepath.Join(g.Dir, fmt.Sprintf("n%d", n)) }

// Address returns the address of server n.
func (g *Group) Address(n int) string { return address(g.Port + n) }

// PID returns the process id of server n, or 0 if it is down.
func (g *Group) PID(n int) int { return g.process(n).pid() }

func (g *Group) process(n int) process { return process(filepath.Join(g.folder(n), "pid")) }

// Password returns the password of the user bench or monitor, or of another user of this kind.
func (g *Group) Password(user string) (string, error) { return password(g.Dir, user) }

// passwords returns the passwords of several users, as arguments of a format.
func (g *Group) passwords(users ...string) (all []any, err error) {
	for _, user := range users {
		secret, failed := g.Password(user)
		all, err = append(all, secret), errors.Join(err, failed)
	}
	return all, err
}

// serverUser is the unprivileged user mysql if the caller is root, otherwise nil: the caller.
var serverUser = sync.OnceValues(func() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("mysql")
	if err != nil {
		return nil, fmt.Errorf("%w; the package mariadb-server makes it", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
})

// give makes a user the owner of files; nil: the caller, who already is.
func give(as *syscall.Credential, files ...string) (err error) {
	for _, file := range files {
		if as != nil {
			err = errors.Join(err, os.Chown(file, int(as.Uid), int(as.Gid)))
		}
	}
	return err
}

// user is the user of the servers; nil: the caller. mongod accepts any, and its program is in the
// caller's cache.
func (g *Group) user() (*syscall.Credential, error) {
	if g.Kind == MongoDB {
		return nil, nil
	}
	return serverUser()
}

// makeFolder creates an empty folder for server n, owned by the servers' user.
func (g *Group) makeFolder(ctx context.Context, n int) error {
	as, err := g.user()
	if err != nil {
		return err
	}
	dir := g.folder(n)
	if len(dir) > 95 {
		return fmt.Errorf("%s: the path is too long for a Unix socket", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, path := range []string{dir, dir + "/data", dir + "/tmp"} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		if err := give(as, path); err != nil {
			return err
		}
	}
	if err := run(ctx, as, "test", "-w", dir+"/data"); err != nil {
		return fmt.Errorf("the user mysql can't reach %s: a folder above it is closed (chmod 711 opens it for passing through)", dir)
	}
	return nil
}

func (g *Group) configure(n int) error {
	text, err := g.system.config(n)
	if err != nil {
		return err
	}
	for _, line := range g.settings {
		text += line + "\n"
	}
	return writeFile(g.configFile(n), text, 0o644)
}

func (g *Group) configFile(n int) string {
	switch g.Kind {
	case MongoDB:
		return filepath.Join(g.folder(n), "mongod.conf")
	case PostgreSQL:
		return filepath.Join(g.folder(n), "postgresql.conf")
	}
	return filepath.Join(g.folder(n), "my.cnf")
}

// launch starts the server program of server n without waiting for it.
func (g *Group) launch(n int, args ...string) error {
	as, err := g.user()
	if err != nil {
		return err
	}
	log := filepath.Join(g.folder(n), "error.log")
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	f.Close()
	p := program{args: args, log: log, user: as, attached: g.attached}
	if as != nil {
		p.env = []string{"HOME=/nonexistent"}
	}
	if err := give(as, log); err != nil {
		return err
	}
	return g.process(n).start(p)
}

// wait waits until a check of a server succeeds.
func (g *Group) wait(ctx context.Context, n int, ready func(context.Context) bool) error {
	if err := g.process(n).await(ctx, startLimit, filepath.Join(g.folder(n), "error.log"), ready); err != nil {
		return fmt.Errorf("server %d: %w", n, err)
	}
	return nil
}

func (g *Group) waitUsable(ctx context.Context, n int) error {
	return g.wait(ctx, n, func(ctx context.Context) bool { return g.system.usable(ctx, n) })
}

func (g *Group) waitAll(ctx context.Context) error {
	for n := 1; n <= g.N; n++ {
		if err := g.waitUsable(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) running() (count int) {
	for n := 1; n <= g.N; n++ {
		if g.PID(n) != 0 {
			count++
		}
	}
	return count
}

// Stop stops all servers and keeps their data.
func (g *Group) Stop(ctx context.Context) error {
	release, err := lock(ctx, g.Dir)
	if err != nil {
		return err
	}
	defer release()
	return g.stopAll()
}

// stopAll stops server 1, which serves the clients, last, since members leaving a cluster delay a
// writer.
func (g *Group) stopAll() (err error) {
	for n := g.N; n >= 1; n-- {
		err = errors.Join(err, g.stop(n))
	}
	return err
}

func (g *Group) stop(n int) error {
	return errors.Join(
		g.reader(n).stop(2*time.Second),
		g.process(n).stop(20*time.Second),
		g.forgetLimit(n))
}

// reader is the client that holds a read lock on server n (see lag).
func (g *Group) reader(n int) process { return process(filepath.Join(g.folder(n), "lock.pid")) }

// Status returns a line for each server.
func (g *Group) Status(ctx context.Context) []string {
	lines := make([]string, g.N)
	for i := range lines {
		n := i + 1
		p := g.process(n)
		switch pid := p.pid(); {
		case pid == 0:
			lines[i] = fmt.Sprintf("n%d down", n)
		case p.stopped():
			lines[i] = fmt.Sprintf("n%d pid %d %s stopped by a signal", n, pid, g.Address(n))
		default:
			lines[i] = fmt.Sprintf("n%d pid %d %s %s", n, pid, g.Address(n), g.system.describe(ctx, n))
		}
	}
	return lines
}

// Kill ends server n like a crash.
func (g *Group) Kill(n int) error {
	if err := g.process(n).signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("server %d: %w", n, err)
	}
	if !g.process(n).waitEnd(10 * time.Second) {
		return fmt.Errorf("server %d does not end", n)
	}
	return nil
}

// Pause suspends server n like a debugger; Resume continues it.
func (g *Group) Pause(n int) error { return g.process(n).signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (g *Group) Resume(n int) error { return g.process(n).signal(syscall.SIGCONT) }

// Rejoin starts server n, which is down, and waits until it takes part again. It does not wait
// until the server has received everything that it missed.
func (g *Group) Rejoin(ctx context.Context, n int) error {
	if g.PID(n) != 0 {
		return fmt.Errorf("server %d is running", n)
	}
	if err := g.stop(n); err != nil { // its remains
		return err
	}
	return g.system.start(ctx, n)
}

// Limit limits server n, or its appliers if it has any, to a percentage of one core.
func (g *Group) Limit(ctx context.Context, n, percent int) error {
	if percent < 1 || percent > 99 {
		return fmt.Errorf("1 to 99 percent of a core expected, not %d", percent)
	}
	return g.system.limit(ctx, n, percent)
}

// Unlimit reverses Limit.
func (g *Group) Unlimit(ctx context.Context, n int) error { return g.system.unlimit(ctx, n) }

// Lag makes a server fall behind without delaying the others.
func (g *Group) Lag(ctx context.Context, n int) error { return g.system.lag(ctx, n) }

// Unlag reverses Lag.
func (g *Group) Unlag(ctx context.Context, n int) error { return g.system.unlag(ctx, n) }

// SetFlowControlLimit sets how many write sets a Galera node queues before it requests a pause
// (gcs.fc_limit).
func (g *Group) SetFlowControlLimit(ctx context.Context, n, limit int) error {
	c, ok := g.system.(*galera)
	if !ok {
		return fmt.Errorf("the servers in %s are not a Galera cluster", g.Dir)
	}
	return c.setFlowControlLimit(ctx, n, limit)
}

// Admin opens connections of the administrator to server n.
func (g *Group) Admin(n int) (*sql.DB, error) {
	if g.Kind == MongoDB || g.Kind == PostgreSQL {
		return nil, fmt.Errorf("%s has no such connections", g.Kind)
	}
	account, err := adminAccount(g)
	if err != nil {
		return nil, err
	}
	return sql.Open("mysql", fmt.Sprintf("%s@unix(%s/sock)/?timeout=3s&multiStatements=true", account, g.folder(n)))
}

// adminAccount returns root with a password or, for MariaDB, the caller: the server recognises the
// user by the socket, so the administrator has no password.
func adminAccount(g *Group) (string, error) {
	if g.Kind == MySQL9 || g.Kind == MySQL9Group {
		secret, err := g.Password("admin")
		return "root:" + secret, err
	}
	me, err := user.Current()
	if err != nil {
		return "", err
	}
	return me.Username, nil
}

// Query runs statements on server n as administrator and returns the rows of all results. A
// suspended server does not answer, so the context then needs a deadline.
func (g *Group) Query(ctx context.Context, n int, statements string) (rows [][]string, err error) {
	if p, ok := g.system.(*postgresql); ok {
		return p.query(ctx, n, "postgres", statements)
	}
	db, err := g.Admin(n)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found, err := db.QueryContext(ctx, statements)
	if err != nil {
		return nil, fmt.Errorf("server %d: %w", n, err)
	}
	defer found.Close()
	for {
		columns, err := found.Columns()
		if err != nil {
			return nil, err
		}
		for found.Next() {
			row, cells := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range row {
				cells[i] = &row[i]
			}
			if err := found.Scan(cells...); err != nil {
				return nil, err
			}
			texts := make([]string, len(row))
			for i, cell := range row {
				texts[i] = cell.String
				if !cell.Valid {
					texts[i] = "NULL"
				}
			}
			rows = append(rows, texts)
		}
		if !found.NextResultSet() {
			return rows, found.Err()
		}
	}
}

// ask is Query with a time limit, for a server that may not answer.
func (g *Group) ask(ctx context.Context, n int, statements string) ([][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return g.Query(ctx, n, statements)
}

// What most kinds of servers have in common.

func (g *Group) portsPerServer() int { return 1 }

func (g *Group) forget() []string { return nil }

func (g *Group) usable(ctx context.Context, n int) bool {
	_, err := g.ask(ctx, n, "SELECT 1")
	return err == nil
}

func (g *Group) limit(ctx context.Context, n, percent int) error {
	_, err := g.limitAppliers(ctx, n, percent)
	return err
}

func (g *Group) unlimit(_ context.Context, n int) error { return g.unlimitCPU(n) }

func (g *Group) lag(ctx context.Context, n int) error { return g.limit(ctx, n, 2) }

func (g *Group) unlag(_ context.Context, n int) error { return g.unlimitCPU(n) }

// writeSysbenchConfig writes sysbench.cnf, since sysbench reads a password from a file only as part
// of its whole configuration.
func (g *Group) writeSysbenchConfig() error {
	secret, err := g.Password("bench")
	if err != nil {
		return err
	}
	if g.Kind == PostgreSQL {
		lines := []string{"db-driver=pgsql", "pgsql-host=127.0.0.1", fmt.Sprintf("pgsql-port=%d", g.Port+1),
			"pgsql-user=bench", "pgsql-password=" + secret, "pgsql-db=sbtest", ""}
		return writeFile(filepath.Join(g.Dir, "sysbench.cnf"), strings.Join(lines, "\n"), 0o600)
	}
	lines := []string{"db-driver=mysql", "mysql-host=127.0.0.1", fmt.Sprintf("mysql-port=%d", g.Port+1),
		"mysql-user=bench", "mysql-password=" + secret, "mysql-db=sbtest", ""}
	return writeFile(filepath.Join(g.Dir, "sysbench.cnf"), strings.Join(lines, "\n"), 0o600)
}
