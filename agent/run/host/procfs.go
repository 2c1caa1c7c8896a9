package host

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// procfsProber reads the agent's own machine. Values that the system does not have, such as
// pressure, are absent.
type procfsProber struct {
	files    files
	nodename string
	release  string
	speeds   map[string]float64 // of links, in bytes per second
	speedsAt time.Time
	previous *reading
}

// linkEvery is how often the speeds of links are read again.
const linkEvery = time.Minute

func newProcfsProber() *procfsProber {
	p := &procfsProber{}
	p.nodename, _ = os.Hostname() // an unknown name matches nothing
	p.release = text("/proc/sys/kernel/osrelease")
	return p
}

// Close implements engine.Prober.
func (p *procfsProber) Close() error { return nil }

// Probe implements engine.Prober.
func (p *procfsProber) Probe(context.Context) (*engine.Status, error) {
	stat, err := readStat(&p.files)
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
	r.single[Switches] = stat.switches
	p.readMemory(r)
	if text, err := p.files.read("/proc/diskstats"); err == nil {
		r.setDisks(text)
	}
	p.readNetwork(r, now)
	for name, m := range map[string]*measure.Metric{"cpu": pressureCPU, "io": pressureIO, "memory": pressureMemory} {
		if text, err := p.files.read("/proc/pressure/" + name); err == nil {
			if _, total, ok := bytes.Cut(text, []byte(" total=")); ok { // the line for some tasks, then for all
				if us, ok := firstNumber(total); ok {
					r.single[m] = us / 1e6
				}
			}
		}
	}
	out := r.status(p.previous)
	p.previous = r
	return out, nil
}

func (p *procfsProber) readMemory(r *reading) {
	if text, err := p.files.read("/proc/meminfo"); err == nil {
		const kB = 1024
		value := func(name string) float64 {
			v, _ := named(text, name)
			return v * kB
		}
		r.single[memoryTotal], r.available = value("MemTotal"), value("MemAvailable")
		r.single[swapUsed] = value("SwapTotal") - value("SwapFree")
	}
	if text, err := p.files.read("/proc/vmstat"); err == nil {
		in, read := named(text, "pswpin")
		out, written := named(text, "pswpout")
		if read && written {
			r.single[Swapped] = in + out
		}
	}
}

func (p *procfsProber) readNetwork(r *reading, now time.Time) {
	if text, err := p.files.read("/proc/net/dev"); err == nil {
		r.setNetworks(text)
	}
	if now.Sub(p.speedsAt) >= linkEvery {
		p.speedsAt, p.speeds = now, map[string]float64{}
		for name := range r.networks {
			if v := p.speedOf(name); v > 0 {
				p.speeds[name] = v
			}
		}
	}
	for name := range r.networks {
		if v := p.speeds[name]; v > 0 {
			r.set(r.networks, name, netSpeed, v)
		}
	}
	for path, from := range map[string]struct {
		prefix, name string
		metric       *measure.Metric
	}{"/proc/net/snmp": {"Tcp:", "RetransSegs", retransmits}, "/proc/net/netstat": {"TcpExt:", "ListenDrops", listenDrops}} {
		if text, err := p.files.read(path); err == nil {
			if v, ok := paired(text, from.prefix, from.name); ok {
				r.single[from.metric] = v
			}
		}
	}
	for name, m := range map[string]*measure.Metric{"count": conntrack, "max": conntracks} {
		if v, ok := p.files.number("/proc/sys/net/netfilter/nf_conntrack_" + name); ok {
			r.single[m] = v
		}
	}
}

// speedOf returns the speed of an interface's link in bytes per second; 0 if unknown, as for most
// virtual interfaces.
func (p *procfsProber) speedOf(name string) float64 {
	if name != filepath.Base(name) {
		return 0
	}
	mbit, ok := p.files.number("/sys/class/net/" + name + "/speed")
	if !ok {
		return 0
	}
	return max(0, mbit) * 1e6 / 8
}
