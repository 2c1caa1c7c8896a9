package host

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// Governor is the fact that names how the CPUs' frequency is chosen.
const Governor = "cpu_governor"

// Settings implements engine.Configured: what the machine is and how its kernel is set, as
// far as it matters to a benchmark. What the system does not show is absent.
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
	for _, name := range []string{"vm.swappiness", "net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_tw_reuse"} {
		set(name, text("/proc/sys/"+strings.ReplaceAll(name, ".", "/")))
	}
	for name, speed := range p.speeds {
		set("link_"+name+"_mbit", strconv.FormatFloat(speed*8/1e6, 'f', 0, 64))
	}
	return facts, nil
}

// text returns what a small file has; empty if it can't be read.
func text(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(data))
}

// chosen returns the word in brackets of "always [madvise] never".
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
