//go:build limits

package limits

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/run/limits"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// planted is a run with one known cause of its limit, and what the advice changes.
type planted struct {
	// cause is the name of the cause, empty if none may be found.
	cause string
	// also are other causes that are right.
	also []string
	// of are the findings that it may explain.
	of []cause.Limit
	// settings are the server's. prepare are statements before the run, remedy those that follow the advice; they
	// are undone by undo.
	settings              []string
	prepare, remedy, undo []string
	event                 string
	args, better          []string
	// cheaper: the advice saves CPU, so that the gain is the CPU time of tool and servers for each transaction. Otherwise it
	// saves waiting, and the gain is the throughput. What other programs take of a full machine changes only the latter.
	cheaper bool
	// restarted are the settings of a server that is started anew for the remedied run, if the advice needs that.
	restarted []string
	// setup starts other servers than one MariaDB with these settings.
	setup func(t *testing.T) *lab
	// during happens beside the planted run only, or always beside both.
	during func(t *testing.T, l *lab, meta rundir.Meta)
	always bool
}

// besides is how many programs use the CPU beside each case.
var besides, _ = strconv.Atoi(os.Getenv("BESIDE"))

// tables returns the statements for small tables.
func tables(n int) (all []string) {
	for i := 1; i <= n; i++ {
		all = append(all, fmt.Sprintf("CREATE TABLE sbtest.t%d (id INT PRIMARY KEY, v INT)", i), fmt.Sprintf("INSERT INTO sbtest.t%d VALUES (1, 1)", i))
	}
	return all
}

// TestCauses plants a cause, requires that it is named and no other one with most of the time, follows its advice and
// measures again.
func TestCauses(t *testing.T) {
	for name, c := range causes {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			settings := c.settings
			if len(settings) == 0 {
				settings = []string{"performance_schema=ON"}
			}
			setup := c.setup
			if setup == nil {
				setup = own(servers.MariaDB, 1, append([]string{"innodb_flush_log_at_trx_commit=0", "sync_binlog=0"}, settings...)...)
			}
			l := setup(t)
			burn(t, besides)
			execute := func(all []string) {
				for _, s := range all {
					_, err := l.group.Query(context.Background(), 1, s)
					must(t, err)
				}
			}
			execute([]string{"GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1"})
			execute(c.prepare)
			run := func(id, event string) (*limits.Verdict, trial) {
				args := append([]string{"--threads=4", "--time=12"}, c.args...)
				if id == "remedied" && len(c.better) > 1 {
					args = append(args, c.better[1:]...)
				}
				if event != "" {
					args = script(t, event, args...)
				}
				var during func(rundir.Meta)
				if c.during != nil && (id == "planted" || c.always) {
					during = func(meta rundir.Meta) { c.during(t, l, meta) }
				}
				v, foreign := l.one(t, id, during, args...)
				tps, transactions := l.made(t, id)
				one := trial{tps: tps, cpu: l.spent / transactions}
				t.Logf("%s: %s, other programs %.0f %% of the CPU", id, one, foreign*100)
				logCauses(t, &v)
				return &v, one
			}
			v, before := run("planted", c.event)
			c.judge(t, v)
			if len(c.remedy)+len(c.better) == 0 && c.during == nil {
				return
			}
			if c.restarted != nil {
				l = again(t, l, append([]string{"innodb_flush_log_at_trx_commit=0", "sync_binlog=0"}, c.restarted...)...)
			}
			execute(c.remedy)
			event := c.event
			if len(c.better) > 0 && c.better[0] != "" {
				event = c.better[0]
			}
			_, after := run("remedied", event)
			execute(c.undo)
			gained(t, name, c.cause, c.cheaper, before, after)
		})
	}
}

// trial is a run before or after the advice: transactions a second, and the CPU time in seconds that tool and servers used
// for each.
type trial struct{ tps, cpu float64 }

func (r trial) String() string {
	return fmt.Sprintf("%.0f transactions/s, %.3g ms of CPU for each", r.tps, r.cpu*1000)
}

// leastGain is what advice must change: a tenth is more than runs of some seconds differ by in CPU time.
const leastGain = 1.1

// gained logs what the advice changed, and fails the test if it did not help: in CPU time for each transaction if it
// makes them cheaper, else in throughput.
func gained(t *testing.T, name, cause string, cheaper bool, before, after trial) {
	t.Helper()
	of, gain := "throughput", after.tps/before.tps
	if cheaper {
		of, gain = "CPU for each transaction", before.cpu/after.cpu
	}
	t.Logf("GAIN | %s | %s | %.0f | %.0f | × %.1f in %s", name, cause, before.tps, after.tps, gain, of)
	if !(gain >= leastGain) {
		t.Errorf("the advice against %q does not help: %s, then %s", cause, before, after)
	}
}

// again stops the server of a lab and starts it with other settings. The agent goes on.
func again(t *testing.T, l *lab, settings ...string) *lab {
	t.Helper()
	must(t, l.group.Stop(context.Background()))
	g, err := servers.Start(t.Context(), l.group.Dir, l.group.Kind, servers.Options{Servers: l.group.N, Port: l.group.Port, Attached: true, Settings: settings})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	l.group = g
	return l
}

// judge fails the test if the cause was not named, or another one is said to explain most.
func (c *planted) judge(t *testing.T, v *limits.Verdict) {
	t.Helper()
	if len(v.Findings) == 0 {
		if c.cause != "" {
			t.Errorf("no finding: %+v", v)
		}
		return
	}
	for i := range v.Findings {
		for _, found := range v.Findings[i].Causes {
			if found.Cause != c.cause && !slices.Contains(c.also, found.Cause) && found.Share > 0.5 && (c.cause == "" || found.Share > shareOf(v, c.cause)) {
				t.Errorf("%s has the cause %q with %.0f %%", v.Findings[i].Limit, found.Cause, found.Share*100)
			}
		}
	}
	for i := range v.Findings {
		f := &v.Findings[i]
		named := slices.ContainsFunc(f.Causes, func(found limits.CauseFinding) bool { return found.Cause == c.cause })
		if named && slices.Contains(c.of, f.Limit) {
			return
		}
		if f.Limit != cause.Neighbours { // the machine is not quiet: the next finding counts
			break
		}
	}
	if c.cause != "" {
		t.Errorf("the first finding is %s, want the cause %q", v.Findings[0].Limit, c.cause)
	}
}

// shareOf is the share of a cause, 0 if it was not found.
func shareOf(v *limits.Verdict, name string) float64 {
	for i := range v.Findings {
		for _, found := range v.Findings[i].Causes {
			if found.Cause == name {
				return found.Share
			}
		}
	}
	return 0
}

func logCauses(t *testing.T, v *limits.Verdict) {
	t.Helper()
	for _, f := range v.Findings {
		t.Logf("%s (%.0f %%): %s. Advice: %s", f.Title(), f.Share*100, f.Evidence, f.Advice())
		for _, c := range f.Causes {
			t.Logf("    because of %s (%.0f %%): %s", c.Cause, c.Share*100, c.Evidence)
		}
	}
	if v.Unexplained != nil {
		t.Logf("not known (%.0f %%): %s", v.Unexplained.Share*100, v.Unexplained.Evidence)
	}
}

// made returns the transactions of a run, a second and together.
func (l *lab) made(t *testing.T, id string) (perSecond, all float64) {
	t.Helper()
	out, err := exec.Command(env.binary, "report", id, "--config.file="+l.Config, "--format=json").Output()
	must(t, err)
	var report struct {
		Runs []struct {
			TransactionsPerSecond float64 `json:"transactions_per_second"`
			DurationSeconds       float64 `json:"duration_seconds"`
		}
	}
	must(t, json.Unmarshal(out, &report))
	r := report.Runs[0]
	return r.TransactionsPerSecond, r.TransactionsPerSecond * r.DurationSeconds
}
