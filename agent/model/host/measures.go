// Package host samples machines: the agent's own from procfs, others from their node_exporter. Both
// sources give the same values, so a limit of the generator is found in the same way as a limit of
// a server.
package host

import (
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

func gauge(name string, labels ...string) *measure.Metric {
	return &measure.Metric{Name: name, Labels: labels}
}

func counter(name string, labels ...string) *measure.Metric {
	return &measure.Metric{Name: name, Kind: measure.Counter, Labels: labels}
}

// The values of a machine. They are not exposed as metrics, since node_exporter exposes them. CPU
// times are sums over all cores; user includes guest time.
var (
	cpuUser    = counter("host_cpu_user_seconds_total") // nice included
	cpuSystem  = counter("host_cpu_system_seconds_total")
	cpuSoftIRQ = counter("host_cpu_softirq_seconds_total")
	cpuIRQ     = counter("host_cpu_irq_seconds_total")
	cpuSteal   = counter("host_cpu_steal_seconds_total")
	cpuIOWait  = counter("host_cpu_iowait_seconds_total")
	cpuIdle    = counter("host_cpu_idle_seconds_total")
	CPUTimes   = []*measure.Metric{cpuUser, cpuSystem, cpuSoftIRQ, cpuIRQ, cpuSteal, cpuIOWait, cpuIdle}

	CoreCount        = gauge("host_cpu_cores")
	BusiestCoreShare = gauge("host_cpu_busiest_core_ratio")
	Switches         = counter("host_context_switches_total")

	memoryTotal = gauge("host_memory_total_bytes")
	memoryUsed  = gauge("host_memory_used_bytes") // all memory except what is available to programs
	swapUsed    = gauge("host_swap_used_bytes")
	Swapped     = counter("host_swapped_pages_total") // in and out

	// Only whole disks are counted, not devices composed of other disks (dm, md).
	DiskRead         = counter("host_disk_read_bytes_total", "device")
	DiskWritten      = counter("host_disk_written_bytes_total", "device")
	DiskReads        = counter("host_disk_reads_total", "device")
	DiskWrites       = counter("host_disk_writes_total", "device")
	DiskFlushes      = counter("host_disk_flushes_total", "device")
	DiskReadTime     = counter("host_disk_read_seconds_total", "device")
	DiskWriteTime    = counter("host_disk_write_seconds_total", "device")
	DiskBusyTime     = counter("host_disk_busy_seconds_total", "device")
	DiskQueueTime    = counter("host_disk_queue_seconds_total", "device")
	BusiestDiskShare = gauge("host_disk_busiest_ratio")

	// Network interfaces with their own link.
	NetReceived        = counter("host_network_received_bytes_total", "device")
	NetSent            = counter("host_network_sent_bytes_total", "device")
	netReceivedPackets = counter("host_network_received_packets_total", "device")
	netSentPackets     = counter("host_network_sent_packets_total", "device")
	netDrops           = counter("host_network_drops_total", "device")
	netSpeed           = gauge("host_network_speed_bytes", "device")
	busiestNetwork     = gauge("host_network_busiest_ratio")

	retransmits = counter("host_tcp_retransmits_total")
	listenDrops = counter("host_tcp_listen_drops_total")
	conntrack   = gauge("host_conntrack_entries")
	conntracks  = gauge("host_conntrack_limit")

	// Only for the machine on which the tool was started, see Programs.
	toolHeld    = gauge("host_tool_held_ratio")
	serversHeld = gauge("host_servers_held_ratio")

	// cpuWaiting is the time that all tasks together waited for a core. node_exporter has it for
	// most kernels.
	cpuWaiting = counter("host_cpu_waiting_seconds_total")

	pressureCPU    = counter("host_pressure_cpu_seconds_total")
	pressureIO     = counter("host_pressure_io_seconds_total")
	pressureMemory = counter("host_pressure_memory_seconds_total")
)

// Monitoring programs print shares instead of times, and CloudWatch has rates.
var (
	DiskOperationRate = gauge("host_disk_operations_per_second")
	DiskReadRate      = gauge("host_disk_read_bytes_per_second")
	DiskWriteRate     = gauge("host_disk_written_bytes_per_second")
	DiskQueueDepth    = gauge("host_disk_queue_depth")

	BusyShare   = gauge("host_cpu_busy_ratio")
	IOWaitShare = gauge("host_cpu_iowait_ratio")
	StealShare  = gauge("host_cpu_steal_ratio")
)

func shareOfCPU(m *measure.Metric, others ...*measure.Metric) measure.Source {
	return measure.RateOf(m).Plus(others...).Over(CPUTimes...)
}

// The measures of a machine.
var (
	Busy = measure.New(measure.Measure{
		ID: "cpu_busy", Title: "CPU", Short: "busy", Note: "share of all cores in use",
		Unit: measure.Ratio, Scope: measure.Host, Summary: measure.Mean, Spread: true, EvenZero: true, Column: measure.EachHost, Rank: 10,
	}).Or(shareOfCPU(cpuUser, cpuSystem, cpuSoftIRQ, cpuIRQ, cpuSteal), measure.ValueOf(BusyShare))
	IOWait = measure.New(measure.Measure{
		ID: "cpu_iowait", ChartOf: Busy, Title: "CPU waiting for disks", Short: "iowait", Note: "share of all cores that were idle while a task waited for a disk",
		Unit: measure.Ratio, Scope: measure.Host, Summary: measure.Mean, Rank: 20,
	}).Or(shareOfCPU(cpuIOWait), measure.ValueOf(IOWaitShare))
	Steal = measure.New(measure.Measure{
		ID: "cpu_steal", ChartOf: Busy, Title: "CPU taken by other virtual machines", Short: "steal", Note: "share of all cores",
		Unit: measure.Ratio, Scope: measure.Host, Summary: measure.Mean, Spread: true, Rank: 30,
	}).Or(shareOfCPU(cpuSteal), measure.ValueOf(StealShare))

	BusiestCore = measure.New(measure.Measure{
		ID: "cpu_busiest_core", Title: "CPU of the busiest core", Short: "core", Note: "share of the time in which it was in use",
		Unit: measure.Ratio, Scope: measure.Host, Summary: measure.Mean, Spread: true, Rank: 35,
	}).Or(measure.ValueOf(BusiestCoreShare))
	// Cores that are online.
	Cores = measure.New(measure.Measure{
		ID: "cores", Title: "CPU cores", Note: "online", Unit: measure.Count, Scope: measure.Host, Summary: measure.Last, NoChart: true, Rank: 5,
	}).Or(measure.ValueOf(CoreCount))
	_       = inTables(40, "cpu_user", "CPU of programs", "share of all cores", measure.Ratio, shareOfCPU(cpuUser))
	_       = inTables(41, "cpu_system", "CPU of the kernel", "share of all cores, without interrupts", measure.Ratio, shareOfCPU(cpuSystem))
	SoftIRQ = inTables(42, "cpu_softirq", "CPU of soft interrupts", "share of all cores, mostly for the network", measure.Ratio, shareOfCPU(cpuSoftIRQ))

	_        = charted(50, "context_switches", "Context switches", "per second", measure.PerSecond, measure.RateOf(Switches))
	CPUStall = measure.New(measure.Measure{
		ID: "pressure_cpu", Title: "Waiting for CPU", Note: "share of the time in which a task waited for a core",
		Unit: measure.Ratio, Scope: measure.Host, Summary: measure.Mean, Spread: true, Rank: 60,
	}).Or(measure.ShareOf(pressureCPU))
	// Waiting is available for machines that a node_exporter samples.
	Waiting = inTables(59, "tasks_waiting", "Tasks that wait for a core", "on average", measure.Count, measure.RateOf(cpuWaiting))
	// ToolHeld and ServersHeld are unknown if the tool's process is unknown.
	ToolHeld    = inTables(63, "tool_held", "Tool held by a CPU quota", "share of the time", measure.Ratio, measure.ValueOf(toolHeld))
	ServersHeld = inTables(63, "servers_held", "Servers held by a CPU quota",
		"share of the time, for the server that is held most", measure.Ratio, measure.ValueOf(serversHeld))
	_ = charted(61, "pressure_io", "Waiting for disks", "share of the time in which a task waited for a disk", measure.Ratio, measure.ShareOf(pressureIO))
	_ = charted(62, "pressure_memory", "Waiting for memory", "share of the time in which a task waited for memory", measure.Ratio, measure.ShareOf(pressureMemory))

	_ = charted(70, "memory_used", "Memory", "share in use, excluding memory available to programs", measure.Ratio, measure.ValueOf(memoryUsed).Over(memoryTotal))
	_ = inTables(71, "swap_used", "Swap", "in use", measure.Bytes, measure.ValueOf(swapUsed))
	_ = charted(72, "swapping", "Swapping", "pages swapped in and out per second", measure.PerSecond, measure.RateOf(Swapped))

	DiskBusy = measure.New(measure.Measure{
		ID: "disk_busy", Title: "Busiest disk", Note: "share of the time in which it had something to do",
		Unit: measure.Ratio, Scope: measure.Host, Summary: measure.Mean, Spread: true, Rank: 80,
	}).Or(measure.ValueOf(BusiestDiskShare))
	_ = charted(81, "disk_read_rate", "Disk reads", "per second", measure.Bytes, measure.RateOf(DiskRead), measure.ValueOf(DiskReadRate))
	_ = charted(82, "disk_write_rate", "Disk writes", "per second", measure.Bytes, measure.RateOf(DiskWritten), measure.ValueOf(DiskWriteRate))
	_ = charted(83, "disk_operations", "Disk operations", "reads and writes per second", measure.PerSecond,
		measure.RateOf(DiskReads).Plus(DiskWrites), measure.ValueOf(DiskOperationRate))
	_ = inTables(84, "disk_flushes", "Disk flushes", "per second", measure.PerSecond, measure.RateOf(DiskFlushes))
	// DiskWait is unknown while there are no operations.
	DiskWait = charted(85, "disk_wait", "Disk latency",
		"mean time of a read or write, including its queue", measure.Seconds, measure.RateOf(DiskReadTime).Plus(DiskWriteTime).Over(DiskReads, DiskWrites))
	// DiskReadWait is the same for reads alone.
	DiskReadWait = inTables(85, "disk_read_wait", "Disk latency of reads",
		"mean time of a read, including its queue", measure.Seconds, measure.RateOf(DiskReadTime).Over(DiskReads))
	DiskQueue = charted(86, "disk_queue", "Disk queue",
		"reads and writes in progress or queued on all disks, on average", measure.Count, measure.RateOf(DiskQueueTime), measure.ValueOf(DiskQueueDepth))

	NetworkBusy = measure.New(measure.Measure{
		ID: "network_busy", Title: "Busiest network interface", Note: "share of the speed of its link, in the busier direction",
		Unit: measure.Ratio, Scope: measure.Host, Summary: measure.Mean, Spread: true, Rank: 90,
	}).Or(measure.ValueOf(busiestNetwork))
	_ = charted(91, "network_received_rate", "Network received", "per second", measure.Bytes, measure.RateOf(NetReceived))
	_ = charted(92, "network_sent_rate", "Network sent", "per second", measure.Bytes, measure.RateOf(NetSent))
	_ = charted(93, "network_packets", "Network packets", "received and sent per second", measure.PerSecond,
		measure.RateOf(netReceivedPackets).Plus(netSentPackets))
	Drops       = counted(94, "network_drops", "Packets dropped", measure.RateOf(netDrops))
	Retransmits = counted(95, "tcp_retransmits", "TCP segments sent again", measure.RateOf(retransmits))
	ListenDrops = counted(96, "tcp_listen_drops", "Connections dropped by a full listen queue", measure.RateOf(listenDrops))
	_           = inTables(97, "conntrack_used", "Connection tracking", "share of the table in use", measure.Ratio, measure.ValueOf(conntrack).Over(conntracks))
)

// charted declares a measure with a chart.
func charted(rank int, id, title, note string, unit measure.Unit, sources ...measure.Source) *measure.Measure {
	return measure.New(measure.Measure{ID: id, Title: title, Note: note, Unit: unit,
		Scope: measure.Host, Summary: measure.Mean, Rank: rank}).Or(sources...)
}

// inTables declares a measure without a chart.
func inTables(rank int, id, title, note string, unit measure.Unit, sources ...measure.Source) *measure.Measure {
	return measure.New(measure.Measure{ID: id, Title: title, Note: note, Unit: unit,
		Scope: measure.Host, Summary: measure.Mean, NoChart: true, Rank: rank}).Or(sources...)
}

// counted declares a measure of something that should not happen.
func counted(rank int, id, title string, sources ...measure.Source) *measure.Measure {
	return measure.New(measure.Measure{ID: id, Title: title, Note: "per second", Unit: measure.PerSecond,
		Scope: measure.Host, Summary: measure.Increase, Rank: rank}).Or(sources...)
}

// Cost of a transaction of the run on a machine.
var (
	CPUCost = cost(210, "cost_cpu", "CPU", "time", measure.Seconds, measure.RateOf(cpuUser).Plus(cpuSystem, cpuSoftIRQ, cpuIRQ))
	_       = cost(220, "cost_context_switches", "Context switches", "", measure.Count, measure.RateOf(Switches))
	_       = cost(230, "cost_disk_reads", "Disk reads", "operations", measure.Count, measure.RateOf(DiskReads))
	_       = cost(240, "cost_disk_writes", "Disk writes", "operations", measure.Count, measure.RateOf(DiskWrites))
	_       = cost(250, "cost_disk_read", "Disk reads", "bytes", measure.Bytes, measure.RateOf(DiskRead))
	_       = cost(260, "cost_disk_written", "Disk writes", "bytes", measure.Bytes, measure.RateOf(DiskWritten))
	_       = cost(270, "cost_disk_flushes", "Disk flushes", "operations", measure.Count, measure.RateOf(DiskFlushes))
	_       = cost(280, "cost_network", "Network", "bytes received and sent", measure.Bytes, measure.RateOf(NetReceived).Plus(NetSent))
)

func cost(rank int, id, title, note string, unit measure.Unit, sources ...measure.Source) *measure.Measure {
	return measure.New(measure.Measure{ID: id, Title: title, Note: note, Unit: unit,
		Scope: measure.Host, Summary: measure.Cost, NoChart: true, Rank: rank}).Or(sources...)
}

// File is the name of the file with the samples of the run's machines in a run directory. Its
// format is the same as for servers, see package record.
const File = "host.jsonl"
