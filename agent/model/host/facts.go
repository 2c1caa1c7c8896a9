package host

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Facts that are known to limit runs.
const (
	// Governor selects the CPUs' frequency.
	Governor = "cpu_governor"
	// PortRange is the range of ports for outgoing connections.
	PortRange = "net.ipv4.ip_local_port_range"
	// OpenFiles and Processes are limits of the tool's process: each connection needs a file.
	OpenFiles = "tool_nofile"
	Processes = "tool_nproc"
	// ReceiveQueues is the prefix of facts about network interfaces with a single queue for
	// received packets, which one core serves unless RPS spreads them.
	ReceiveQueues = "receive_queues_"
)

// OneQueue is the value of ReceiveQueues for one queue without RPS.
const OneQueue = "1, no RPS"

// Settings implements engine.Configured.
func (p *procfsProber) Settings(context.Context) (engine.Settings, error) {
	return facts(&p.files.files, p.previous, p.speeds), nil
}

// facts returns the machine's hardware and kernel settings, as far as they matter to a benchmark. Facts
// that the system does not report are absent. r is a reading of the machine, nil if there is none.
func facts(t tree, r *reading, links map[string]float64) engine.Settings {
	facts := engine.Settings{}
	set := func(name, value string) {
		if value = strings.Join(strings.Fields(value), " "); value != "" {
			facts[name] = value
		}
	}
	set("cpu_model", cpuModel(t))
	if r != nil {
		set("kernel", r.release)
		set("cpu_cores", strconv.Itoa(len(r.cpus)))
		if v := r.single[memoryTotal]; v > 0 {
			set("memory_bytes", strconv.FormatFloat(v, 'f', 0, 64))
		}
		for name := range r.disks {
			set("disk_"+name, diskFacts(t, "/sys/block/"+name))
		}
	}
	if nodes := t.glob("/sys/devices/system/node/node[0-9]*"); len(nodes) > 0 {
		set("numa_nodes", strconv.Itoa(len(nodes)))
	}
	set("os", osName(t))
	set("hardware", word(t, "/sys/class/dmi/id/sys_vendor")+" "+word(t, "/sys/class/dmi/id/product_name"))
	set(Governor, word(t, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
	set("transparent_hugepage", chosen(word(t, "/sys/kernel/mm/transparent_hugepage/enabled")))
	for _, name := range []string{"vm.swappiness", "net.core.somaxconn", PortRange, "net.ipv4.tcp_tw_reuse"} {
		set(name, word(t, "/proc/sys/"+strings.ReplaceAll(name, ".", "/")))
	}
	for name, speed := range links {
		set("link_"+name+"_mbit", strconv.FormatFloat(speed*8/1e6, 'f', 0, 64))
	}
	for name, value := range fileSystems(word(t, "/proc/self/mountinfo")) {
		set("filesystem_"+name, value)
	}
	for name, value := range receiveQueues(t, "/sys/class/net") {
		set(ReceiveQueues+name, value)
	}
	return facts
}

// maxFileSystems bounds the recorded file systems.
const maxFileSystems = 16

// fileSystems returns the file systems on disks, plus the root file system, by mount point: type,
// device and options.
func fileSystems(mounts string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		mount, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 6 || len(rest) < 3 {
			continue
		}
		// Other mounts of the same device are parts of it.
		if place := mount[4]; (strings.HasPrefix(rest[1], "/dev/") && mount[3] == "/" || place == "/") && len(found) < maxFileSystems {
			options := strings.Split(mount[5], ",")
			for option := range strings.SplitSeq(rest[2], ",") {
				if !slices.Contains(options, option) {
					options = append(options, option)
				}
			}
			found[place] = rest[0] + " on " + rest[1] + " " + strings.Join(options, ",")
		}
	}
	return found
}

// receiveQueues returns how interfaces with a link distribute received packets over cores.
func receiveQueues(t tree, net string) map[string]string {
	found := map[string]string{}
	for _, folder := range t.glob(net + "/*") {
		name := filepath.Base(folder)
		queues := t.glob(folder + "/queues/rx-*")
		if len(queues) == 0 || notLinks.MatchString(name) {
			continue
		}
		value := strconv.Itoa(len(queues))
		switch mask := strings.Trim(word(t, queues[0]+"/rps_cpus"), "0,"); {
		case mask != "":
			value += ", RPS"
		case len(queues) == 1:
			value = OneQueue
		}
		found[name] = value
	}
	return found
}

// diskFacts describes a disk from its folder in /sys/block.
func diskFacts(t tree, folder string) string {
	var facts []string
	if model := word(t, folder+"/device/model"); model != "" {
		facts = append(facts, model)
	}
	if sectors, ok := number(t, folder+"/size"); ok {
		facts = append(facts, strconv.FormatFloat(sectors*512, 'f', 0, 64)+" bytes")
	}
	if kind, ok := number(t, folder+"/queue/rotational"); ok && kind == 1 {
		facts = append(facts, "rotational")
	}
	if scheduler := word(t, folder+"/queue/scheduler"); scheduler != "" {
		if word := chosen(scheduler); word != "" {
			scheduler = word
		}
		facts = append(facts, "scheduler "+scheduler)
	}
	if cache := word(t, folder+"/queue/write_cache"); cache != "" {
		facts = append(facts, cache)
	}
	return strings.Join(facts, ", ")
}

// ProcessLimits returns the limits of a process on this machine; nil if it has ended.
func ProcessLimits(pid int) engine.Settings {
	facts := engine.Settings{}
	for line := range strings.Lines(word(new(files), "/proc/"+strconv.Itoa(pid)+"/limits")) {
		for title, name := range map[string]string{"Max open files": OpenFiles, "Max processes": Processes} {
			if rest, ok := strings.CutPrefix(line, title); ok {
				if soft := strings.Fields(rest); len(soft) > 0 {
					facts[name] = soft[0]
				}
			}
		}
	}
	if len(facts) == 0 {
		return nil
	}
	return facts
}

// chosen returns the word in brackets, as in "always [madvise] never".
func chosen(words string) string {
	_, rest, _ := strings.Cut(words, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

func cpuModel(t tree) string {
	text, _ := t.read("/proc/cpuinfo") // unknown without it
	for line := range bytes.Lines(text) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "model name" {
			return string(value)
		}
	}
	return ""
}

func osName(t tree) string {
	for line := range strings.Lines(word(t, "/etc/os-release")) {
		if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
