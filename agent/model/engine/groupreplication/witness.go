package groupreplication

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/replication"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// askAllStats reads what this member knows of all members: their queues are as of their last message.
const askAllStats = "SELECT * FROM performance_schema.replication_group_member_stats LIMIT 32"

// askFlowControl reads the limits of the queues.
const askFlowControl = "SELECT @@GLOBAL.group_replication_flow_control_mode AS mode, @@GLOBAL.group_replication_flow_control_applier_threshold AS applier," +
	" @@GLOBAL.group_replication_flow_control_certifier_threshold AS certifier"

// What the answer of a member has.
const (
	members      = "group members"                     // value
	reachable    = "group members that are reachable"  // value
	unreachable  = "group members that do not answer"  // text
	longestQueue = "longest applier queue of a member" // value
	longestOf    = "member with the longest queue"     // text
	queueLimit   = "applier queue from which writes are held back"
	certifying   = "transactions that wait for certification"
)

// Testify implements mysql.WitnessDetail: the states and queues of all members, and what the appliers do.
func (d *Detail) Testify(ctx context.Context, q mysql.Querier, server *mysql.Server, a *evidence.Answer) error {
	if server.Variables[groupName] == "" || server.MariaDB() {
		return nil
	}
	rows, err := q.Rows(ctx, askMembers)
	if err != nil {
		return err
	}
	names, reached := map[string]string{}, 0.0
	var lost []string
	for _, row := range rows[:min(len(rows), 32)] {
		name := net.JoinHostPort(row.Text("MEMBER_HOST"), row.Text("MEMBER_PORT"))
		state := row.Text("MEMBER_STATE")
		names[row.Text("MEMBER_ID")] = name
		a.Say("group member "+name, engine.OneLine(strings.TrimSpace(state+" "+row.Text("MEMBER_ROLE"))))
		if state == "UNREACHABLE" {
			lost = append(lost, name)
		} else {
			reached++
		}
	}
	a.Set(members, float64(len(names)))
	a.Set(reachable, reached)
	a.Say(unreachable, strings.Join(lost, ", "))
	if err := testifyQueues(ctx, q, a, names); err != nil {
		return err
	}
	return replication.TestifyAppliers(ctx, q, server, a)
}

func testifyQueues(ctx context.Context, q mysql.Querier, a *evidence.Answer, names map[string]string) error {
	rows, err := q.Rows(ctx, askAllStats)
	if err != nil {
		return err
	}
	most := -1.0
	for _, row := range rows {
		name := names[row.Text("MEMBER_ID")]
		for _, column := range []string{
			"COUNT_TRANSACTIONS_IN_QUEUE", "COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE", "COUNT_CONFLICTS_DETECTED", "COUNT_TRANSACTIONS_ROWS_VALIDATING",
		} {
			if n, ok := row.Number(column); ok && name != "" {
				a.Set(column+" of "+name, n)
			}
		}
		if n, ok := row.Number("COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE"); ok && n > most {
			most = n
			a.Set(longestQueue, n)
			a.Say(longestOf, name)
		}
		if n, ok := row.Number("COUNT_TRANSACTIONS_IN_QUEUE"); ok {
			a.Set(certifying, max(n, a.Values[certifying]))
		}
	}
	limits, err := q.Rows(ctx, askFlowControl)
	if err != nil {
		return err
	}
	for _, row := range limits {
		if n, ok := row.Number("applier"); ok && row.Text("mode") != "DISABLED" {
			a.Set(queueLimit, n)
		}
	}
	return nil
}

var _ = engine.DeclareOnset(engine.Onset{Metric: throttledSessions, High: 1, Text: "flow control began on %s"})

// Reasons for stalls of a group.
var _ = evidence.Declare(evidence.Rules{
	Engine: mysql.Name, Of: "mysql, group",
	Reasons: []evidence.Reason{
		{Name: "no majority", Reads: "states of the group's members", Level: evidence.Origin,
			Part: func(l *evidence.Look) float64 {
				if all := l.Number(members); !(all > 0) || l.Number(reachable) > all/2 {
					return 0
				}
				return l.Remaining()
			},
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%s reached only %.0f of %.0f members of the group: %s did not answer", s.Target,
					worst.Number(reachable), worst.Number(members), table.Plain(worst.Texts[unreachable]))
			}},
		{Name: "member that does not answer", Reads: "states of the group's members, and sessions that wait for their commits",
			Part: func(l *evidence.Look) float64 {
				if !(l.Number(members) >= 2) || l.Texts[unreachable] == "" && !missesOne(l) {
					return 0
				}
				return l.Share(l.Waits(commitsInGroup...))
			},
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				text := fmt.Sprintf("%.0f sessions of %s waited for their commits in the group%s", worst.Waits(commitsInGroup...), s.Target, s.Absent())
				if lost := worst.Texts[unreachable]; lost != "" {
					text += "; the group did not reach " + table.Plain(lost)
				}
				return text
			}},
		{Name: "queue of a member", Reads: "applier queues of all members, `group_replication_flow_control_applier_threshold`, sessions that wait for their commits",
			Part: func(l *evidence.Look) float64 {
				if limit := l.Number(queueLimit); !(limit > 0) || !(l.Number(longestQueue) >= limit) {
					return 0
				}
				return l.Share(l.Waits(append(commitsInGroup, evidence.FlowControl)...))
			},
			Text: func(_ *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("flow control of the group held writes back: %s had %s transactions to apply, of %s allowed",
					table.Plain(worst.Texts[longestOf]), table.Rounded(worst.Number(longestQueue)), table.Rounded(worst.Number(queueLimit)))
			}},
	},
})

// commitsInGroup are the waits of sessions whose transactions the group has to agree on.
var commitsInGroup = []evidence.Kind{evidence.Committing, evidence.OtherNodes}

// missesOne reports whether another server did not answer at the same moment.
func missesOne(l *evidence.Look) bool {
	return slices.ContainsFunc(l.Beside(mysql.Name), func(other *evidence.Look) bool { return other.Error != "" })
}
