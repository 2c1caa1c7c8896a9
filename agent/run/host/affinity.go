package host

import (
	"bytes"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// littleCPU: processes with less than this share of the CPU of the program's busiest process do not
// count, such as a shell that started it.
const littleCPU = 0.1

// allowed returns how many cores some processes may use together, ignoring those that use little
// CPU; 0 if unknown.
func (p *Programs) allowed(all map[int]process, pids []int) int {
	most := 0.0
	for _, pid := range pids {
		most = max(most, all[pid].own)
	}
	cores := map[int]bool{}
	for _, pid := range pids {
		if all[pid].own < littleCPU*most {
			continue
		}
		text, err := p.files.read(p.proc() + "/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue // it has ended
		}
		_, list, _ := bytes.Cut(text, []byte("\nCpus_allowed_list:"))
		list, _, _ = bytes.Cut(list, []byte("\n"))
		addCores(cores, list)
	}
	return len(cores)
}

// addCores adds the numbers of a list such as 0-3,8, see cpuset(7).
func addCores(to map[int]bool, list []byte) {
	for part := range bytes.SplitSeq(bytes.TrimSpace(list), []byte(",")) {
		from, until, isRange := bytes.Cut(part, []byte("-"))
		if !isRange {
			until = from
		}
		first, err1 := strconv.Atoi(string(from))
		last, err2 := strconv.Atoi(string(until))
		if err1 != nil || err2 != nil || first < 0 {
			continue
		}
		for n := first; n <= min(last, first+maxCores); n++ {
			to[n] = true
		}
	}
}

var (
	toolCores    = gauge("host_tool_cores")
	serversCores = gauge("host_servers_cores")
)

// ToolCores and ServersCores are read together with the CPU times of all processes, and unknown
// where the tool's process is unknown.
var (
	ToolCores    = inTables(71, "tool_cores", "Cores that the tool may use", "of all cores; fewer if it is pinned (taskset, cpuset)", measure.Count, measure.ValueOf(toolCores))
	ServersCores = inTables(71, "servers_cores", "Cores that servers and proxies may use", "of all cores; fewer if they are pinned (taskset, cpuset)", measure.Count, measure.ValueOf(serversCores))
)
