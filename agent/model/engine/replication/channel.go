package replication

import (
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/gtid"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

var (
	receiverConnecting = measure.NewGauge("replication_receiver_connecting",
		"1 while the receiver tries to connect to the source (Replica_IO_Running is Connecting), else 0.", "channel")
	errorNumber = measure.NewGauge("replication_last_error_number",
		"Number of the error that a part of replication (receiver, applier) has now, 0 if none (Last_IO_Errno, "+
			"Last_SQL_Errno).", "channel", "thread")
	secondsBehind = measure.NewGauge("replication_seconds_behind_source",
		"The lag that the replica itself reports, in whole seconds, including a configured delay "+
			"(Seconds_Behind_Source). Absent while a thread is stopped or not connected. It covers only what the replica "+
			"has received.", "channel")
	configuredDelay = measure.NewGauge("replication_configured_delay_seconds",
		"How long the replica is configured to wait before it applies a transaction (SQL_Delay).", "channel")
	relayLogBytes = measure.NewGauge("replication_relay_log_bytes", "Size of the relay logs (Relay_Log_Space).", "channel")
	heartbeats    = measure.NewCounter("replication_received_heartbeats_total", "Heartbeats received from the source (MariaDB).", "channel")
)

// channel is one row of SHOW REPLICA STATUS, under its new or old column names.
type channel struct {
	name   string
	source string // UUID (MySQL) or server id (MariaDB) of the source

	receiving  bool // connected and receiving
	connecting bool
	applying   bool

	behind  series.Optional[float64] // the replica's own seconds
	delay   time.Duration
	waiting string // transactions received, in the server's notation
	done    string // transactions executed
	usesID  bool   // replicates by GTID: waiting is meaningful

	// at is how far the channel is in its source's history; nil: unknown.
	at engine.Position

	row mysql.Row
}

// queue returns the number of transactions received but not executed. An empty set of received transactions
// means unknown: after a restart of the replica it is empty until something arrives.
func (c *channel) queue() series.Optional[float64] {
	if !c.usesID || c.waiting == "" {
		return series.Optional[float64]{}
	}
	received, err1 := c.parse(c.waiting)
	executed, err2 := c.parse(c.done)
	if err1 != nil || err2 != nil {
		return series.Optional[float64]{}
	}
	return series.Some(float64(executed.Missing(received)))
}

// inform returns what the sampler needs to compare the channel with its source.
func (c *channel) inform() engine.Channel {
	return engine.Channel{Name: c.name, Source: c.source, Position: c.at, Delay: c.delay, Running: c.receiving && c.applying, Queue: c.queue()}
}

// newChannel reads a row with the old or new column names.
func newChannel(row mysql.Row) channel {
	c := channel{row: row, name: row.Text("Channel_Name", "Connection_name"),
		source: row.Text("Source_UUID", "Master_UUID", "Master_Server_Id")}
	receiver := row.Text("Replica_IO_Running", "Slave_IO_Running")
	c.receiving = strings.EqualFold(receiver, "Yes")
	c.connecting = strings.EqualFold(receiver, "Connecting") || strings.EqualFold(receiver, "Preparing")
	c.applying = strings.EqualFold(row.Text("Replica_SQL_Running", "Slave_SQL_Running"), "Yes")
	if seconds, ok := row.Number("Seconds_Behind_Source", "Seconds_Behind_Master"); ok && seconds >= 0 {
		c.behind = series.Some(seconds)
	}
	if seconds, ok := row.Uint("SQL_Delay"); ok && seconds < 1<<31 {
		c.delay = time.Duration(seconds) * time.Second
	}
	if row.Has("Using_Gtid") { // MariaDB
		mode := row.Text("Using_Gtid")
		c.waiting, c.usesID = row.Text("Gtid_IO_Pos"), !strings.EqualFold(mode, "No") && mode != ""
		c.done = row.Text("Gtid_Slave_Pos")
	} else {
		c.waiting, c.usesID = row.Text("Retrieved_Gtid_Set"), true
		c.done = row.Text("Executed_Gtid_Set")
	}
	return c
}

// received returns the transactions that were received; false while the channel is not connected,
// or if it does not replicate by GTID.
func (c *channel) received() (gtid.Set, bool) {
	if !c.receiving || !c.usesID || c.waiting == "" {
		return nil, false
	}
	set, err := c.parse(c.waiting)
	return set, err == nil
}

// parse reads transactions in the server's notation.
func (c *channel) parse(text string) (gtid.Set, error) {
	if c.row.Has("Using_Gtid") {
		return gtid.ParsePosition(text)
	}
	return gtid.ParseSet(text)
}

// report sets the series of the channel.
func (c *channel) report(out *engine.Status) {
	out.SetBool(engine.ReplicationRunning, c.receiving, c.name, "receiver")
	out.SetBool(engine.ReplicationRunning, c.applying, c.name, "applier")
	out.SetBool(receiverConnecting, c.connecting, c.name)
	if c.behind.Known {
		out.Set(secondsBehind, c.behind.Value, c.name)
	}
	if c.row.Has("SQL_Delay") {
		out.Set(configuredDelay, c.delay.Seconds(), c.name)
	}
	for _, v := range []struct {
		metric *measure.Metric
		labels []string
		column string
	}{
		{errorNumber, []string{c.name, "receiver"}, "Last_IO_Errno"},
		{errorNumber, []string{c.name, "applier"}, "Last_SQL_Errno"},
		{relayLogBytes, []string{c.name}, "Relay_Log_Space"},
		{heartbeats, []string{c.name}, "Slave_received_heartbeats"},
	} {
		if n, ok := c.row.Number(v.column); ok && n >= 0 {
			out.Set(v.metric, n, v.labels...)
		}
	}
}

// reportLag sets the largest lag that a channel reports. It is unknown if the lag of one channel
// is.
func reportLag(channels []channel, out *engine.Status) {
	worst, known := 0.0, len(channels) > 0
	for i := range channels {
		c := &channels[i]
		out.Delay = max(out.Delay, c.delay)
		known = known && c.behind.Known
		worst = max(worst, c.behind.Value-c.delay.Seconds())
	}
	if known && !out.CoarseLagSeconds.Known {
		out.CoarseLagSeconds = series.Some(worst)
	}
}

// reportQueue counts the transactions received but not applied, over all channels; unknown if one is.
func reportQueue(channels []channel, out *engine.Status) {
	if _, set := out.Get(engine.ReplicationQueueTransactions); set || len(channels) == 0 {
		return
	}
	sum := 0.0
	for i := range channels {
		queue := channels[i].queue()
		if !queue.Known {
			return
		}
		sum += queue.Value
	}
	out.Set(engine.ReplicationQueueTransactions, sum)
}
