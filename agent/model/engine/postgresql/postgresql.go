// Package postgresql samples PostgreSQL 14 to 18: primaries, standbys, publishers and subscribers of
// logical replication.
//
// A tick is one round trip in one transaction, in which each statement reads one of the server's
// views. A statement that the server refuses (a missing right, a view that a derivative lacks) is left
// out for a minute. No statement waits for a lock, reads pg_locks, or reads all relations of a large
// database.
package postgresql

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Engine is PostgreSQL.
var Engine = &engine.Engine{
	Name: "postgresql", DefaultPort: "5432", DatabaseOption: OptionDatabase, Switch: toggle, Socket: socket, Open: open,
}

// socket returns where client libraries connect without a host. A password is for the network: sockets recognise the
// user.
func socket(port string, password bool) []string {
	if password {
		return nil
	}
	return []string{"/run/postgresql/.s.PGSQL." + port, "/tmp/.s.PGSQL." + port}
}

// OptionDatabase is the database to connect to, by default postgres. Values of tables are from this
// database.
const OptionDatabase = "database"

// defaultDatabase exists on each server unless it was dropped.
const defaultDatabase = "postgres"

// open checks the target's settings.
func open(t engine.Target, log *slog.Logger) (engine.Prober, error) {
	if t.Address == "" {
		return nil, errors.New("postgresql: no address; set it to host:port or the path of a socket")
	}
	if strings.Contains(t.Address, "://") || strings.ContainsAny(t.Address, ", ") {
		return nil, fmt.Errorf("postgresql: address %q is not one host:port; list each server as a target of its own", t.Address)
	}
	if _, _, err := net.SplitHostPort(t.Address); err != nil && !strings.HasPrefix(t.Address, "/") {
		return nil, fmt.Errorf("postgresql: address %q is neither host:port nor the path of a socket", t.Address)
	}
	if info, err := os.Stat(t.Address); strings.HasPrefix(t.Address, "/") && err == nil && info.IsDir() {
		t.Address = filepath.Join(t.Address, ".s.PGSQL.5432") // as client libraries do
	}
	if err := (engine.OptionChecks{
		OptionDatabase:        nil,
		engine.OptionSessions: engine.OneOf(engine.On, engine.Off), engine.OptionStatements: engine.OneOf(engine.On, engine.Off),
	}).Check(&t); err != nil {
		return nil, fmt.Errorf("postgresql: %w", err)
	}
	return newProber(t, log)
}
