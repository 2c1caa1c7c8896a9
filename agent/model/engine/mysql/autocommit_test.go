package mysql

import (
	"fmt"
	"testing"
)

// TestAutocommits guards counters of MariaDB 10.11 as changed by sysbench: 500 events of each
// workload.
func TestAutocommits(t *testing.T) {
	for _, c := range []struct {
		name                            string
		logBin                          string
		commits, begins, logged, update int
		want                            float64
	}{
		{"oltp_update_index", "ON", 0, 0, 500, 500, 500},
		{"oltp_read_write", "ON", 500, 500, 500, 1000, 0},
		{"oltp_read_only", "ON", 500, 500, 0, 0, 0},
		{"oltp_point_select", "ON", 0, 0, 0, 0, 0},
		{"a replica without a log of updates", "ON", 500, 500, 0, 500, 0},
		{"oltp_update_index without a binary log", "OFF", 0, 0, 0, 500, 500},
		{"oltp_read_write without a binary log", "OFF", 500, 500, 0, 1000, 0},
	} {
		var a autocommits
		server := &Server{Variables: Values{"log_bin": c.logBin}}
		at := func(part int) Values {
			v := Values{"Uptime": fmt.Sprint(100 + part)}
			for name, n := range map[string]int{"Com_commit": c.commits, "Com_begin": c.begins, "Binlog_cache_use": c.logged, "Com_update": c.update} {
				v[name] = fmt.Sprint(10000 + n*part/10)
			}
			return v
		}
		for part := range 11 {
			status := at(part)
			if c.name == "oltp_read_write" && part == 5 { // counters are not read at one instant
				status["Com_commit"] = fmt.Sprint(10000 + c.commits*part/10 + 9)
			}
			if _, ok := a.read(server, status); !ok {
				t.Fatalf("%s: no total", c.name)
			}
		}
		if a.total != c.want {
			t.Errorf("%s: %v, want %v", c.name, a.total, c.want)
		}
		restarted := at(0)
		if n, _ := a.read(server, restarted); n != c.want {
			t.Errorf("%s: %v after a restart of the server", c.name, n)
		}
	}
	var a autocommits
	if _, ok := a.read(&Server{}, Values{"Uptime": "1", "Com_commit": "0", "Com_begin": "0", "Binlog_cache_use": "5", "wsrep_local_state": "4"}); ok {
		t.Error("a Galera node has a total")
	}
}
