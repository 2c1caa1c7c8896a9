package host

import (
	"path"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// Quota measures how a process is held by the CPU quota of its control group or of one
// around it. The zero Quota has read nothing.
type Quota struct {
	files              files
	read               bool
	periods, throttled float64
}

// Read adds to a sample of the process's machine the share of the quota's periods since the
// previous Read in which the process was held, 0 without a quota. The first one adds nothing.
func (q *Quota) Read(pid int, out *engine.Status) {
	groups, err := q.files.read("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return
	}
	periods, throttled, ok := q.files.throttling(string(groups), "/sys/fs/cgroup")
	if !ok {
		return
	}
	switch {
	case !q.read || periods < q.periods:
	case periods == q.periods:
		out.Set(toolHeld, 0)
	default:
		out.Set(toolHeld, min(1, max(0, (throttled-q.throttled)/(periods-q.periods))))
	}
	q.read, q.periods, q.throttled = true, periods, throttled
}

// throttling returns the periods of the quota that holds most, and in how many it did; 0
// without a quota. groups is the process's file cgroup; ok is false if that is empty.
func (f *files) throttling(groups, root string) (periods, throttled float64, ok bool) {
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
			stat, _ := f.read(path.Join(mount, group, "cpu.stat")) // empty where no controller is
			n, _ := named(stat, "nr_periods")
			if held, _ := named(stat, "nr_throttled"); held > throttled || periods == 0 {
				periods, throttled = max(periods, n), held
			}
			if group == "/" {
				break
			}
		}
	}
	return periods, throttled, ok
}
