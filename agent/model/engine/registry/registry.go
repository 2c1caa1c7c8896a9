// Package registry lists the databases that benchwatch can sample.
package registry

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/atlasproxy"
	"github.com/benchwatch/benchwatch/agent/model/engine/aurora"
	"github.com/benchwatch/benchwatch/agent/model/engine/galera"
	"github.com/benchwatch/benchwatch/agent/model/engine/groupreplication"
	"github.com/benchwatch/benchwatch/agent/model/engine/haproxy"
	"github.com/benchwatch/benchwatch/agent/model/engine/mongodb"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysqlrouter"
	"github.com/benchwatch/benchwatch/agent/model/engine/pgbouncer"
	"github.com/benchwatch/benchwatch/agent/model/engine/postgresql"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/replication"
	"github.com/benchwatch/benchwatch/agent/model/engine/sessions"
	"github.com/benchwatch/benchwatch/agent/model/engine/statements"
	"github.com/benchwatch/benchwatch/agent/model/engine/tidb"
)

// Engines are the supported databases. A new engine is one line here.
var Engines = []*engine.Engine{
	mysql.Family(
		aurora.Details(), // before replication: Aurora's readers are not MySQL replicas
		galera.New,
		groupreplication.New,
		replication.New,
		sessions.New,
		statements.New,
		tidb.New,
	),
	mongodb.Engine,
	postgresql.Engine,
	atlasproxy.Engine,
	haproxy.Engine,
	pgbouncer.Engine,
	mysqlrouter.Engine,
	proxysql.Engine,
}

// ByName returns the engine called name, or nil.
func ByName(name string) *engine.Engine {
	for _, e := range Engines {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Names lists the engines, for error messages.
func Names() []string {
	names := make([]string, len(Engines))
	for i, e := range Engines {
		names[i] = e.Name
	}
	return names
}

// Described lists the engines with the databases that each of them also samples.
func Described() string {
	names := Names()
	for i, e := range Engines {
		if len(e.Also) > 0 {
			names[i] += " (also " + strings.Join(e.Also, ", ") + ")"
		}
	}
	return strings.Join(names, ", ")
}
