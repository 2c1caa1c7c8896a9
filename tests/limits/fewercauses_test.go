//go:build limits

package limits

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// TestFewerCauses guards that a run about which little can be known has fewer causes, and no wrong ones.
func TestFewerCauses(t *testing.T) {
	l := own(servers.MariaDB, 1, "performance_schema=ON", "innodb_flush_log_at_trx_commit=0", "sync_binlog=0")(t)
	admin := func(statement string) {
		t.Helper()
		_, err := l.group.Query(context.Background(), 1, statement)
		must(t, err)
	}
	admin("GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1")
	const noIndex = `con:query("SELECT id FROM sbtest1 WHERE pad = '" .. sysbench.rand.uniform(1, 99999) .. "'")`
	for _, c := range []struct {
		name   string
		event  string
		args   []string
		during func(t *testing.T, l *lab, meta rundir.Meta)
		// may are the causes that may be found, foreign is a part of statements that the run did not execute.
		may     []string
		foreign string
	}{
		{name: "five seconds", args: []string{"oltp_read_write", "--time=5"}},
		{name: "five seconds without an index", event: noIndex, args: []string{"--time=5"}, may: []string{"statements without an index"}},
		{name: "a statement of another session", args: []string{"oltp_point_select", "--time=12"}, foreign: "LIKE",
			during: repeating(9*time.Second, "SELECT COUNT(*) FROM sbtest.sbtest2 WHERE pad LIKE '%x%'")},
		{name: "statistics reset", event: noIndex, args: []string{"--time=12"}, may: []string{"statements without an index"},
			during: func(*testing.T, *lab, rundir.Meta) {
				time.Sleep(6 * time.Second)
				admin("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest")
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"--threads=4"}, c.args...)
			if c.event != "" {
				args = script(t, c.event, args...)
			}
			var during func(rundir.Meta)
			if c.during != nil {
				during = func(meta rundir.Meta) { c.during(t, l, meta) }
			}
			v, _ := l.one(t, strings.ReplaceAll(c.name, " ", "-"), during, args...)
			logCauses(t, &v)
			for i := range v.Findings {
				for _, found := range v.Findings[i].Causes {
					judgeCause(t, found, c.may, c.foreign)
				}
			}
		})
	}
}

// judgeCause fails the test if a cause explains most and may not be found, or names what the run did not do.
func judgeCause(t *testing.T, found limits.CauseFinding, may []string, foreign string) {
	t.Helper()
	if found.Share > 0.5 && !slices.Contains(may, found.Cause) {
		t.Errorf("the cause %q with %.0f %%: %s", found.Cause, found.Share*100, found.Evidence)
	}
	if foreign != "" && strings.Contains(found.Of+found.Evidence, foreign) {
		t.Errorf("the cause %q names a statement of another session: %s", found.Cause, found.Evidence)
	}
}
