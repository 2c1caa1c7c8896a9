//go:build e2e || versions

package engines

import (
	"fmt"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// dialect is the statements of a replica with several sources.
type dialect struct {
	separate func(s group, n int) []string // statements that make a source replicate from nobody
	prepare  []string                      // of the replica, before it has sources
	source   func(s group, n int, password string) string
	command  func(verb, channel string) string
	delay    string // of the channel s1, with the seconds
}

var mariadbDialect = dialect{
	separate: func(_ group, n int) []string {
		return []string{"STOP ALL SLAVES", "RESET SLAVE ALL", fmt.Sprintf("SET GLOBAL gtid_domain_id = %d", n)}
	},
	prepare: []string{"STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL gtid_slave_pos = ''"},
	source: func(s group, n int, password string) string {
		return fmt.Sprintf("CHANGE MASTER 's%d' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'replica', MASTER_PASSWORD = '%s', MASTER_USE_GTID = slave_pos",
			n, s.Port+n, password)
	},
	command: func(verb, channel string) string { return fmt.Sprintf("%s SLAVE '%s'", verb, channel) },
	delay:   "CHANGE MASTER 's1' TO MASTER_DELAY = %d",
}

var mysqlDialect = dialect{
	separate: func(group, int) []string { return []string{"STOP REPLICA", "RESET REPLICA ALL"} },
	prepare:  []string{"STOP REPLICA", "RESET REPLICA ALL"},
	source: func(s group, n int, password string) string {
		return fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'replica', SOURCE_PASSWORD = '%s', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1 FOR CHANNEL 's%d'",
			s.Port+n, password, n)
	},
	command: func(verb, channel string) string { return fmt.Sprintf("%s REPLICA FOR CHANNEL '%s'", verb, channel) },
	delay:   "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = %d FOR CHANNEL 's1'",
}

// A replica of two sources is behind if one of its channels is, by that source's history.
func TestSources(t *testing.T) {
	onMariaDB(t, servers.MariaDB, 3, func(t *testing.T, s group) { checkSources(t, s, mariadbDialect) })
}

func checkSources(t *testing.T, s group, d dialect) {
	for n := 1; n <= 2; n++ {
		source := s.admin(t, n)
		if n == 2 {
			source.do(d.separate(s, n)...)
		} else if d.delay == mariadbDialect.delay {
			source.do("SET GLOBAL gtid_domain_id = 1")
		}
	}
	replica := s.admin(t, 3)
	replica.do(d.prepare...)
	password := s.password(t, "replica")
	for n := 1; n <= 2; n++ {
		replica.do(d.source(s, n, password), d.command("START", fmt.Sprintf("s%d", n)))
	}
	for n := 1; n <= 2; n++ {
		s.admin(t, n).do(fmt.Sprintf("CREATE DATABASE own%d", n), fmt.Sprintf("CREATE TABLE own%d.t (i INT AUTO_INCREMENT PRIMARY KEY)", n))
	}
	w := s.watch(t)
	write := func(n, count int) {
		var all []string
		for range count {
			all = append(all, fmt.Sprintf("INSERT INTO own%d.t VALUES ()", n))
		}
		s.admin(t, n).do(all...)
	}
	level := func(f engine.Frame) bool {
		n := &f.Samples[2]
		return len(n.Channels) == 2 && n.LagTransactions.Known && n.LagTransactions.Value == 0 && n.LagSeconds.Known && n.LagSeconds.Value == 0
	}
	w.until("replica level", 20*time.Second, level)

	t.Run("one channel stopped", func(t *testing.T) {
		w := w.in(t)
		replica.do(d.command("STOP", "s2"))
		write(1, 50)
		write(2, 30)
		f := w.until("behind, and growing", 15*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[2]
			return n.LagTransactions.Known && n.LagTransactions.Value == 30 && n.LagSeconds.Known && n.LagSeconds.Value > 2 &&
				channelLag(n, "s2") == 30 && channelLag(n, "s1") == 0
		})
		for _, n := range f.Samples[:2] {
			if n.LagTransactions.Known || n.LagSeconds.Known {
				t.Errorf("a source has a lag:\n%s", describe(f))
			}
		}
		replica.do(d.command("START", "s2"))
		w.until("level again", 30*time.Second, level)
	})

	t.Run("a delayed channel", func(t *testing.T) {
		w := w.in(t)
		replica.do(d.command("STOP", "s1"), fmt.Sprintf(d.delay, 4), d.command("START", "s1"))
		write(1, 20)
		w.until("held back, but not behind", 20*time.Second, func(f engine.Frame) bool {
			n := &f.Samples[2]
			return channelLag(n, "s1") == 20 && n.LagTransactions.Value == 20 && n.LagSeconds.Known && n.LagSeconds.Value < 1.5
		})
		w.until("level again", 30*time.Second, level)
	})
}

// channelLag returns the transactions that a channel lacks; -1: unknown.
func channelLag(s *engine.Sample, channel string) float64 {
	for _, c := range s.Channels {
		if c.Channel == channel && c.Transactions.Known {
			return c.Transactions.Value
		}
	}
	return -1
}
