package limits

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// isRefused reports whether a server refused connections.
func (e *Evidence) isRefused() bool {
	return e.RefusedByServer != "" || slices.ContainsFunc(e.Servers, func(s ServerEvidence) bool { return s.Refused > 0 })
}

func (e *Evidence) refusedConnections() LimitFinding {
	out := finding(certainly(e.isRefused()), cause.Advice(e.engine(), cause.Connections),
		"%s", "a server refused connections: "+e.RefusedByServer)
	for i := range e.Servers {
		s := &e.Servers[i]
		name := cmp.Or(cause.Setting(s.Engine, cause.Connections), "limit of connections")
		limit := "its " + name
		if s.ConnectionLimit > 0 {
			limit += " of " + table.Rounded(s.ConnectionLimit)
		}
		switch {
		case s.Refused > 0:
			out.Evidence = fmt.Sprintf("%s refused %s since %s was reached", s.Name, plural(s.Refused, "connection"), limit)
			return out
		case e.RefusedByServer != "" && s.ConnectionLimit > 0:
			out.Evidence = fmt.Sprintf("a server refused connections (%s); the %s of %s is %s",
				e.RefusedByServer, name, s.Name, table.Rounded(s.ConnectionLimit))
			return out
		}
	}
	return out
}

func (e *Evidence) missingPorts() LimitFinding {
	return finding(certainly(e.NoPort != ""), cause.Advice("", cause.Ports),
		"%s", "the generator had no port left for a connection: "+e.NoPort)
}

func (e *Evidence) missingFiles() LimitFinding {
	return finding(certainly(e.NoFile != ""), "raise the limit of open files of "+e.Tool+" (ulimit -n)",
		"%s could open no more files, and each connection needs one: %s", e.Tool, e.NoFile)
}
