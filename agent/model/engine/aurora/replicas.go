package aurora

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

const (
	replicaStatement = "SELECT SERVER_ID, SESSION_ID, REPLICA_LAG_IN_MILLISECONDS, CPU, LAST_UPDATE_TIMESTAMP FROM information_schema.replica_host_status"
	// writerSession is the session in the writer's row.
	writerSession = "MASTER_SESSION_ID"
	// goneAfter is the age of a row, relative to the newest one, after which its instance counts as
	// deleted. Rows of deleted instances stay in the table.
	goneAfter = 5 * time.Minute
	// silentAfter is the age of a row, relative to the newest one, after which its instance no
	// longer reports and its last lag means nothing.
	silentAfter = 10 * time.Second
	// viewAge is how long a reader uses the writer's last view.
	viewAge = 3 * time.Second
)

var (
	replicaLag = measure.NewGauge("aurora_replica_lag_seconds", "How far each reader is behind, as the writer sees it (information_schema.replica_host_status).", "server")
	serverCPU  = measure.NewGauge("aurora_server_cpu_ratio", "CPU use of each instance of the cluster, 1 is all of its cores, as the writer sees it.", "server")
	ownCPU     = measure.NewGauge("aurora_cpu_ratio", "CPU use of this instance, 1 is all of its cores, from information_schema.replica_host_status.")
	readers    = measure.NewGauge("aurora_readers", "Readers of the cluster that report to the writer.")
	isWriter   = measure.NewGauge("aurora_writer", "1 on the writer, 0 on a reader.")
)

// missingReplicas is logged once if the user may not read the table.
const missingReplicas = "SELECT ON information_schema.replica_host_status: lag and CPU of the Aurora replicas"

// instance is a row of replica_host_status.
type instance struct {
	id      string
	writer  bool
	lag     float64 // seconds; negative: unknown
	cpu     float64 // ratio; negative: unknown
	updated time.Time
}

// view is the cluster as one instance sees it.
type view struct {
	seen      time.Time // by our clock
	instances map[string]instance
	newest    time.Time // latest update of any instance
}

// writersView returns the view of the cluster's writer if it is recent enough. A target without a
// cluster shares no view.
func (d *Detail) writersView(cluster string, now time.Time) (view, bool) {
	stored, _ := d.views.Load(cluster)
	v, ok := stored.(view)
	return v, ok && now.Sub(v.seen) < viewAge
}

// freshness detects a table that no longer changes: a reader receives it by the same replication
// whose lag it contains.
type freshness struct {
	newest time.Time
	since  time.Time // by our clock
}

// fresh reports whether the table has changed within viewAge.
func (f *freshness) fresh(v view) bool {
	if !v.newest.Equal(f.newest) {
		f.newest, f.since = v.newest, v.seen
	}
	return v.seen.Sub(f.since) < viewAge
}

// readReplicas reads the table on the writer, and on a reader if its writer is not a target or does
// not answer.
func (d *Detail) readReplicas(ctx context.Context, q mysql.Querier, tick *mysql.Tick, out *engine.Status, now time.Time) error {
	id := tick.Server.Variables["aurora_server_id"]
	readOnly, known := tick.Server.Variables.Bool("innodb_read_only")
	shown, fromWriter := view{}, false
	if readOnly {
		shown, fromWriter = d.writersView(tick.Target.Cluster, now)
	}
	if !fromWriter {
		rows, err := q.Rows(ctx, replicaStatement)
		if err := mysql.Optional(err, out, missingReplicas); err != nil {
			return err
		}
		shown = readView(rows, now)
	}
	// The table shows a failover before the variables are read again.
	self, listed := shown.instances[id]
	writer := known && !readOnly
	if listed {
		writer = self.writer
	}
	setRole(out, writer, known || listed)
	shown.join(id, tick.Target.Address, &out.Membership)
	if writer && len(shown.instances) > 0 {
		shown.report(out)
		if tick.Target.Cluster != "" {
			d.views.Store(tick.Target.Cluster, shown)
		}
	}
	if listed && self.cpu >= 0 && shown.newest.Sub(self.updated) <= silentAfter && (fromWriter || d.own.fresh(shown)) {
		out.Set(ownCPU, self.cpu)
	}
	if listed {
		d.place(out, tick.Target.Cluster, shown, self, fromWriter)
	}
	return nil
}

func setRole(out *engine.Status, writer, known bool) {
	if !known {
		return
	}
	out.SetBool(isWriter, writer)
	if out.Role == "" {
		out.Role = map[bool]string{true: "primary", false: "replica"}[writer]
	}
}

// place sets the position and lag of the asked instance.
func (d *Detail) place(out *engine.Status, cluster string, shown view, self instance, fromWriter bool) {
	switch {
	case self.updated.IsZero():
		return
	case self.writer:
		if out.Position == nil {
			out.Position, out.Replicating = position{cluster, self.updated}, true
		}
		return
	case self.lag < 0 || shown.newest.Sub(self.updated) > silentAfter:
		return
	}
	if out.Position == nil {
		at := self.updated.Add(-time.Duration(self.lag * float64(time.Second)))
		out.Position, out.Replicating = position{cluster, at}, true
	}
	if !out.LagSeconds.Known && (fromWriter || d.own.fresh(shown)) {
		out.LagSeconds = series.Some(self.lag)
	}
}

// readView reads the table without deleted instances.
func readView(rows []mysql.Row, now time.Time) view {
	v := view{seen: now, instances: map[string]instance{}}
	var all []instance
	for _, row := range rows {
		i := instance{id: row.Text("SERVER_ID"), writer: row.Text("SESSION_ID") == writerSession, lag: -1, cpu: -1}
		if ms, ok := row.Number("REPLICA_LAG_IN_MILLISECONDS"); ok && ms >= 0 {
			i.lag = ms / 1e3
		}
		if percent, ok := row.Number("CPU"); ok && percent >= 0 {
			i.cpu = percent / 100
		}
		i.updated = timestamp(row.Text("LAST_UPDATE_TIMESTAMP"))
		if i.updated.After(v.newest) {
			v.newest = i.updated
		}
		all = append(all, i)
	}
	for _, i := range all {
		if i.id == "" || v.newest.Sub(i.updated) > goneAfter {
			continue
		}
		// After a failover the old row of an instance may still be there.
		if other, ok := v.instances[i.id]; !ok || i.updated.After(other.updated) {
			v.instances[i.id] = i
		}
	}
	return v
}

// timestamp reads a date and time; the zero time if there is none. The time zone is the server's,
// the same in all rows, so that differences are right.
func timestamp(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.999999", strings.Replace(text, "T", " ", 1))
	if err != nil || t.Year() < 2000 {
		return time.Time{}
	}
	return t
}

// join reads the membership. The table has the names of the instances, whose addresses have the same
// domain as the one at which this instance is sampled, if that is one of Amazon's.
func (v view) join(id, address string, out *engine.Membership) {
	domain, port := domainOf(address)
	if out.ServerID = ""; id != "" {
		out.ServerID = id + domain
	}
	for _, name := range slices.Sorted(maps.Keys(v.instances)) {
		m := engine.Member{ID: name + domain, Self: name == id}
		if domain != "" {
			m.Address = net.JoinHostPort(name+domain, port)
		}
		out.Members = append(out.Members, m)
	}
}

// domainOf returns what follows the name of an instance in the address of any of a cluster's endpoints:
// .abc123.eu-west-1.rds.amazonaws.com; empty if the address is another one.
func domainOf(address string) (domain, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !strings.Contains(host, ".rds.amazonaws.com") {
		return "", ""
	}
	_, domain, _ = strings.Cut(host, ".")
	for _, endpoint := range []string{"cluster-ro-", "cluster-custom-", "cluster-"} {
		if rest, ok := strings.CutPrefix(domain, endpoint); ok {
			domain = rest
			break
		}
	}
	return "." + domain, port
}

// report sets the values of all instances as the writer sees them.
func (v view) report(out *engine.Status) {
	n := 0
	for _, i := range v.instances {
		if !i.writer {
			n++
		}
		if v.newest.Sub(i.updated) > silentAfter {
			continue
		}
		if !i.writer && i.lag >= 0 {
			out.Set(replicaLag, i.lag, i.id)
		}
		if i.cpu >= 0 {
			out.Set(serverCPU, i.cpu, i.id)
		}
	}
	out.Set(readers, float64(n))
}

// position is the time up to which an instance sees the cluster's volume: its last report minus,
// for a reader, its lag. Both come from the writer's table. Transactions between two positions
// can't be counted.
type position struct {
	cluster string
	at      time.Time
}

// Behind returns false.
func (p position) Behind(engine.Position) (uint64, bool) { return 0, false }

// Reaches reports whether p has everything that goal has.
func (p position) Reaches(goal engine.Position) bool {
	g, ok := goal.(position)
	return ok && g.cluster == p.cluster && !p.at.Before(g.at)
}

// Scalar returns the time in Unix seconds.
func (p position) Scalar() float64 { return float64(p.at.UnixMicro()) / 1e6 }

func (p position) String() string { return p.at.Format("2006-01-02T15:04:05.000000") }
