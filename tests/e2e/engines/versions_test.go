//go:build versions

package engines

import "github.com/benchwatch/benchwatch/internal/servers"

func init() {
	mariadbVersions = servers.MariaDBVersions
	postgresqlVersions = servers.PostgreSQLVersions
}
