package servers

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// mariadb is a MariaDB server alone, or a primary with replicas by GTID.
type mariadb struct{ mysqld }

// mysqld is what MariaDB and MySQL have in common.
type mysqld struct {
	*Group
	root    unpacked
	program string
	share   string // the folder with messages and system tables of an unpacked server
}

func (m *mysqld) command(n int, args ...string) []string {
	return append(m.root.command(m.program), append([]string{"--defaults-file=" + m.folder(n) + "/my.cnf"}, args...)...)
}

// baseConfig returns the configuration of a server, followed by more lines.
func (m *mysqld) baseConfig(n int, more ...string) string {
	node := m.folder(n)
	lines := []string{
		"[mysqld]",
		"datadir=" + node + "/data",
		"tmpdir=" + node + "/tmp",
		"socket=" + node + "/sock",
		"pid-file=" + node + "/mysqld.pid",
		"log-error=" + node + "/error.log",
		"bind-address=127.0.0.1",
		fmt.Sprintf("port=%d", m.Port+n),
		fmt.Sprintf("server-id=%d", n),
		"skip-name-resolve=ON",
		"innodb_buffer_pool_size=128M",
		"innodb_flush_log_at_trx_commit=2",
	}
	if m.root != "" {
		lines = append(lines, "basedir="+m.root.path("usr"), "plugin-dir="+m.root.path("usr/lib/mysql/plugin"),
			"lc-messages-dir="+m.share, "character-sets-dir="+m.share+"/charsets")
	}
	return strings.Join(append(lines, more...), "\n") + "\n"
}

// MariaDBVersions are the versions that need not be installed: those of Debian 11, 12 and 13.
var MariaDBVersions = []string{"10.5", "10.11", "11.8"}

func newMariaDB(ctx context.Context, g *Group) (*mariadb, error) {
	m := &mariadb{mysqld{Group: g, program: "usr/sbin/mariadbd"}}
	if g.Version == "" {
		return m, nil
	}
	var err error
	m.root, err = unpack(ctx, "mariadb-"+g.Version)
	m.share = m.root.path("usr/share/mariadb") // since 11
	if _, missing := os.Stat(m.share); missing != nil {
		m.share = m.root.path("usr/share/mysql")
	}
	return m, err
}

func (m *mariadb) config(n int) (string, error) {
	return m.mariadbConfig(n, "log_bin=bin", "expire_logs_days=1",
		"gtid_strict_mode=ON", "slave_parallel_threads=0", "skip_slave_start=OFF"), nil
}

// mariadbConfig is baseConfig with what all servers of MariaDB have.
func (m *mariadb) mariadbConfig(n int, more ...string) string {
	return m.baseConfig(n, append([]string{"max_connections=200", "innodb_log_file_size=64M", "binlog_format=ROW"}, more...)...)
}

func (m *mariadb) install(ctx context.Context) error {
	if err := m.installAlone(ctx); err != nil {
		return err
	}
	secret, err := m.Password("replica")
	if err != nil {
		return err
	}
	// Its copies start at the empty position.
	_, err = m.ask(ctx, 1, fmt.Sprintf(`CREATE USER replica@127.0.0.1 IDENTIFIED BY '%s';
		GRANT REPLICATION SLAVE ON *.* TO replica@127.0.0.1;
		RESET MASTER`, secret))
	if err != nil {
		return fmt.Errorf("create the replication account: %w", err)
	}
	return m.process(1).stop(30 * time.Second)
}

// installAlone creates the data of server 1, starts it with args added and creates the accounts
// bench (the benchmark) and monitor (the agent and exporters).
func (m *mariadb) installAlone(ctx context.Context, args ...string) error {
	as, err := serverUser()
	if err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	if m.root != "" {
		err = m.bootstrap(ctx, as, me.Username)
	} else {
		err = run(ctx, as, "mariadb-install-db", "--defaults-file="+m.folder(1)+"/my.cnf", "--skip-test-db",
			"--skip-name-resolve", "--auth-root-authentication-method=socket", "--auth-root-socket-user="+me.Username)
	}
	if err != nil {
		return err
	}
	if err := m.launch(1, m.command(1, args...)...); err != nil {
		return err
	}
	if err := m.waitUsable(ctx, 1); err != nil {
		return err
	}
	secrets, err := m.passwords("bench", "monitor")
	if err != nil {
		return err
	}
	// REPLICA MONITOR shows the progress of a replica; PROCESS is for mysqld_exporter. SHOW GLOBAL
	// STATUS, which is enough for Galera, needs no privilege.
	_, err = m.ask(ctx, 1, fmt.Sprintf(`CREATE DATABASE IF NOT EXISTS sbtest;
		CREATE USER IF NOT EXISTS bench@127.0.0.1 IDENTIFIED BY '%s';
		GRANT ALL ON sbtest.* TO bench@127.0.0.1;
		CREATE USER IF NOT EXISTS monitor@127.0.0.1 IDENTIFIED BY '%s' WITH MAX_USER_CONNECTIONS 50;
		GRANT PROCESS, REPLICA MONITOR, BINLOG MONITOR ON *.* TO monitor@127.0.0.1`, secrets...))
	if err != nil {
		return fmt.Errorf("create the accounts: %w", err)
	}
	return nil
}

// bootstrap creates the system tables as mariadb-install-db does, which expects programs of an
// installed server.
func (m *mariadb) bootstrap(ctx context.Context, as *syscall.Credential, admin string) error {
	text := "CREATE DATABASE mysql;\nUSE mysql;\nSET @skip_auth_anonymous = 1;\nSET @auth_root_socket = '" + admin + "';\n"
	// Until 10.x the files' names begin with mysql, and the sys schema is part of 10.6 and later.
	for _, name := range []string{"m*_system_tables.sql", "m*_performance_tables.sql", "m*_system_tables_data.sql",
		"maria_add_gis_sp_bootstrap.sql", "mariadb_sys_schema.sql"} {
		files, err := filepath.Glob(filepath.Join(m.share, name))
		if err != nil {
			return err
		}
		for _, file := range files {
			sql, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(sql)) {
				if !strings.Contains(line, "@current_hostname") {
					text += line
				}
			}
		}
	}
	file := filepath.Join(m.folder(1), "tmp", "bootstrap.sql")
	if err := writeFile(file, text, 0o644); err != nil {
		return err
	}
	defer os.Remove(file)
	command := m.command(1, "--bootstrap", "--silent-startup", "--wsrep-on=OFF", "--skip-log-bin")
	return run(ctx, as, append([]string{"sh", "-c", `file=$1; shift; exec "$@" <"$file"`, "sh", file}, command...)...)
}

func (m *mariadb) startAll(ctx context.Context) error {
	for n := 1; n <= m.N; n++ {
		if err := m.start(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (m *mariadb) start(ctx context.Context, n int) error {
	if err := m.launch(n, m.command(n)...); err != nil {
		return err
	}
	if err := m.waitUsable(ctx, n); err != nil || n == 1 {
		return err
	}
	secret, err := m.Password("replica")
	if err != nil {
		return err
	}
	_, err = m.ask(ctx, n, fmt.Sprintf(`STOP SLAVE;
		CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'replica', MASTER_PASSWORD = '%s',
			MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1;
		START SLAVE`, m.Port+1, secret))
	return err
}

func (m *mariadb) describe(ctx context.Context, n int) string {
	if n == 1 {
		return "primary"
	}
	threads, err := m.ask(ctx, n, "SELECT command, state FROM information_schema.processlist WHERE command LIKE 'Slave%'")
	if err != nil {
		return err.Error()
	}
	text := "replica"
	for _, t := range threads {
		text += fmt.Sprintf(", %s: %s", t[0], t[1])
	}
	return text
}

// appliers of a replica: it still receives while they are slow.
func (m *mariadb) appliers(n int) string {
	if n == 1 {
		return ""
	}
	return "SELECT tid FROM information_schema.processlist WHERE command IN ('Slave_SQL', 'Slave_worker')"
}
