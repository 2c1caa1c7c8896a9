package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// galera is a cluster of MariaDB servers that replicate synchronously.
type galera struct {
	mariadb
	provider string // Galera's library
}

func newGalera(ctx context.Context, g *Group) (*galera, error) {
	server, err := newMariaDB(ctx, g)
	if err != nil {
		return nil, err
	}
	// On Debian the library's folder contains the architecture.
	for _, pattern := range []string{"usr/lib/galera", "usr/lib/*/galera", "usr/lib64/galera-4"} {
		found, err := filepath.Glob(filepath.Join("/", server.root.path(pattern), "libgalera_smm.so"))
		if err == nil && len(found) > 0 {
			return &galera{*server, found[0]}, nil
		}
	}
	return nil, errors.New("the library of Galera is not installed (Debian package galera-4); scripts/packages.sh installs it")
}

func (c *galera) portsPerServer() int { return 4 }

// config returns my.cnf. All nodes share one host, so every port differs. The benchmark's clients
// use node 1, and a donor commits nothing during rsync, so other nodes are preferred as donors.
func (c *galera) config(n int) (string, error) {
	var peers []string
	for i := 1; i <= c.N; i++ {
		peers = append(peers, address(c.Port+10+i))
	}
	return c.mariadbConfig(n, "innodb_autoinc_lock_mode=2",
		"wsrep_on=ON", "wsrep_provider="+c.provider, "wsrep_cluster_name=benchwatch",
		"wsrep_cluster_address=gcomm://"+strings.Join(peers, ","),
		fmt.Sprintf("wsrep_node_name=n%d", n), "wsrep_node_address=127.0.0.1", "wsrep_node_incoming_address="+c.Address(n),
		fmt.Sprintf("wsrep_provider_options=base_port=%d;gmcast.listen_addr=tcp://%s;ist.recv_addr=%s;gcache.size=128M",
			c.Port+10+n, address(c.Port+10+n), address(c.Port+20+n)),
		"wsrep_sst_method=rsync", "wsrep_sst_receive_address="+address(c.Port+30+n),
		"wsrep_sst_donor=n2,n3,", "wsrep_slave_threads=1"), nil
}

func (c *galera) install(ctx context.Context) error {
	if err := c.installAlone(ctx, "--wsrep-new-cluster"); err != nil {
		return err
	}
	return c.process(1).stop(30 * time.Second)
}

func (c *galera) forget() []string { return []string{"galera.cache", "gvwstate.dat"} }

// position is the position of a node's data in the cluster's history.
type position struct {
	uuid  string
	seqno int64 // -1: unknown
}

func (p position) argument() string {
	return fmt.Sprintf("--wsrep_start_position=%s:%d", p.uuid, p.seqno)
}

var recoveredPosition = regexp.MustCompile(`WSREP: Recovered position:? *([0-9a-f-]{36}):(\d+)`)

// recovered returns the position of a node that is down, according to InnoDB.
func (c *galera) recovered(ctx context.Context, n int) position {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	as, err := serverUser()
	if err != nil {
		return position{seqno: -1}
	}
	log := filepath.Join(c.folder(n), "recover.log")
	defer os.Remove(log)
	// Only the log has the result, not the exit status.
	_ = run(ctx, as, c.command(n, "--log-error="+log, "--wsrep-recover")...)
	text, _ := os.ReadFile(log)
	found := recoveredPosition.FindAllSubmatch(text, -1)
	if len(found) == 0 {
		return position{seqno: -1}
	}
	last := found[len(found)-1]
	seqno, err := strconv.ParseInt(string(last[2]), 10, 64)
	if err != nil {
		return position{seqno: -1}
	}
	return position{string(last[1]), seqno}
}

// startAll starts the cluster with the node whose data is the most advanced.
func (c *galera) startAll(ctx context.Context) error {
	positions := make([]position, c.N+1)
	var reading sync.WaitGroup
	for n := 1; n <= c.N; n++ {
		reading.Go(func() { positions[n] = c.recovered(ctx, n) })
	}
	reading.Wait()
	best := 1
	for n := 2; n <= c.N; n++ {
		if positions[n].seqno > positions[best].seqno {
			best = n
		}
	}
	if positions[best].seqno < 0 {
		return fmt.Errorf("no node in %s has a position to start from; remove the folder to begin anew", c.Dir)
	}
	if err := c.allowBootstrap(best); err != nil {
		return err
	}
	if err := c.launch(best, c.command(best, "--wsrep-new-cluster", positions[best].argument())...); err != nil {
		return err
	}
	if err := c.waitUsable(ctx, best); err != nil {
		return err
	}
	for n := 1; n <= c.N; n++ {
		if n != best {
			if err := c.startAt(ctx, n, positions[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

var safeToBootstrap = regexp.MustCompile(`(?m)^safe_to_bootstrap:.*`)

// allowBootstrap lets any node start the cluster. By default Galera only accepts the node that was
// stopped last.
func (c *galera) allowBootstrap(n int) error {
	file := filepath.Join(c.folder(n), "data", "grastate.dat")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, safeToBootstrap.ReplaceAll(text, []byte("safe_to_bootstrap: 1")), 0o660)
}

func (c *galera) start(ctx context.Context, n int) error {
	return c.startAt(ctx, n, c.recovered(ctx, n))
}

// startAt starts a node. With its position, a node that was just killed only needs what it missed
// (IST); otherwise it receives everything (SST).
func (c *galera) startAt(ctx context.Context, n int, p position) error {
	command := c.command(n)
	if p.seqno >= 0 {
		command = append(command, p.argument())
	}
	if err := c.launch(n, command...); err != nil {
		return err
	}
	return c.waitUsable(ctx, n)
}

// status returns variables of SHOW GLOBAL STATUS by name.
func (c *galera) status(ctx context.Context, n int) map[string]string {
	rows, err := c.ask(ctx, n, "SHOW GLOBAL STATUS LIKE 'wsrep_%'")
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for _, row := range rows {
		found[row[0]] = row[1]
	}
	return found
}

const synced = "4" // wsrep_local_state

func (c *galera) usable(ctx context.Context, n int) bool {
	s := c.status(ctx, n)
	return s["wsrep_cluster_status"] == "Primary" && s["wsrep_local_state"] == synced && s["wsrep_ready"] == "ON"
}

func (c *galera) describe(ctx context.Context, n int) string {
	s := c.status(ctx, n)
	return fmt.Sprintf("%s size %s seqno %s", s["wsrep_local_state_comment"], s["wsrep_cluster_size"], s["wsrep_last_committed"])
}

// limit slows down a node's appliers: its queue grows, and its flow control then pauses the whole
// cluster. Without cgroups the whole server is slow, and the group's messages wait before they
// reach the queue, so the queue length at which the node requests a pause is lowered as well.
func (c *galera) limit(ctx context.Context, n, percent int) error {
	precise, err := c.limitAppliers(ctx, n, percent)
	if err != nil || precise {
		return err
	}
	return c.setFlowControlLimit(ctx, n, 1)
}

func (c *galera) appliers(int) string {
	return "SELECT tid FROM information_schema.processlist WHERE user = 'system user'"
}

func (c *galera) unlimit(ctx context.Context, n int) error {
	return errors.Join(c.unlimitCPU(n), c.setFlowControlLimit(ctx, n, 16))
}

const readLock = "FLUSH TABLES WITH READ LOCK; SELECT SLEEP(600)"

// lag slows down the appliers of a node that does not request pauses. If single threads can't be
// slowed down, a client with a read lock stops them; the node then appears as desynced.
func (c *galera) lag(ctx context.Context, n int) error {
	if err := c.setFlowControlLimit(ctx, n, 100_000); err != nil {
		return err
	}
	precise, err := c.limitAppliers(ctx, n, 2)
	if err != nil || precise {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	return errors.Join(c.unlimitCPU(n), c.reader(n).start(program{
		args:     []string{"mariadb", "--no-defaults", "--socket=" + c.folder(n) + "/sock", "--user=" + me.Username, "-e", readLock},
		attached: c.attached,
	}))
}

func (c *galera) unlag(ctx context.Context, n int) error {
	if err := c.unlimit(ctx, n); err != nil {
		return err
	}
	sleeping, err := c.ask(ctx, n, "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(600)'")
	if err != nil {
		return err
	}
	for _, row := range sleeping {
		if _, err := c.ask(ctx, n, "KILL "+row[0]); err != nil {
			return err
		}
	}
	return c.reader(n).stop(5 * time.Second)
}

// setFlowControlLimit supports both forms of Galera's options: if MariaDB 11 loads the provider's
// plugin, each option is a variable and the list is read-only.
func (c *galera) setFlowControlLimit(ctx context.Context, n, limit int) error {
	_, err := c.ask(ctx, n, fmt.Sprintf(`SET @statement = (
		SELECT IF(COUNT(*) > 0, 'SET GLOBAL wsrep_provider_gcs_fc_limit = %[1]d', 'SET GLOBAL wsrep_provider_options = ''gcs.fc_limit=%[1]d''')
		FROM information_schema.system_variables WHERE variable_name = 'wsrep_provider_gcs_fc_limit');
		EXECUTE IMMEDIATE @statement`, limit))
	if err != nil {
		return fmt.Errorf("set gcs.fc_limit of node %d: %w", n, err)
	}
	return nil
}
