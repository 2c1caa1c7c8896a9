package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// mysql9 is MySQL 9 from Debian's unstable distribution on an older Debian, without installing it:
// its packages are unpacked into a folder and run with their own C library. It is a source with
// replicas, or a group (Group Replication).
type mysql9 struct {
	*Group
	root string // of the unpacked packages
}

// mysqlFolder returns the folder for MySQL: BENCHWATCH_MYSQL9, or build/mysql9 below the
// repository's root.
func mysqlFolder() (string, error) {
	if dir := os.Getenv("BENCHWATCH_MYSQL9"); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := Repository()
	return filepath.Join(root, "build/mysql9"), err
}

// Repository returns the root of the repository that contains the working directory.
func Repository() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", errors.New("the working directory is not in the repository")
		}
	}
	return "", err
}

func newMySQL9(g *Group) (*mysql9, error) {
	root, err := mysqlFolder()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/mysqld")); err != nil {
		return nil, fmt.Errorf("MySQL is not unpacked in %s: `go run ./internal/servers/cmd unpack-mysql9` does that", root)
	}
	return &mysql9{g, root}, nil
}

// UnpackMySQL9 fetches MySQL 9 (100 MB) and unpacks it, unless that is already done. apt uses its
// own folders for this, with the system's keys. A mirror that is no longer updated is sufficient.
func UnpackMySQL9(ctx context.Context) error {
	root, err := mysqlFolder()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/mysqld")); err == nil {
		return nil
	}
	const keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if _, err := os.Stat(keys); err != nil {
		return fmt.Errorf("the keys of Debian are missing (package debian-archive-keyring): %w", err)
	}
	fresh := root + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	apt := fresh + "/apt"
	for _, dir := range []string{"/lists/partial", "/cache/partial"} {
		if err := os.MkdirAll(apt+dir, 0o755); err != nil {
			return err
		}
	}
	as, err := serverUser()
	if err != nil {
		return err
	}
	if err := run(ctx, as, "test", "-x", fresh); err != nil {
		return fmt.Errorf("the user mysql can't reach %s: set BENCHWATCH_MYSQL9 to a folder that it can reach, such as /var/tmp/mysql9", fresh)
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s sid main\n", keys, debianMirror())
	if err := errors.Join(os.WriteFile(apt+"/sources.list", []byte(source), 0o644), os.WriteFile(apt+"/status", nil, 0o644)); err != nil {
		return err
	}
	options := []string{"apt-get", "-q", "-y", "-o", "Dir::Etc::sourcelist=" + apt + "/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::State::lists=" + apt + "/lists", "-o", "Dir::State::status=" + apt + "/status", "-o", "Dir::Cache=" + apt + "/cache",
		"-o", "Dir::State::extended_states=" + apt + "/extended", "-o", "Acquire::Check-Valid-Until=false",
		"-o", "APT::Sandbox::User=" + me.Username, "-o", "Debug::NoLocking=true"}
	if err := run(ctx, nil, append(options, "update")...); err != nil {
		return err
	}
	if err := run(ctx, nil, append(options, "--no-install-recommends", "--download-only", "install", "mysql-server-core", "mysql-client-core")...); err != nil {
		return err
	}
	packages, err := filepath.Glob(apt + "/cache/archives/*.deb")
	if err != nil {
		return err
	}
	for _, deb := range packages {
		if err := run(ctx, nil, "dpkg-deb", "--extract", deb, fresh); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(apt), os.Chmod(fresh, 0o755), os.Rename(fresh, root))
}

// debianMirror returns the mirror of Debian to use.
func debianMirror() string {
	return cmp.Or(os.Getenv("BENCHWATCH_DEBIAN_MIRROR"), "http://deb.debian.org/debian")
}

func (m *mysql9) portsPerServer() int { return 2 }

// command returns the command line that starts mysqld with its own dynamic loader.
func (m *mysql9) command(n int, args ...string) ([]string, error) {
	loaders, err := filepath.Glob(m.root + "/usr/lib/*/ld-linux*.so.*")
	if more, e := filepath.Glob(m.root + "/usr/lib/ld-linux*.so.*"); e == nil {
		loaders = append(loaders, more...)
	}
	if err != nil || len(loaders) == 0 {
		return nil, fmt.Errorf("no dynamic loader in %s", m.root)
	}
	command := []string{loaders[0], "--library-path", filepath.Dir(loaders[0]), m.root + "/usr/sbin/mysqld",
		"--defaults-file=" + m.folder(n) + "/my.cnf"}
	return append(command, args...), nil
}

func (m *mysql9) config(n int) (string, error) {
	node := m.folder(n)
	lines := []string{
		"[mysqld]",
		"basedir=" + m.root + "/usr",
		"plugin-dir=" + m.root + "/usr/lib/mysql/plugin",
		"lc-messages-dir=" + m.root + "/usr/share/mysql",
		"character-sets-dir=" + m.root + "/usr/share/mysql/charsets",
		"datadir=" + node + "/data",
		"tmpdir=" + node + "/tmp",
		"socket=" + node + "/sock",
		"pid-file=" + node + "/mysqld.pid",
		"log-error=" + node + "/error.log",
		"secure-file-priv=NULL",
		"bind-address=127.0.0.1",
		fmt.Sprintf("port=%d", m.Port+n),
		"mysqlx=OFF",
		fmt.Sprintf("server-id=%d", n),
		"report-host=127.0.0.1",
		fmt.Sprintf("report-port=%d", m.Port+n),
		"skip-name-resolve=ON",
		"gtid_mode=ON",
		"enforce_gtid_consistency=ON",
		"innodb_buffer_pool_size=128M",
		"innodb_flush_log_at_trx_commit=2",
		"sync_binlog=0",
		"skip-replica-start=OFF",
	}
	if m.Kind == MySQL9Group {
		var seeds []string
		for i := 1; i <= m.N; i++ {
			seeds = append(seeds, address(m.Port+10+i))
		}
		lines = append(lines,
			"plugin-load-add=group_replication.so",
			"loose-group_replication_group_name=b3c7a1f2-5d0e-4c1b-9f6a-2e8d4b7c9a10",
			"loose-group_replication_local_address="+address(m.Port+10+n),
			"loose-group_replication_group_seeds="+strings.Join(seeds, ","),
			"loose-group_replication_start_on_boot=OFF",
			"loose-group_replication_recovery_get_public_key=ON")
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// install keeps the accounts out of the binary log, since members of a group must not have
// transactions of their own.
func (m *mysql9) install(ctx context.Context) error {
	secrets := map[string]string{}
	for _, name := range []string{"admin", "bench", "monitor", "replica"} {
		secret, err := m.Password(name)
		if err != nil {
			return err
		}
		secrets[name] = secret
	}
	as, err := serverUser()
	if err != nil {
		return err
	}
	file := filepath.Join(m.folder(1), "init.sql")
	text := fmt.Sprintf(`SET sql_log_bin = 0;
ALTER USER root@localhost IDENTIFIED BY '%s';
CREATE DATABASE sbtest;
CREATE USER bench@127.0.0.1 IDENTIFIED BY '%s';
GRANT ALL ON sbtest.* TO bench@127.0.0.1;
CREATE USER monitor@127.0.0.1 IDENTIFIED BY '%s';
GRANT REPLICATION CLIENT ON *.* TO monitor@127.0.0.1;
GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1;
CREATE USER replica@127.0.0.1 IDENTIFIED BY '%s';
GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO replica@127.0.0.1;
`, secrets["admin"], secrets["bench"], secrets["monitor"], secrets["replica"])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	if as != nil {
		if err := os.Chown(file, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	command, err := m.command(1, "--initialize-insecure", "--init-file="+file)
	if err != nil {
		return err
	}
	if err := run(ctx, as, command...); err != nil {
		log, _ := os.ReadFile(filepath.Join(m.folder(1), "error.log"))
		return fmt.Errorf("%w\n%s", err, tail(string(log), 15))
	}
	return nil
}

// forget: each server creates its own identity.
func (m *mysql9) forget() []string { return []string{"auto.cnf"} }

func (m *mysql9) startAll(ctx context.Context) error {
	for n := 1; n <= m.N; n++ {
		if err := m.launchServer(n); err != nil {
			return err
		}
	}
	for n := 1; n <= m.N; n++ {
		if err := m.waitUsable(ctx, n); err != nil {
			return err
		}
		if err := m.join(ctx, n, n == 1); err != nil {
			return err
		}
	}
	return nil
}

func (m *mysql9) launchServer(n int) error {
	command, err := m.command(n)
	if err != nil {
		return err
	}
	return m.launch(n, command...)
}

func (m *mysql9) start(ctx context.Context, n int) error {
	if err := m.launchServer(n); err != nil {
		return err
	}
	if err := m.waitUsable(ctx, n); err != nil {
		return err
	}
	return m.join(ctx, n, false)
}

// join makes a server replicate. The first member bootstraps the group.
func (m *mysql9) join(ctx context.Context, n int, bootstrap bool) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	secret, err := m.Password("replica")
	if err != nil {
		return err
	}
	switch {
	case m.Kind == MySQL9Group:
		first := ""
		if bootstrap {
			first = "SET GLOBAL group_replication_bootstrap_group = ON;"
		}
		_, err = m.Query(ctx, n, fmt.Sprintf(`CHANGE REPLICATION SOURCE TO SOURCE_USER = 'replica', SOURCE_PASSWORD = '%s'
				FOR CHANNEL 'group_replication_recovery';
			%s
			START GROUP_REPLICATION;
			SET GLOBAL group_replication_bootstrap_group = OFF`, secret, first))
	case n > 1:
		_, err = m.Query(ctx, n, fmt.Sprintf(`STOP REPLICA;
			CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'replica',
				SOURCE_PASSWORD = '%s', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1, GET_SOURCE_PUBLIC_KEY = 1;
			START REPLICA`, m.Port+1, secret))
	}
	if err != nil {
		return fmt.Errorf("server %d can't replicate: %w", n, err)
	}
	return nil
}

func (m *mysql9) usable(ctx context.Context, n int) bool { return m.answers(ctx, n) }

func (m *mysql9) describe(ctx context.Context, n int) string {
	query := `SELECT 'replica', r.SERVICE_STATE, a.SERVICE_STATE FROM performance_schema.replication_connection_status r
		JOIN performance_schema.replication_applier_status a USING (CHANNEL_NAME)`
	if m.Kind == MySQL9Group {
		query = "SELECT MEMBER_STATE, MEMBER_ROLE FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid"
	}
	rows, err := m.ask(ctx, n, query)
	switch {
	case err != nil:
		return err.Error()
	case len(rows) == 0:
		return "source"
	}
	return strings.Join(rows[0], " ")
}

func (m *mysql9) limit(_ context.Context, n, percent int) error {
	_, err := m.limitCPU(n, percent, nil)
	return err
}

func (m *mysql9) unlimit(_ context.Context, n int) error { return m.unlimitCPU(n) }

func (m *mysql9) lag(ctx context.Context, n int) error { return m.limit(ctx, n, 2) }

func (m *mysql9) unlag(ctx context.Context, n int) error { return m.unlimit(ctx, n) }
