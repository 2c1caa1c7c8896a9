package replication

import (
	"context"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/gtid"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// The statements for positions.
const (
	askMariaDBPosition = "SELECT @@GLOBAL.gtid_binlog_pos AS gtid_binlog_pos, @@GLOBAL.gtid_slave_pos AS gtid_slave_pos, @@GLOBAL.server_id AS server_id"
	askMySQLPosition   = "SELECT @@GLOBAL.gtid_executed AS gtid_executed, @@GLOBAL.server_uuid AS server_uuid"
)

// readPosition sets the server's position, by GTID if possible.
func readPosition(ctx context.Context, q mysql.Querier, server *mysql.Server, channels []channel, out *engine.Status) error {
	var p *gtid.Position
	var err error
	switch {
	case server.MariaDB():
		p, err = mariaDBPosition(ctx, q, channels, server.Variables["log_bin"])
	case server.Variables["gtid_mode"] == "ON":
		p, err = mySQLPosition(ctx, q, len(channels) > 0)
	default:
		return readBinlogPosition(ctx, q, server, channels, out)
	}
	if mysql.Refused(err) {
		return nil // a version without GTIDs
	}
	if err != nil || p == nil {
		return err
	}
	for i := range channels {
		p.Sources = append(p.Sources, channels[i].source)
		channels[i].at = p
	}
	out.Position, out.Replicating = p, true
	if len(channels) == 1 {
		if set, ok := channels[0].received(); ok {
			out.Received = p.With(set)
		}
	}
	return nil
}

// mySQLPosition reads gtid_executed.
func mySQLPosition(ctx context.Context, q mysql.Querier, replica bool) (*gtid.Position, error) {
	rows, err := q.Rows(ctx, askMySQLPosition)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	text, ok := rows[0].Lookup("gtid_executed")
	if !ok {
		return nil, nil
	}
	set, err := gtid.ParseSet(text)
	if err != nil {
		return nil, nil // notation of a later version
	}
	p := &gtid.Position{Kind: gtid.MySQL, Executed: set, Text: text}
	p.Server = rows[0].Text("server_uuid")
	if uuid := strings.ToLower(p.Server); replica && uuid != "" {
		p.Executed, p.Own = set.Without(uuid), set.Only(uuid)
	}
	return p, nil
}

// mariaDBPosition reads gtid_slave_pos on a replica and the end of the binary log on other servers.
// On a replica the binary log counts only for domains that it does not replicate.
func mariaDBPosition(ctx context.Context, q mysql.Querier, channels []channel, logBin string) (*gtid.Position, error) {
	rows, err := q.Rows(ctx, askMariaDBPosition)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	written, ok1 := rows[0].Lookup("gtid_binlog_pos")
	applied, ok2 := rows[0].Lookup("gtid_slave_pos")
	binlog, err1 := gtid.ParsePosition(written)
	slave, err2 := gtid.ParsePosition(applied)
	if !ok1 || !ok2 || err1 != nil || err2 != nil {
		return nil, nil
	}
	p := &gtid.Position{Kind: gtid.MariaDB}
	p.Server = rows[0].Text("server_id")
	if len(channels) > 0 {
		p.Executed, p.Own, p.Text = slave, gtid.Set{}, applied
		for domain, intervals := range binlog {
			if len(slave[domain]) == 0 {
				p.Own[domain] = intervals
			}
		}
		return p, nil
	}
	p.Executed, p.Text = binlog, written
	for domain, intervals := range slave {
		if binlog.Missing(gtid.Set{domain: intervals}) > 0 {
			binlog[domain] = intervals
		}
	}
	if written == "" {
		p.Text = applied
	}
	if len(p.Executed) == 0 && logBin != "ON" {
		return nil, nil // no binary log: nothing to compare
	}
	return p, nil
}
