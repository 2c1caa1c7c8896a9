package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mysql9 is MySQL 9 of Debian's unstable distribution: a source with replicas, or a group (Group
// Replication).
type mysql9 struct{ mysqld }

func newMySQL9(ctx context.Context, g *Group) (*mysql9, error) {
	root, err := unpack(ctx, "mysql9")
	return &mysql9{mysqld{g, root, "usr/sbin/mysqld", root.path("usr/share/mysql")}}, err
}

func (m *mysql9) portsPerServer() int { return 2 }

func (m *mysql9) config(n int) (string, error) {
	lines := []string{
		"secure-file-priv=NULL",
		"mysqlx=OFF",
		"report-host=127.0.0.1",
		fmt.Sprintf("report-port=%d", m.Port+n),
		"gtid_mode=ON",
		"enforce_gtid_consistency=ON",
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
	return m.baseConfig(n, lines...), nil
}

// install keeps the accounts out of the binary log, since members of a group must not have
// transactions of their own.
func (m *mysql9) install(ctx context.Context) error {
	secrets, err := m.passwords("admin", "bench", "monitor", "replica")
	if err != nil {
		return err
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
`, secrets...)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	if err := give(as, file); err != nil {
		return err
	}
	if err := run(ctx, as, m.command(1, "--initialize-insecure", "--init-file="+file)...); err != nil {
		log, _ := os.ReadFile(filepath.Join(m.folder(1), "error.log"))
		return fmt.Errorf("%w\n%s", err, tail(string(log), 15))
	}
	return nil
}

// forget: each server creates its own identity.
func (m *mysql9) forget() []string { return []string{"auto.cnf"} }

func (m *mysql9) startAll(ctx context.Context) error {
	for n := 1; n <= m.N; n++ {
		if err := m.launch(n, m.command(n)...); err != nil {
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

func (m *mysql9) start(ctx context.Context, n int) error {
	if err := m.launch(n, m.command(n)...); err != nil {
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

// appliers of a replica or member: it still receives and answers while they are slow.
func (m *mysql9) appliers(int) string {
	return `SELECT THREAD_OS_ID FROM performance_schema.threads
		WHERE NAME IN ('thread/sql/replica_sql', 'thread/sql/replica_worker', 'thread/group_rpl/THD_applier_module_receiver')`
}
