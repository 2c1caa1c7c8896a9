package host

import (
	"path"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// Quota measures how a process is held by the CPU quota of its control group or of one
// around it. The zero Quota has read nothing.
type Quota struct{ group, periods, throttled float64 }

// Read adds to a sample of the process's machine the share of the quota's periods since the
// previous Read in which the process was held, 0 without a quota. The first one adds nothing.
func (q *Quota) Read(pid int, out *engine.Status) {
	periods, throttled, ok := throttling(text("/proc/"+strconv.Itoa(pid)+"/cgroup"), "/sys/fs/cgroup")
	if !ok {
		return
	}
	before := *q
	*q = Quota{1, periods, throttled}
	switch {
	case before.group == 0 || periods < before.periods:
	case periods == before.periods:
		out.Set(toolHeld, 0)
	default:
		out.Set(toolHeld, min(1, max(0, (throttled-before.throttled)/(periods-before.periods))))
	}
}

// throttling returns the periods of the quota that holds most, and in how many it did; 0
// without a quota. groups is the process's file cgroup; ok is false if that is empty.
func throttling(groups, root string) (periods, throttled float64, ok bool) {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		ok = true
		mount := root
		for controller := range strings.SplitSeq(fields[1], ",") {
			if controller == "cpu" {
				mount = root + "/cpu"
			}
		}
		if fields[1] != "" && mount == root {
			continue // version 1, another controller
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			stat := numbersOf("\n"+text(mount+group+"/cpu.stat"), "nr_periods", "nr_throttled")
			if stat["nr_throttled"] > throttled || periods == 0 {
				periods, throttled = max(periods, stat["nr_periods"]), stat["nr_throttled"]
			}
			if group == "/" {
				break
			}
		}
	}
	return periods, throttled, ok
}
