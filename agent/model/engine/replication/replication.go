// Package replication reads how far a replica of the MySQL family is, over all its channels:
// MySQL's source and replica, MariaDB's with GTIDs.
//
// The sampler measures the lag between servers from their positions at the same tick, which works
// in every state: by GTID, otherwise by position in the source's binary log. The replica's own lag
// is a separate metric. It is more accurate only while the replica applies (MySQL 8 and later, see
// Applier).
package replication

import (
	"context"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// retryInterval is the interval for asking a server that was not a replica.
const retryInterval = 5 * time.Second

// Detail reads replication channels and GTIDs.
type Detail struct {
	channels []channel // as last seen
	asked    time.Time
	denied   bool // a right is missing
	applier  Applier
	replicas replicas
}

// New returns the detail for one prober.
func New() mysql.Detail { return &Detail{} }

// Needs implements mysql.Detail.
func (*Detail) Needs() mysql.Needs {
	return mysql.Needs{Variables: []string{"gtid_mode", "log_bin", "server_uuid", "server_id"}}
}

// Read implements mysql.Detail.
func (d *Detail) Read(ctx context.Context, q mysql.Querier, tick *mysql.Tick, out *engine.Status) error {
	if tick.Server.Flavour == "tidb" {
		return nil
	}
	if err := d.readChannels(ctx, q, tick.Server, out); err != nil {
		return err
	}
	replica := len(d.channels) > 0
	// A member of a cluster or group has its position in that history instead.
	alone := out.Role == ""
	if alone {
		switch {
		case replica:
			out.Role = "replica"
		case !d.denied && tick.Target.Cluster != "":
			out.Role = "primary"
		}
	}
	if alone && out.Position == nil && (replica || tick.Target.Cluster != "") {
		if err := readPosition(ctx, q, tick.Server, d.channels, out); err != nil {
			return err
		}
	}
	for i := range d.channels {
		c := &d.channels[i]
		c.report(out)
		c.join(tick.Server, &out.Membership)
		if alone {
			out.Channels = append(out.Channels, c.inform())
		}
	}
	if tick.Target.Discover {
		if err := d.replicas.read(ctx, q, tick.Server, out); err != nil {
			return err
		}
	}
	reportLag(d.channels, out)
	reportQueue(d.channels, out)
	if !replica || tick.Server.MariaDB() || !tick.Server.AtLeast(8, 0, 0) {
		return nil
	}
	return d.readApplier(ctx, q, out)
}

// readChannels reads the channels: at every tick on a replica, every few seconds on other servers,
// in case they become one.
func (d *Detail) readChannels(ctx context.Context, q mysql.Querier, server *mysql.Server, out *engine.Status) error {
	if len(d.channels) == 0 && !d.denied && time.Since(d.asked) < retryInterval {
		return nil
	}
	d.asked = time.Now()
	rows, err := askChannels(ctx, q, server)
	d.denied = mysql.Denied(err)
	switch {
	case d.denied:
		right := "REPLICATION CLIENT"
		if server.MariaDB() && server.AtLeast(10, 5, 0) {
			right = "SLAVE MONITOR"
		}
		d.channels = nil
		out.Missing = append(out.Missing, right+" ON *.*: whether the server is a replica, whether its threads run, and its lag")
		return nil
	case mysql.Unsupported(err):
		d.channels = nil
		return nil
	case err != nil:
		return err
	}
	d.channels = d.channels[:0]
	for _, row := range rows {
		c := newChannel(row)
		// Package groupreplication reads the channels of a group.
		if !strings.HasPrefix(c.name, "group_replication_") {
			d.channels = append(d.channels, c)
		}
	}
	return nil
}

// askChannels sends the statement for the server's version: the new name since MySQL 8.0.22, the
// old one before (removed in 8.4), and MariaDB's own for all connections.
func askChannels(ctx context.Context, q mysql.Querier, server *mysql.Server) ([]mysql.Row, error) {
	switch {
	case server.MariaDB():
		return mysql.FirstSupported(ctx, q, "SHOW ALL SLAVES STATUS", "SHOW SLAVE STATUS")
	case server.AtLeast(8, 0, 22):
		return mysql.FirstSupported(ctx, q, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
	}
	return mysql.FirstSupported(ctx, q, "SHOW SLAVE STATUS", "SHOW REPLICA STATUS")
}

// readApplier reads the lag in seconds from the workers' table.
func (d *Detail) readApplier(ctx context.Context, q mysql.Querier, out *engine.Status) error {
	for i := range d.channels {
		if !d.channels[i].applying || !d.channels[i].receiving {
			return nil // the table has outdated or incomplete values
		}
	}
	return d.applier.Read(ctx, q, "", out)
}
