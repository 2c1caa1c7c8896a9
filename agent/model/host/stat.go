package host

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// kernelStat is the part of /proc/stat that is read. Package procfs reads the whole file, which has thousands of
// numbers for the interrupts of a machine with many cores.
type kernelStat struct {
	cores    map[string]cpuTime
	switches float64
	booted   float64 // seconds of Unix time
}

// jiffies is the number of /proc's units of time in a second, the same on all machines that Go supports.
const jiffies = 100

func readStat(t tree) (*kernelStat, error) {
	text, err := t.read("/proc/stat")
	if err != nil {
		return nil, err
	}
	return parseStat(text)
}

func parseStat(text []byte) (*kernelStat, error) {
	s := &kernelStat{cores: map[string]cpuTime{}}
	for line := range bytes.Lines(text) {
		name, rest, _ := bytes.Cut(line, []byte(" "))
		switch {
		case bytes.HasPrefix(name, []byte("cpu")):
			if core := string(name[len("cpu"):]); core != "" { // else the sum of all
				s.cores[core] = coreTime(rest)
			}
		case string(name) == "ctxt":
			s.switches, _ = strconv.ParseFloat(string(bytes.TrimSpace(rest)), 64)
		case string(name) == "btime":
			s.booted, _ = strconv.ParseFloat(string(bytes.TrimSpace(rest)), 64)
		}
	}
	if len(s.cores) == 0 {
		return nil, errors.New("/proc/stat has no cores")
	}
	return s, nil
}

// coreTime reads the numbers of a line: user, nice, system, idle, iowait, irq, softirq, steal.
// Guest time, which follows, is in user and nice. What an old kernel lacks is 0.
func coreTime(line []byte) cpuTime {
	var v [8]float64
	for i := range v {
		line = bytes.TrimLeft(line, " ")
		end := bytes.IndexAny(line, " \n")
		if end < 0 {
			end = len(line)
		}
		n, err := strconv.ParseUint(string(line[:end]), 10, 64)
		if err != nil {
			break
		}
		v[i], line = float64(n)/jiffies, line[end:]
	}
	return cpuTime{inUser: v[0] + v[1], inSystem: v[2], inIdle: v[3], inIOWait: v[4], inIRQ: v[5], inSoftIRQ: v[6], inSteal: v[7]}
}

// setDisks reads /proc/diskstats: two numbers of the device and its name, then counters. Kernels before 5.5 lack the
// last two.
func (r *reading) setDisks(text []byte) {
	const sector, names, least = 512, 3, 11
	factors := []struct {
		metric *measure.Metric
		factor float64
	}{
		{DiskReads, 1}, {}, {DiskRead, sector}, {DiskReadTime, 1e-3},
		{DiskWrites, 1}, {}, {DiskWritten, sector}, {DiskWriteTime, 1e-3},
		{}, {DiskBusyTime, 1e-3}, {DiskQueueTime, 1e-3},
		{}, {}, {}, {}, {DiskFlushes, 1},
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < names+least {
			continue
		}
		device := string(fields[names-1])
		if notDisks.MatchString(device) {
			continue
		}
		for i, f := range fields[names:min(len(fields), names+len(factors))] {
			if factors[i].metric == nil {
				continue
			}
			if n, err := strconv.ParseUint(string(f), 10, 64); err == nil {
				r.set(r.disks, device, factors[i].metric, float64(n)*factors[i].factor)
			}
		}
	}
}

// setNetworks reads /proc/net/dev: after two lines of titles, one line per interface with eight counters of received
// and eight of sent data.
func (r *reading) setNetworks(text []byte) {
	counters := []*measure.Metric{
		NetReceived, netReceivedPackets, nil, netDrops, nil, nil, nil, nil,
		NetSent, netSentPackets, nil, netDrops,
	}
	for line := range bytes.Lines(text) {
		at := bytes.LastIndexByte(line, ':')
		name := string(bytes.TrimSpace(line[:max(at, 0)]))
		if name == "" || notLinks.MatchString(name) {
			continue
		}
		for i, f := range bytes.Fields(line[at+1:]) {
			if i >= len(counters) || counters[i] == nil {
				continue
			}
			if n, err := strconv.ParseUint(string(f), 10, 64); err == nil {
				r.set(r.networks, name, counters[i], float64(n))
			}
		}
	}
}
