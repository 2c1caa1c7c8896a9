package replication

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
)

// BinlogPosition is a place in the binary logs of one server, for servers that replicate without
// GTIDs (MySQL's default up to 8.4): the place up to which a source has written or a replica has
// applied. Two positions can be compared, but the transactions between them can't be counted.
type BinlogPosition struct {
	// Source identifies the server that wrote the logs.
	Source string
	File   string
	// Number is the number of the file, Offset the byte in it.
	Number, Offset uint64
	// replica: it is the place of a replica in its source's logs.
	replica bool
}

// newBinlogPosition parses a file name such as binlog.000042.
func newBinlogPosition(source, file string, offset uint64) (*BinlogPosition, bool) {
	i := strings.LastIndexByte(file, '.')
	number, err := strconv.ParseUint(file[i+1:], 10, 31)
	if i < 0 || err != nil || source == "" {
		return nil, false
	}
	return &BinlogPosition{Source: source, File: file, Number: number, Offset: offset}, true
}

// Behind implements engine.Position. It always returns false, since transactions can't be counted.
func (p *BinlogPosition) Behind(engine.Position) (uint64, bool) { return 0, false }

// Reaches implements engine.Reacher.
func (p *BinlogPosition) Reaches(goal engine.Position) bool {
	g, ok := goal.(*BinlogPosition)
	if !ok || g.Source != p.Source {
		return false
	}
	return p.Number > g.Number || p.Number == g.Number && p.Offset >= g.Offset
}

// Origin implements engine.Originator. Only a server that writes these logs itself is at its own position.
func (p *BinlogPosition) Origin() string {
	if p.replica {
		return ""
	}
	return p.Source
}

// Collides implements engine.Originator.
func (p *BinlogPosition) Collides(engine.Position) bool { return false }

// Scalar implements engine.Position.
func (p *BinlogPosition) Scalar() float64 { return float64(p.Number)*(1<<32) + float64(p.Offset) }

// String implements engine.Position.
func (p *BinlogPosition) String() string { return fmt.Sprintf("%s:%d", p.File, p.Offset) }

// readBinlogPosition sets the position of a MySQL server without GTIDs.
func readBinlogPosition(ctx context.Context, q mysql.Querier, server *mysql.Server, channels []channel, out *engine.Status) error {
	var p *BinlogPosition
	var ok bool
	switch len(channels) {
	case 0:
		if server.Variables["log_bin"] != "ON" {
			return nil
		}
		rows, err := askBinlog(ctx, q, server)
		if err != nil || len(rows) == 0 {
			return mysql.Optional(err, out,
				"REPLICATION CLIENT ON *.*: where the server is in its binary log, and so the lag of its replicas")
		}
		source := server.Variables["server_uuid"]
		if source == "" { // MySQL 5.5
			source = server.Variables["server_id"]
		}
		file := rows[0].Text("File")
		offset, known := rows[0].Uint("Position")
		p, ok = newBinlogPosition(source, file, offset)
		ok = ok && known
	default:
		for i := range channels {
			channels[i].readBinlog()
		}
		if len(channels) > 1 {
			return nil // several sources have no common position
		}
		file := channels[0].row.Text("Source_Log_File", "Master_Log_File")
		offset, known := channels[0].row.Uint("Read_Source_Log_Pos", "Read_Master_Log_Pos")
		if received, valid := newBinlogPosition(channels[0].source, file, offset); valid && known && channels[0].receiving {
			out.Received = received
		}
		if channels[0].at != nil {
			out.Position, out.Replicating = channels[0].at, true
		}
		return nil
	}
	if ok {
		out.Position, out.Replicating = p, true
	}
	return nil
}

// readBinlog reads the place in the source's logs up to which the channel has applied.
func (c *channel) readBinlog() {
	file := c.row.Text("Relay_Source_Log_File", "Relay_Master_Log_File")
	offset, known := c.row.Uint("Exec_Source_Log_Pos", "Exec_Master_Log_Pos")
	if p, ok := newBinlogPosition(c.source, file, offset); ok && known {
		p.replica = true
		c.at = p
	}
}

// askBinlog sends the statement for the server's version: MySQL 8.4 only has the new name, 8.1 and
// older only the old one.
func askBinlog(ctx context.Context, q mysql.Querier, server *mysql.Server) ([]mysql.Row, error) {
	if server.AtLeast(8, 2, 0) {
		return mysql.FirstSupported(ctx, q, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")
	}
	return mysql.FirstSupported(ctx, q, "SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
}
