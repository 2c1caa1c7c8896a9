package mysql

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

func TestStallReasons(t *testing.T) {
	at := func(second int, values map[string]float64) evidence.Moment {
		a := evidence.Answer{Target: "n1", Engine: Name, At: time.Unix(int64(second), 0), Active: 16 - int(values["max_connections"]/10)}
		for name, v := range values {
			a.Set(name, v)
		}
		return evidence.Moment{Answers: []evidence.Answer{a}}
	}
	for name, c := range map[string]struct {
		moments      []evidence.Moment
		reason, text string
	}{
		"MariaDB's checkpoint": {[]evidence.Moment{
			at(0, map[string]float64{"Innodb_checkpoint_age": 95, "Innodb_checkpoint_max_age": 100, "Innodb_buffer_pool_pages_flushed": 0}),
			at(2, map[string]float64{"Innodb_checkpoint_age": 99, "Innodb_checkpoint_max_age": 100, "Innodb_buffer_pool_pages_flushed": 2400})},
			"checkpoint", "checkpoint; the redo log of n1 was at 99 % of its limit at 2 of 2 looks, with up to 1200 pages/s flushed"},
		"MySQL's checkpoint": {[]evidence.Moment{
			at(0, map[string]float64{"Innodb_redo_log_current_lsn": 1090, "Innodb_redo_log_checkpoint_lsn": 1000, "Innodb_redo_log_capacity_resized": 100})},
			"checkpoint", "checkpoint; the redo log of n1 was at 90 % of its limit at 1 of 1 look"},
		"a redo log with space": {[]evidence.Moment{
			at(0, map[string]float64{"Innodb_checkpoint_age": 50, "Innodb_checkpoint_max_age": 100})}, evidence.Unknown, "not explained by what was captured"},
		"refused connections": {[]evidence.Moment{
			at(0, map[string]float64{"Connection_errors_max_connections": 5, "Threads_connected": 152, "max_connections": 151}),
			at(2, map[string]float64{"Connection_errors_max_connections": 25, "Threads_connected": 152, "max_connections": 151})},
			"connection limit", "n1 refused 10 connections/s: 152 were in use, and max_connections is 151"},
	} {
		if got := evidence.Explain(16, 5, c.moments); got.Reason != c.reason || got.Text != c.text {
			t.Errorf("%s: %s: %s", name, got.Reason, got.Text)
		}
	}
}
