package host

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// reading is the state of a machine at one moment. Both sources make a Status from it.
type reading struct {
	nodename, release string
	at                float64 // by the machine's own clock, in seconds; 0: unknown
	booted            float64 // Unix seconds; 0: unknown
	cpus              map[string]*cpuTime
	disks, networks   map[string]*device
	single            map[*measure.Metric]float64
	// available is the memory that programs can still allocate.
	available float64
}

// cpuTime is the time of one core by mode, in seconds.
type cpuTime [inIdle + 1]float64

// The modes, in the order of CPUTimes: the modes of a busy core come first.
const (
	inUser = iota // nice included
	inSystem
	inSoftIRQ
	inIRQ
	inSteal
	inIOWait
	inIdle
)

func (c *cpuTime) busy() float64  { return sum(c[:inIOWait]) }
func (c *cpuTime) total() float64 { return sum(c[:]) }

func sum(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// device is a disk or a network interface.
type device struct {
	values map[*measure.Metric]float64
}

func newReading() *reading {
	return &reading{
		cpus: map[string]*cpuTime{}, disks: map[string]*device{}, networks: map[string]*device{}, single: map[*measure.Metric]float64{},
	}
}

// maxDevices bounds the recorded devices of each kind.
const maxDevices = 32

// notDisks are partitions, as in node_exporter's defaults, devices composed of other disks, and
// devices that are not disks: their operations would count twice.
var notDisks = regexp.MustCompile(`^((ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p|mmcblk\d+p)\d+|(dm-|md|zram|sr|nbd|drbd).*)$`)

// IsDisk reports whether a device is a whole disk.
func IsDisk(device string) bool { return !notDisks.MatchString(device) }

// notLinks are interfaces without their own link.
var notLinks = regexp.MustCompile(`^(lo|(veth|docker|br-|virbr|vnet|tap|tun|cali|flannel|cni|dummy|ifb|bond|team|wg|sit|gre|erspan|ip6|ip_vti).*|.*[.:@].*)$`)

func (r *reading) set(devices map[string]*device, name string, m *measure.Metric, v float64) {
	d := devices[name]
	if d == nil {
		if len(devices) >= maxDevices {
			return
		}
		d = &device{values: map[*measure.Metric]float64{}}
		devices[name] = d
	}
	d.values[m] += v
}

func (r *reading) setDisk(name string, m *measure.Metric, v float64) {
	if IsDisk(name) {
		r.set(r.disks, name, m, v)
	}
}

func (r *reading) setNetwork(name string, m *measure.Metric, v float64) {
	if !notLinks.MatchString(name) {
		r.set(r.networks, name, m, v)
	}
}

// cpu returns a core's time.
func (r *reading) cpu(name string) *cpuTime {
	c := r.cpus[name]
	if c == nil {
		c = &cpuTime{}
		if len(r.cpus) < maxCores {
			r.cpus[name] = c
		}
	}
	return c
}

const maxCores = 4096

// Values are always set in the same order, which is fastest for the record.
var (
	singles      = []*measure.Metric{Switches, memoryTotal, memoryUsed, swapUsed, Swapped, retransmits, listenDrops, conntrack, conntracks, cpuWaiting, pressureCPU, pressureIO, pressureMemory}
	ofDisks      = []*measure.Metric{DiskRead, DiskWritten, DiskReads, DiskWrites, DiskFlushes, DiskReadTime, DiskWriteTime, DiskBusyTime, DiskQueueTime}
	ofInterfaces = []*measure.Metric{NetReceived, NetSent, netReceivedPackets, netSentPackets, netDrops, netSpeed}
)

// status returns the reading as a machine's values. previous is the previous reading, for the
// busiest core, disk and interface; nil: none.
func (r *reading) status(previous *reading) *engine.Status {
	out := &engine.Status{Version: r.release, Nodename: r.nodename}
	if r.booted > 0 && r.at > r.booted {
		out.Uptime = time.Duration((r.at - r.booted) * float64(time.Second))
	}
	var all cpuTime
	for _, c := range r.cpus {
		for mode, v := range c {
			all[mode] += v
		}
	}
	if len(r.cpus) > 0 {
		for mode, m := range CPUTimes {
			out.Set(m, all[mode])
		}
		out.Set(CoreCount, float64(len(r.cpus)))
	}
	if total, ok := r.single[memoryTotal]; ok && r.available > 0 {
		r.single[memoryUsed] = max(0, total-r.available)
	}
	for _, m := range singles {
		if v, ok := r.single[m]; ok {
			out.Set(m, v)
		}
	}
	setDevices(out, r.disks, ofDisks)
	setDevices(out, r.networks, ofInterfaces)
	r.setBusiest(out, previous)
	return out
}

func (r *reading) setBusiest(out *engine.Status, previous *reading) {
	if previous == nil || previous.booted != 0 && r.booted-previous.booted > 2 {
		return // first reading, or the machine was restarted
	}
	most, known := 0.0, false
	for name, c := range r.cpus {
		was := previous.cpus[name]
		if was == nil {
			continue
		}
		if total := c.total() - was.total(); total > 0 {
			most, known = max(most, (c.busy()-was.busy())/total), true
		}
	}
	if known {
		out.Set(BusiestCoreShare, min(1, most))
	}
	seconds := r.at - previous.at
	if previous.at == 0 || seconds <= 0 {
		return
	}
	most, known = 0, false
	for name, d := range r.disks {
		if was := previous.disks[name]; was != nil {
			most, known = max(most, (d.values[DiskBusyTime]-was.values[DiskBusyTime])/seconds), true
		}
	}
	if known {
		out.Set(BusiestDiskShare, min(1, most))
	}
	most, known = 0, false
	for name, d := range r.networks {
		was, speed := previous.networks[name], d.values[netSpeed]
		if was == nil || speed <= 0 {
			continue
		}
		for _, m := range []*measure.Metric{NetReceived, NetSent} {
			most, known = max(most, (d.values[m]-was.values[m])/seconds/speed), true
		}
	}
	if known {
		out.Set(busiestNetwork, min(1, most))
	}
}

func setDevices(out *engine.Status, devices map[string]*device, metrics []*measure.Metric) {
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		for _, m := range metrics {
			if v, ok := devices[name].values[m]; ok {
				out.Set(m, v, name)
			}
		}
	}
}
