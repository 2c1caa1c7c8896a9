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
	files    openFiles
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
	p.release = word(&p.files, "/proc/sys/kernel/osrelease")
	return p
}

// Close implements engine.Prober.
func (p *procfsProber) Close() error {
	p.files.Close()
	return nil
}

// Probe implements engine.Prober.
func (p *procfsProber) Probe(context.Context) (*engine.Status, error) {
	r := newReading()
	if err := r.fill(&p.files); err != nil {
		return nil, err
	}
	now := time.Now()
	r.nodename, r.release, r.at = p.nodename, p.release, float64(now.UnixMicro())/1e6
	if now.Sub(p.speedsAt) >= linkEvery {
		p.speedsAt, p.speeds = now, speeds(&p.files.files, r)
	}
	r.setSpeeds(p.speeds)
	out := r.status(p.previous)
	p.previous = r
	return out, nil
}

// fill reads a machine's kernel. Without /proc/stat it fails; other values may be absent.
func (r *reading) fill(t tree) error {
	stat, err := readStat(t)
	if err != nil {
		return err
	}
	r.booted = stat.booted
	for core, c := range stat.cores {
		*r.cpu(core) = c
	}
	r.single[Switches] = stat.switches
	r.setMemory(t)
	if text, err := t.read("/proc/diskstats"); err == nil {
		r.setDisks(text)
	}
	if text, err := t.read("/proc/net/dev"); err == nil {
		r.setNetworks(text)
	}
	r.setTCP(t)
	for name, m := range map[string]*measure.Metric{"cpu": pressureCPU, "io": pressureIO, "memory": pressureMemory} {
		if text, err := t.read("/proc/pressure/" + name); err == nil {
			if _, total, ok := bytes.Cut(text, []byte(" total=")); ok { // the line for some tasks, then for all
				if us, ok := firstNumber(total); ok {
					r.single[m] = us / 1e6
				}
			}
		}
	}
	return nil
}

func (r *reading) setMemory(t tree) {
	if text, err := t.read("/proc/meminfo"); err == nil {
		const kB = 1024
		value := func(name string) float64 {
			v, _ := named(text, name)
			return v * kB
		}
		r.single[memoryTotal], r.available = value("MemTotal"), value("MemAvailable")
		r.single[swapUsed] = value("SwapTotal") - value("SwapFree")
	}
	if text, err := t.read("/proc/vmstat"); err == nil {
		in, read := named(text, "pswpin")
		out, written := named(text, "pswpout")
		if read && written {
			r.single[Swapped] = in + out
		}
	}
}

func (r *reading) setTCP(t tree) {
	for path, from := range map[string]struct {
		prefix, name string
		metric       *measure.Metric
	}{"/proc/net/snmp": {"Tcp:", "RetransSegs", retransmits}, "/proc/net/netstat": {"TcpExt:", "ListenDrops", listenDrops}} {
		if text, err := t.read(path); err == nil {
			if v, ok := paired(text, from.prefix, from.name); ok {
				r.single[from.metric] = v
			}
		}
	}
	for name, m := range map[string]*measure.Metric{"count": conntrack, "max": conntracks} {
		if v, ok := number(t, "/proc/sys/net/netfilter/nf_conntrack_"+name); ok {
			r.single[m] = v
		}
	}
}

// setWaiting reads for how long tasks waited for a core: the eighth number of each core in
// /proc/schedstat, in nanoseconds.
func (r *reading) setWaiting(t tree) {
	text, err := t.read("/proc/schedstat")
	if err != nil {
		return
	}
	const waited = 8
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > waited && bytes.HasPrefix(line, []byte("cpu")) {
			if ns, ok := firstNumber(fields[waited]); ok {
				r.single[cpuWaiting] += ns / 1e9
			}
		}
	}
}

func (r *reading) setSpeeds(links map[string]float64) {
	for name := range r.networks {
		if v := links[name]; v > 0 {
			r.set(r.networks, name, netSpeed, v)
		}
	}
}

// speeds returns the speeds of the links in bytes per second, without those that are unknown, as for
// most virtual interfaces.
func speeds(t tree, r *reading) map[string]float64 {
	found := map[string]float64{}
	for name := range r.networks {
		if name != filepath.Base(name) {
			continue
		}
		if mbit, ok := number(t, "/sys/class/net/"+name+"/speed"); ok && mbit > 0 {
			found[name] = mbit * 1e6 / 8
		}
	}
	return found
}
