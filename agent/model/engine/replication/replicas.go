package replication

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// join adds the source to the membership of its replica. MariaDB's replica knows only the source's
// number, which other servers may have as well.
func (c *channel) join(server *mysql.Server, out *engine.Membership) {
	m := engine.Member{}
	if !server.MariaDB() && c.source != "" {
		m.ID = c.source
	}
	host, port := c.row.Text("Source_Host", "Master_Host"), c.row.Text("Source_Port", "Master_Port")
	if host != "" && port != "" && port != "0" {
		m.Address = net.JoinHostPort(host, port)
	}
	if m != (engine.Member{}) {
		out.Members = append(out.Members, m)
	}
}

// replicas are the servers that replicate from this one.
type replicas struct {
	next time.Time // when to ask again
	list []engine.Member
}

// missingReplicas is logged once if the user may not see them.
const missingReplicas = "REPLICATION SLAVE ON *.* (MariaDB: REPLICATION MASTER ADMIN): which replicas the server has"

// replicaInterval is the interval for reading the replicas.
const replicaInterval = 10 * time.Second

// read adds the replicas that are connected now. A replica that does not report its own host is at the
// address from which it connected, if only one host does.
func (r *replicas) read(ctx context.Context, q mysql.Querier, server *mysql.Server, out *engine.Status) error {
	if now := time.Now(); !now.Before(r.next) {
		r.next = now.Add(replicaInterval)
		rows, err := askReplicas(ctx, q, server)
		if err := mysql.Optional(err, out, missingReplicas); err != nil {
			return err
		}
		if r.list, err = readReplicas(ctx, q, rows); err != nil {
			return err
		}
	}
	out.Members = append(out.Members, r.list...)
	return nil
}

// askReplicas sends the statement for the server's version: MySQL has the new name since 8.0.22, MariaDB since 10.5.
func askReplicas(ctx context.Context, q mysql.Querier, server *mysql.Server) ([]mysql.Row, error) {
	if server.MariaDB() {
		return mysql.FirstSupported(ctx, q, "SHOW REPLICA HOSTS", "SHOW SLAVE HOSTS")
	}
	return mysql.FirstSupported(ctx, q, "SHOW REPLICAS", "SHOW SLAVE HOSTS")
}

const askDumps = "SELECT HOST FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'"

func readReplicas(ctx context.Context, q mysql.Querier, rows []mysql.Row) (list []engine.Member, err error) {
	dumps := map[string]bool{}
	for _, row := range rows {
		if row.Text("Host") != "" {
			continue
		}
		connected, err := q.Rows(ctx, askDumps)
		if err != nil && !mysql.Refused(err) {
			return nil, err
		}
		for _, c := range connected {
			if host, _, err := net.SplitHostPort(c.Text("HOST")); err == nil {
				dumps[host] = true
			}
		}
		break
	}
	for _, row := range rows {
		m := engine.Member{ID: row.Text("Replica_UUID", "Slave_UUID")}
		host, port := row.Text("Host"), row.Text("Port")
		if host == "" && len(dumps) == 1 {
			host = slices.Collect(maps.Keys(dumps))[0]
		}
		if host != "" && port != "" && port != "0" {
			m.Address = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		if m != (engine.Member{}) {
			list = append(list, m)
		}
	}
	return list, nil
}
