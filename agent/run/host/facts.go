package host

import (
	"bufio"
	"bytes"
	"context"
	"os"
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

// Settings implements engine.Configured: the machine's hardware and kernel settings, as far as they
// matter to a benchmark. Facts that the system does not report are absent.
func (p *procfsProber) Settings(context.Context) (engine.Settings, error) {
	facts := engine.Settings{"kernel": p.release}
	set := func(name, value string) {
		if value = strings.Join(strings.Fields(value), " "); value != "" {
			facts[name] = value
		}
	}
	set("cpu_model", cpuModel())
	if p.previous != nil {
		set("cpu_cores", strconv.Itoa(len(p.previous.cpus)))
		if v := p.previous.single[memoryTotal]; v > 0 {
			set("memory_bytes", strconv.FormatFloat(v, 'f', 0, 64))
		}
	}
	if nodes, err := filepath.Glob("/sys/devices/system/node/node[0-9]*"); err == nil && len(nodes) > 0 {
		set("numa_nodes", strconv.Itoa(len(nodes)))
	}
	set("os", osName())
	set("hardware", text("/sys/class/dmi/id/sys_vendor")+" "+text("/sys/class/dmi/id/product_name"))
	set(Governor, text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
	set("transparent_hugepage", chosen(text("/sys/kernel/mm/transparent_hugepage/enabled")))
	for _, name := range []string{"vm.swappiness", "net.core.somaxconn", PortRange, "net.ipv4.tcp_tw_reuse"} {
		set(name, text("/proc/sys/"+strings.ReplaceAll(name, ".", "/")))
	}
	for name, speed := range p.speeds {
		set("link_"+name+"_mbit", strconv.FormatFloat(speed*8/1e6, 'f', 0, 64))
	}
	for name, value := range fileSystems(text("/proc/self/mountinfo")) {
		set("filesystem_"+name, value)
	}
	for name, value := range receiveQueues("/sys/class/net") {
		set(ReceiveQueues+name, value)
	}
	if p.previous != nil {
		for name := range p.previous.disks {
			set("disk_"+name, diskFacts("/sys/block/"+name))
		}
	}
	return facts, nil
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
func receiveQueues(net string) map[string]string {
	found := map[string]string{}
	interfaces, err := os.ReadDir(net)
	if err != nil {
		return nil
	}
	for _, entry := range interfaces {
		name := entry.Name()
		queues, err := filepath.Glob(filepath.Join(net, name, "queues", "rx-*"))
		if err != nil || len(queues) == 0 || notLinks.MatchString(name) {
			continue
		}
		value := strconv.Itoa(len(queues))
		switch mask := strings.Trim(text(filepath.Join(queues[0], "rps_cpus")), "0,"); {
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
func diskFacts(folder string) string {
	var facts []string
	if model := text(folder + "/device/model"); model != "" {
		facts = append(facts, model)
	}
	if sectors, ok := new(files).number(folder + "/size"); ok {
		facts = append(facts, strconv.FormatFloat(sectors*512, 'f', 0, 64)+" bytes")
	}
	if kind, ok := new(files).number(folder + "/queue/rotational"); ok && kind == 1 {
		facts = append(facts, "rotational")
	}
	if scheduler := text(folder + "/queue/scheduler"); scheduler != "" {
		if word := chosen(scheduler); word != "" {
			scheduler = word
		}
		facts = append(facts, "scheduler "+scheduler)
	}
	if cache := text(folder + "/queue/write_cache"); cache != "" {
		facts = append(facts, cache)
	}
	return strings.Join(facts, ", ")
}

// ProcessLimits returns the limits of a process on this machine; nil if it has ended.
func ProcessLimits(pid int) engine.Settings {
	facts := engine.Settings{}
	for line := range strings.Lines(text("/proc/" + strconv.Itoa(pid) + "/limits")) {
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

// text returns the content of a small file; empty if it can't be read.
func text(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

// chosen returns the word in brackets, as in "always [madvise] never".
func chosen(words string) string {
	_, rest, _ := strings.Cut(words, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return value
		}
	}
	return ""
}

func osName() string {
	for line := range strings.Lines(text("/etc/os-release")) {
		if value, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
