package galera

import (
	"fmt"
	"math"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Waits: []cause.Wait{{
		Class: engine.Replication, If: engine.FlowControl, Waits: "waited for the other nodes of the cluster (certification)",
		Limit: cause.Replication, Test: "repeat with one node",
	}},
	Observe: fewAppliers,
	Causes: []cause.Cause{
		{
			Name: "appliers of a node that is behind", Of: []cause.Limit{cause.FlowControl},
			Reads: "`wsrep_flow_control_sent`, the node's applier threads and `wsrep_cert_deps_distance`",
			Find:  slowAppliers, Test: "raise `wsrep_slave_threads` or `gcs.fc_limit` of that node, or run without it",
		},
		{
			Name: "certification conflicts", Of: []cause.Limit{cause.Replication, cause.RowLocks, cause.FlowControl, cause.Commit, cause.SharedCPU, cause.ServerCPU},
			Reads: "`wsrep_local_cert_failures`, `wsrep_local_bf_aborts` as a share of all attempts; by statement: which writes took most time",
			Find:  conflicts, Test: "write to one node only, or spread the writes over more rows",
		},
		{
			Name: "large write sets", Of: []cause.Limit{cause.Replication, cause.FlowControl, cause.Network},
			Reads: "`wsrep_replicated_bytes` for each write set",
			Find:  largeSets, Test: "repeat with smaller transactions, or with binlog_row_image=MINIMAL",
		},
	},
})

// appliers returns how many threads of a node apply write sets, unknown if it does not replicate so.
func appliers(v *cause.View) float64 {
	n := v.Last(ApplierThreads)
	for _, name := range []string{"wsrep_slave_threads", "wsrep_applier_threads"} {
		if !series.IsKnown(n) {
			n = v.Number(name)
		}
	}
	return n
}

// fewAppliers reports that write sets waited for an applier while more appliers would help.
func fewAppliers(v *cause.View) string {
	have, useful := appliers(v), math.Round(v.Last(UsefulAppliers))
	if !(useful > have) || !(v.Max(engine.ReplicationQueue) >= 1) {
		return ""
	}
	return fmt.Sprintf("write sets waited to be applied; more appliers help up to wsrep_cert_deps_distance: %.0f on %s (it has %.0f)", useful, v.Target, have)
}

// slowAppliers finds the node that requested most of the pauses.
func slowAppliers(v *cause.View) (cause.Found, bool) {
	sent, all := v.Increase(engine.FlowControlSent), v.Cluster(engine.FlowControlSent)
	if !(sent > 0) || sent < all/2 {
		return cause.Found{}, false
	}
	have, useful := appliers(v), math.Round(v.Last(UsefulAppliers))
	f := cause.Found{
		Of: v.Target, Part: sent / all,
		Evidence: fmt.Sprintf("%s requested %s of the %s pauses", v.Target, table.Rounded(sent), table.Rounded(all)),
		Test:     "raise wsrep_slave_threads and gcs.fc_limit of " + v.Target + ", or run without that node",
	}
	switch {
	case useful > have:
		f.Evidence += fmt.Sprintf("; it has %s, and more help up to %s (wsrep_cert_deps_distance)", table.Plural(int(have), "applier"), table.Rounded(useful))
		f.Test = fmt.Sprintf("raise wsrep_slave_threads of %s towards %s, and gcs.fc_limit; or run without that node", v.Target, table.Rounded(useful))
	case useful <= have:
		f.Evidence += fmt.Sprintf("; more appliers than its %s do not help, as wsrep_cert_deps_distance is %s", table.Rounded(have), table.Rounded(useful))
		f.Test = "look at the CPU and disks of " + v.Target + ", raise gcs.fc_limit, or run without that node"
	}
	return f, true
}

// largeSet is the size of a write set in bytes from which on its transfer and application take longer than the wait for its
// order.
const largeSet = 128 << 10

// conflicts finds the attempts that were undone: they took as long as those that succeeded.
func conflicts(v *cause.View) (cause.Found, bool) {
	failed, aborted, made := v.Increase(engine.CertificationFailures), v.Increase(aborts), v.Throughput*v.Seconds
	undone := cause.OrZero(failed) + cause.OrZero(aborted)
	share := undone / (undone + made)
	if !(share > 0) {
		return cause.Found{}, false
	}
	f := cause.Found{Of: v.Target, Part: share, Evidence: fmt.Sprintf("%s transactions failed certification on %s and %s were aborted by an applier: %s of all attempts",
		table.Rounded(cause.OrZero(failed)), v.Target, table.Rounded(cause.OrZero(aborted)), table.Share(share))}
	if top, _ := v.TopOf(mysql.IsLocking); top != nil {
		f.Of = top.Text
		f.Evidence += fmt.Sprintf("; of the writes, %s took most: %s", top.Text, top.Took())
	}
	return f, true
}

func largeSets(v *cause.View) (cause.Found, bool) {
	each := v.Increase(writeSetBytes) / v.Increase(writeSets)
	if !(each >= largeSet) {
		return cause.Found{}, false
	}
	return cause.Found{Part: each / (each + largeSet), Evidence: fmt.Sprintf("write sets of %s have %s on average", v.Target, table.Size(each))}, true
}
