package sessions

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// TestClasses guards names of performance_schema (MySQL 8.4, MariaDB 10.11) and states of the list
// of processes.
func TestClasses(t *testing.T) {
	for _, c := range []struct{ state, event, class, name string }{
		{"", "", engine.Running, engine.Running},
		{"Updating", "", engine.Running, "updating"},
		{"Waiting for table metadata lock", "", engine.Lock, "waiting for table metadata lock"},
		{"Waiting for schema metadata lock", "", engine.Lock, "waiting for schema metadata lock"},
		{"Waiting for flow control", "", engine.FlowControlWait, "waiting for flow control"},
		{"Waiting for certification", "", engine.Replication, "waiting for certification"},
		{"Waiting for prior transaction to commit", "", engine.Commit, "waiting for prior transaction to commit"},
		{"waiting for handler commit", "", engine.Commit, "waiting for handler commit"},
		{"Updating status", "", engine.Commit, "updating status"},
		{"System lock", "", engine.Running, "system lock"},
		{"User lock", "wait/lock/metadata/sql/mdl", engine.Lock, "user lock"},
		{"User lock", "wait/synch/cond/sql/MDL_context::COND_wait_status", engine.Lock, "user lock"},
		{"User sleep", "wait/synch/cond/sql/Item_func_sleep::cond", engine.Other, "user sleep"},
		{"Updating status", "wait/io/file/innodb/innodb_log_file", engine.Commit, "io/file/innodb/innodb_log_file"},
		{"Waiting for someone to free space", "", engine.Other, "waiting for someone to free space"},
		{"executing", "wait/io/file/innodb/innodb_data_file", engine.Disk, "io/file/innodb/innodb_data_file"},
		{"executing", "wait/io/file/innodb/innodb_log_file", engine.Commit, "io/file/innodb/innodb_log_file"},
		{"Waiting for table metadata lock", "wait/lock/metadata/sql/mdl", engine.Lock, "waiting for table metadata lock"},
		{"Updating", "wait/lock/metadata/sql/mdl", engine.Lock, "lock/metadata/sql/mdl"},
		{"", "wait/synch/cond/sql/MYSQL_BIN_LOG::COND_done", engine.Commit, "synch/cond/sql/mysql_bin_log::cond_done"},
		{"", "wait/synch/mutex/innodb/trx_sys_mutex", engine.Latch, "synch/mutex/innodb/trx_sys_mutex"},
		{"", "wait/unheard/of", engine.Other, "unheard/of"},
	} {
		if class, name := classify(c.state, c.event); class != c.class || name != c.name {
			t.Errorf("%q %q is %s %q, want %s %q", c.state, c.event, class, name, c.class, c.name)
		}
	}
}

// TestMeasuredStates guards that a session whose thread waited does not count as running, unless a
// status variable shows the wait or no name does, and that a session whose thread ran does not
// count as waiting.
func TestMeasuredStates(t *testing.T) {
	text, err := os.ReadFile("testdata/states.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	judged := 0
	for _, line := range lines {
		cells := strings.Split(line, "\t")
		class, name := classify(cells[3], "")
		waits, err1 := strconv.Atoi(cells[5])
		runs, err2 := strconv.Atoi(cells[6])
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		// InnoDB's waits for locks and pages, and others that no name shows, occur in statements on
		// rows.
		onRows := lockRank(name) < 2
		switch {
		case waits >= 80 && class == engine.Running && !onRows:
			t.Errorf("%q runs, but its threads waited", line)
		case runs >= 60 && class != engine.Running && class != engine.Network && class != engine.Commit:
			t.Errorf("%q is %s, but its threads ran", line, class)
		case waits >= 80 || runs >= 60:
			judged++
		}
	}
	if judged < 100 {
		t.Errorf("%d of %d states were judged", judged, len(lines))
	}
}

// TestFlowControl guards that the sessions that commit count as waiting for flow control while that
// is active on their node, on each version, and no others.
func TestFlowControl(t *testing.T) {
	text, err := os.ReadFile("testdata/flow-control.tsv")
	if err != nil {
		t.Fatal(err)
	}
	answers, committing := map[string]map[state]float64{}, map[string]float64{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		cells := strings.Split(line, "\t")
		n, err := strconv.ParseFloat(cells[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		class, name := classify(cells[2], "")
		answer := cells[0] + " " + cells[1]
		if answers[answer] == nil {
			answers[answer] = map[state]float64{}
		}
		answers[answer][state{Class: class, Event: name}] += n
		if cells[2] == "commit" || cells[2] == "Waiting for certification" {
			committing[answer] += n
		}
	}
	for answer, counts := range answers {
		if strings.HasSuffix(answer, " true") {
			(&Detail{}).holdBack(counts)
		}
		left := 0.0
		for s, n := range counts {
			if s.Class == engine.Commit || s.Class == engine.Replication {
				left += n
			}
		}
		held := counts[state{Class: engine.FlowControlWait, Event: flowControlWait}]
		if on := strings.HasSuffix(answer, " true"); on && (held == 0 || held != committing[answer] || left != 0) || !on && (held != 0 || left != committing[answer]) {
			t.Errorf("%s: %v held back, %v left, of %v that commit", answer, held, left, committing[answer])
		}
	}
	if len(answers) != 6 {
		t.Errorf("%d answers", len(answers))
	}
}

// TestRowLocks guards that row locks are first attributed to statements on rows, and that additional waits of appliers
// do not create sessions.
func TestRowLocks(t *testing.T) {
	d := &Detail{}
	counts := map[state]float64{
		{Class: engine.Running, Event: "updating"}: 3, {Class: engine.Running, Event: "statistics"}: 2, {Class: engine.Running, Event: engine.Running}: 4, {Class: engine.Commit, Event: "commit"}: 1,
	}
	d.move(counts, 4, state{Class: engine.RowLock, Event: rowLockWait}, lockRank)
	lock := state{Class: engine.RowLock, Event: "innodb row lock"}
	if counts[lock] != 4 || counts[state{Class: engine.Running, Event: "updating"}] != 0 || counts[state{Class: engine.Running, Event: "statistics"}] != 1 {
		t.Errorf("%v", counts)
	}
	d.move(counts, 50, state{Class: engine.RowLock, Event: rowLockWait}, lockRank)
	if counts[lock] != 9 || counts[state{Class: engine.Commit, Event: "commit"}] != 1 {
		t.Errorf("%v", counts)
	}
}
