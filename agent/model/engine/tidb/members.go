package tidb

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

const (
	// memberInterval is the interval for reading the cluster's members, for which the server asks
	// PD.
	memberInterval = 30 * time.Second
	// memberPause is how long the table is not read after it took too long, which costs a whole
	// sample.
	memberPause = 10 * time.Minute

	memberStatement = "SELECT TYPE, INSTANCE, STATUS_ADDRESS, VERSION FROM information_schema.cluster_info"
)

var (
	clusterMembers = measure.NewGauge("tidb_cluster_members", "Members of the cluster by kind (tidb, pd, tikv, tiflash …), as information_schema.cluster_info lists them.", "type")
	memberInfo     = measure.NewGauge("tidb_cluster_member_info", "1 for each member of the cluster.", "type", "member", "version")
)

// missingProcess is logged once if the user may not read the cluster's tables.
const missingProcess = "PROCESS ON *.*: members of the TiDB cluster, and the address of the status port if it is not 10080"

// member is a row of cluster_info.
type member struct{ kind, instance, status, version string }

// members are the cluster's members as last read.
type members struct {
	next   time.Time // when to read again
	list   []member
	denied bool
}

// read reads the members if it is time, and sets what is known.
func (m *members) read(ctx context.Context, q mysql.Querier, now time.Time, out *engine.Status) error {
	if !now.Before(m.next) {
		if err := m.ask(ctx, q, now); err != nil {
			return err
		}
	}
	if m.denied {
		out.Missing = append(out.Missing, missingProcess)
	}
	m.join(&out.Membership)
	count := map[string]int{}
	for _, e := range m.list {
		if _, set := out.Get(memberInfo, e.kind, e.instance, e.version); !set {
			count[e.kind]++
			out.Set(memberInfo, 1, e.kind, e.instance, e.version)
		}
	}
	for kind, n := range count {
		out.Set(clusterMembers, float64(n), kind)
	}
	return nil
}

// join reads the membership: the other servers, and the placement drivers that all servers of a cluster
// share.
func (m *members) join(out *engine.Membership) {
	var drivers []string
	for _, e := range m.list {
		switch e.kind {
		case "tidb":
			out.Members = append(out.Members, engine.Member{Address: e.instance})
		case "pd":
			drivers = append(drivers, e.instance)
		}
	}
	if len(drivers) > 0 {
		slices.Sort(drivers)
		out.ClusterIDs = append(out.ClusterIDs, "pd "+strings.Join(drivers, ","))
	}
}

func (m *members) ask(ctx context.Context, q mysql.Querier, now time.Time) error {
	m.next = now.Add(memberPause) // if no answer comes
	rows, err := q.Rows(ctx, memberStatement)
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	m.next = now.Add(memberInterval)
	m.list, m.denied = nil, mysql.Denied(err)
	if err != nil {
		if mysql.Refused(err) {
			return nil
		}
		return err
	}
	for _, row := range rows {
		e := member{row.Text("TYPE"), row.Text("INSTANCE"), row.Text("STATUS_ADDRESS"), row.Text("VERSION")}
		if e.kind != "" {
			m.list = append(m.list, e)
		}
	}
	return nil
}

// statusPort returns the status port of the server at an address: from its own row, otherwise the
// one that all servers share, otherwise the default. The host does not come from the table, since
// the cluster may use different addresses internally.
func (m *members) statusPort(address string) string {
	common := ""
	for _, e := range m.list {
		_, port, err := net.SplitHostPort(e.status)
		if e.kind != "tidb" || err != nil {
			continue
		}
		if e.instance == address {
			return port
		}
		switch common {
		case "", port:
			common = port
		default:
			common = defaultStatusPort
		}
	}
	if common == "" {
		return defaultStatusPort
	}
	return common
}
