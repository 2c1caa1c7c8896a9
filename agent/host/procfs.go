package host

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// procfsProber reads the agent's own machine. What the system does not have, such as
// pressure, is absent.
type procfsProber struct {
	fs       procfs.FS
	nodename string
	release  string
	speeds   map[string]float64 // of links, in bytes per second
	speedsAt time.Time
	previous *reading
}

// linkEvery is how often the speeds of links are read again.
const linkEvery = time.Minute

func newProcfsProber() (*procfsProber, error) {
	p := &procfsProber{}
	var err error
	if p.fs, err = procfs.NewDefaultFS(); err != nil {
		return nil, err
	}
	p.nodename, _ = os.Hostname() // an unknown name is no one's
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	p.release = strings.TrimSpace(string(release))
	return p, nil
}

// Close implements engine.Prober.
func (p *procfsProber) Close() error { return nil }

// Probe implements engine.Prober.
func (p *procfsProber) Probe(context.Context) (*engine.Status, error) {
	stat, err := readStat()
	if err != nil {
		return nil, err
	}
	r := newReading()
	now := time.Now()
	r.nodename, r.release = p.nodename, p.release
	r.at, r.booted = float64(now.UnixMicro())/1e6, stat.booted
	for core, c := range stat.cores {
		*r.cpu(core) = c
	}
	r.single[switches] = stat.switches
	p.readMemory(r)
	if text, err := os.ReadFile("/proc/diskstats"); err == nil {
		r.setDisks(text)
	}
	p.readNetwork(r, now)
	for name, m := range map[string]*measure.Metric{"cpu": pressureCPU, "io": pressureIO, "memory": pressureMemory} {
		if psi, err := p.fs.PSIStatsForResource(name); err == nil && psi.Some != nil {
			r.single[m] = float64(psi.Some.Total) / 1e6
		}
	}
	out := r.status(p.previous)
	p.previous = r
	return out, nil
}

func (p *procfsProber) readMemory(r *reading) {
	if m, err := p.fs.Meminfo(); err == nil {
		for metric, v := range map[*measure.Metric]*uint64{memoryTotal: m.MemTotalBytes, swapUsed: m.SwapTotalBytes} {
			if v != nil {
				r.single[metric] = float64(*v)
			}
		}
		if m.SwapFreeBytes != nil {
			r.single[swapUsed] -= float64(*m.SwapFreeBytes)
		}
		if m.MemAvailableBytes != nil {
			r.available = float64(*m.MemAvailableBytes)
		}
	}
	for _, v := range numbers("/proc/vmstat", "pswpin", "pswpout") {
		r.single[swapped] += v
	}
}

func (p *procfsProber) readNetwork(r *reading, now time.Time) {
	if all, err := p.fs.NetDev(); err == nil {
		if now.Sub(p.speedsAt) >= linkEvery {
			p.speedsAt, p.speeds = now, map[string]float64{}
			for name := range all {
				if v := speedOf(name); v > 0 {
					p.speeds[name] = v
				}
			}
		}
		for name, d := range all {
			if notLinks.MatchString(name) {
				continue
			}
			set := func(m *measure.Metric, v uint64) { r.set(r.networks, name, m, float64(v)) }
			set(netReceived, d.RxBytes)
			set(netSent, d.TxBytes)
			set(netReceivedPackets, d.RxPackets)
			set(netSentPackets, d.TxPackets)
			set(netDrops, d.RxDropped+d.TxDropped)
			if v := p.speeds[name]; v > 0 {
				r.set(r.networks, name, netSpeed, v)
			}
		}
	}
	if v, ok := pairs("/proc/net/snmp", "Tcp:", "RetransSegs"); ok {
		r.single[retransmits] = v
	}
	if v, ok := pairs("/proc/net/netstat", "TcpExt:", "ListenDrops"); ok {
		r.single[listenDrops] = v
	}
	for name, m := range map[string]*measure.Metric{"count": conntrack, "max": conntracks} {
		if v, ok := numberIn("/proc/sys/net/netfilter/nf_conntrack_" + name); ok {
			r.single[m] = v
		}
	}
}

// speedOf returns the speed of an interface's link in bytes per second, 0 if it is
// unknown, as that of most virtual ones.
func speedOf(name string) float64 {
	if name != filepath.Base(name) {
		return 0
	}
	mbit, ok := numberIn("/sys/class/net/" + name + "/speed")
	if !ok {
		return 0
	}
	return max(0, mbit) * 1e6 / 8
}

// numberIn returns the number that a file consists of.
func numberIn(path string) (float64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(bytes.TrimSpace(data)), 64)
	return v, err == nil
}

// numbers returns lines of the form "name value" of a file.
func numbers(path string, names ...string) map[string]float64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return numbersOf(string(data), names...)
}

// numbersOf returns lines of the form "name value", except for the first line.
func numbersOf(data string, names ...string) map[string]float64 {
	found := map[string]float64{}
	for _, name := range names {
		_, rest, ok := strings.Cut(data, "\n"+name+" ")
		if !ok {
			continue
		}
		value, _, _ := strings.Cut(rest, "\n")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = v
		}
	}
	return found
}

// pairs returns a value of a file whose lines come in pairs, one of names and one of
// values, both with the same prefix.
func pairs(path, prefix, name string) (float64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		fields := strings.Fields(line)
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n == name && i < len(fields) {
				v, err := strconv.ParseFloat(fields[i], 64)
				return v, err == nil
			}
		}
		return 0, false
	}
	return 0, false
}
