package host

import (
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// quota measures how a process is held by the CPU quota of its control group or of a parent group. The zero quota has
// read nothing.
type quota struct {
	at   time.Time
	last throttling
}

// throttling is the effect of the quota that held a process most: all of its periods, the periods in which it
// throttled, and the throttled seconds, which count once for each core. All are 0 without a quota.
type throttling struct{ periods, throttled, seconds float64 }

// quotas reads what the quotas of processes did at one tick. Most processes are in the same groups.
type quotas struct {
	files *openFiles
	proc  string
	known map[string]throttling // by the content of a process's file cgroup
}

// of returns what the quotas of a process did; false if it has ended.
func (q *quotas) of(pid int) (throttling, bool) {
	groups, err := q.files.read(q.proc + "/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return throttling{}, false
	}
	if is, ok := q.known[string(groups)]; ok {
		return is, true
	}
	text := string(groups)
	is, ok := q.files.throttling(text, "/sys/fs/cgroup")
	if ok {
		q.known[text] = is
	}
	return is, ok
}

// since takes the state of the quota now. It returns the share of the time since the previous reading in which the
// quota held the process, at most the share of the periods, since seconds count once for each core. ok is false at
// the first reading.
func (q *quota) since(is throttling, now time.Time) (held float64, ok bool) {
	was, seconds := q.last, now.Sub(q.at).Seconds()
	ok = !q.at.IsZero() && is.periods >= was.periods && seconds > 0
	if is.periods > was.periods {
		held = max(0, min(1, (is.throttled-was.throttled)/(is.periods-was.periods), (is.seconds-was.seconds)/seconds))
	}
	q.at, q.last = now, is
	return held, ok
}

// readQuotas adds the shares of the time in which quotas held the tool, and the server that is held most.
func (p *Programs) readQuotas(tool int, now time.Time, out *engine.Status) {
	known, all := p.quotas, quotas{&p.open, p.proc(), map[string]throttling{}}
	p.quotas = make(map[int]*quota, len(p.serverPIDs)+1)
	read := func(pid int) (float64, bool) {
		q := known[pid]
		if q == nil {
			q = &quota{}
		}
		p.quotas[pid] = q
		is, ok := all.of(pid)
		if !ok {
			return 0, false
		}
		return q.since(is, now)
	}
	if held, ok := read(tool); ok {
		out.Set(toolHeld, held)
	}
	most, sampled := 0.0, false
	for _, pid := range p.serverPIDs {
		if held, ok := read(pid); ok {
			most, sampled = max(most, held), true
		}
	}
	if sampled {
		out.Set(serversHeld, most)
	}
}

// throttling reads what the quotas of a process's control groups did. groups is the process's file
// cgroup; ok is false if that is empty.
func (f *openFiles) throttling(groups, root string) (most throttling, ok bool) {
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
			periods, _ := named(stat, "nr_periods")
			throttled, _ := named(stat, "nr_throttled")
			if throttled > most.throttled || most.periods == 0 {
				nanoseconds, _ := named(stat, "throttled_time") // version 1
				microseconds, _ := named(stat, "throttled_usec")
				most = throttling{max(most.periods, periods), throttled, nanoseconds/1e9 + microseconds/1e6}
			}
			if group == "/" {
				break
			}
		}
	}
	return most, ok
}
