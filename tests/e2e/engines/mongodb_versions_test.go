//go:build mongodb

package engines

import "github.com/benchwatch/benchwatch/internal/servers"

func init() { mongoVersions, mongoAll = servers.MongoDBVersions, true }
