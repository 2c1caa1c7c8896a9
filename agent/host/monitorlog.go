package host

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/follow"
	"github.com/benchwatch/benchwatch/agent/measure"
)

// MonitorLog is what a program that watches a machine printed while a benchmark ran.
type MonitorLog struct {
	// Program is vmstat, iostat, mpstat or dstat.
	Program string
	Path    string
}

// MonitorEngine is the engine of machines whose values come from monitor logs.
const MonitorEngine = "monitor-log"

// monitorPrograms are the programs whose output is read. Where several print the same
// thing, the first one counts.
var monitorPrograms = []struct {
	name string
	read func(*monitorParser, string)
}{
	{"mpstat", (*monitorParser).mpstat},
	{"iostat", (*monitorParser).iostat},
	{"vmstat", (*monitorParser).vmstat},
	{"dstat", (*monitorParser).dstat},
}

// MonitorLogsBeside returns the monitor logs in the folder of a benchmark's log that have
// its name but for the name of the program: run-8.vmstat.txt beside run-8.sysbench.txt or
// run-8.log. alone: the folder has no other benchmark's log, and vmstat.txt belongs to it.
func MonitorLogsBeside(path string, alone bool) ([]MonitorLog, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("look for monitor logs: %w", err)
	}
	own := NameWords(filepath.Base(path))
	var found []MonitorLog
	for _, p := range monitorPrograms {
		for _, e := range entries {
			words := NameWords(e.Name())
			i := slices.Index(words, p.name)
			if i < 0 || !e.Type().IsRegular() {
				continue
			}
			rest := slices.Delete(words, i, i+1)
			if len(rest) == 0 && alone || len(rest) > 0 && slices.Equal(rest, own) {
				found = append(found, MonitorLog{p.name, filepath.Join(filepath.Dir(path), e.Name())})
				break
			}
		}
	}
	return found, nil
}

// IsMonitorLog reports whether a file's name is that of a monitor log.
func IsMonitorLog(path string) bool {
	words := NameWords(filepath.Base(path))
	return slices.ContainsFunc(words, func(w string) bool { return readerOf(w) != nil })
}

// NameWords returns the words of a file's name without those that say what kind of file it is.
func NameWords(name string) []string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("._- ", r) })
	return slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains([]string{"txt", "log", "out", "stdout", "output", "sysbench", "ycsb", "tpcc", "gotpc", "goycsb"}, w)
	})
}

// ReadMonitorLogs calls visit with the values of a machine for each interval of the logs,
// up to duration after the programs began. elapsed and interval are in seconds. The
// programs are taken to have begun at the same moment; those that print no times, to have
// printed at equal distances: of a second, or longer ones if the log is shorter than
// duration. What vmstat, iostat and dstat print first is about the time since the machine
// started, and is left out. It returns the logs that had values.
func ReadMonitorLogs(ctx context.Context, logs []MonitorLog, duration float64, visit func(elapsed, interval float64, s *engine.Status) error) (used []MonitorLog, err error) {
	m := monitorMerge{owner: map[valueGroup]int{}, totals: map[valueKey]float64{}}
	for _, log := range logs {
		parsed, err := surveyMonitorLog(ctx, log, duration)
		if err != nil {
			return nil, err
		}
		if len(parsed.groups) == 0 || parsed.interval == 0 {
			continue // nothing but headings, or something else
		}
		if m.cores == 0 {
			m.cores = parsed.cores
		}
		if m.nodename == "" {
			m.nodename = parsed.nodename
		}
		for group := range parsed.groups {
			if _, ok := m.owner[group]; !ok {
				m.owner[group] = len(m.logs)
			}
		}
		if m.interval == 0 || parsed.interval < m.interval {
			m.interval = parsed.interval
		}
		m.logs = append(m.logs, parsed)
		m.programs = append(m.programs, log.Program)
		used = append(used, log)
	}
	if len(used) == 0 {
		return nil, nil
	}
	return used, m.run(ctx, duration, visit)
}

// valueKey is a value of the machine or of one of its devices.
type valueKey struct {
	metric *measure.Metric
	device string
}

// valueGroup is what one program counts for: values of two programs must not be added up.
type valueGroup int

const (
	cpuGroup valueGroup = iota
	coreGroup
	diskGroup
	networkGroup
	switchGroup
	swapGroup
)

var groupOf = map[*measure.Metric]valueGroup{
	cpuUser: cpuGroup, cpuSystem: cpuGroup, cpuIRQ: cpuGroup, cpuSoftIRQ: cpuGroup, cpuSteal: cpuGroup, cpuIOWait: cpuGroup, cpuIdle: cpuGroup,
	busiestCore: coreGroup, busiestDisk: diskGroup,
	diskRead: diskGroup, diskWritten: diskGroup, diskReads: diskGroup, diskWrites: diskGroup, diskFlushes: diskGroup,
	diskReadTime: diskGroup, diskWriteTime: diskGroup, diskBusyTime: diskGroup, diskQueueTime: diskGroup,
	netReceived: networkGroup, netSent: networkGroup, switches: switchGroup, swapped: swapGroup,
}

// monitorSample is what a program printed about an interval: of counters what they grew by
// per second, of CPU times the share of all cores.
type monitorSample struct {
	at     time.Time // zero if the program prints no times
	values map[valueKey]float64
}

// monitorLog is a log of which the shape is known.
type monitorLog struct {
	MonitorLog
	cores    int
	nodename string
	groups   map[valueGroup]bool
	// interval is the distance of samples in seconds, 0 if there are none.
	interval float64
	first    time.Time // of the sample at which the program began, zero without times
}

func surveyMonitorLog(ctx context.Context, log MonitorLog, duration float64) (*monitorLog, error) {
	out := &monitorLog{MonitorLog: log, groups: map[valueGroup]bool{}}
	n, parser := 0, &monitorParser{withValues: 3}
	var last time.Time
	var distances []float64
	for s, err := range monitorSamples(ctx, log, parser) {
		if err != nil {
			return nil, err
		}
		if n++; n == 1 {
			out.first = s.at
		} else if d := s.at.Sub(last).Seconds(); d > 0 && len(distances) < 1000 {
			distances = append(distances, d)
		}
		last = s.at
		for key := range s.values {
			out.groups[groupOf[key.metric]] = true
		}
	}
	out.cores, out.nodename = parser.cores, parser.nodename
	switch {
	case n < 2:
	case len(distances) > 0:
		slices.Sort(distances)
		out.interval = distances[len(distances)/2]
	default:
		out.interval = max(1, math.Round(duration/float64(n-1)))
	}
	return out, nil
}

// monitorSamples yields the samples of a log. The first one, about the time since the
// machine started, has no values if the program prints none.
func monitorSamples(ctx context.Context, log MonitorLog, p *monitorParser) iter.Seq2[monitorSample, error] {
	return func(yield func(monitorSample, error) bool) {
		fail := func(err error) { yield(monitorSample{}, fmt.Errorf("read %s: %w", log.Path, err)) }
		read := readerOf(log.Program)
		if read == nil {
			fail(errors.New("unknown program " + log.Program))
			return
		}
		file, err := follow.OpenFile(log.Path)
		if err != nil {
			fail(err)
			return
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, maxMonitorLine)
		for lines.Scan() {
			if err := ctx.Err(); err != nil {
				fail(err)
				return
			}
			read(p, lines.Text())
			for _, s := range p.done {
				if !yield(s, nil) {
					return
				}
			}
			p.done = p.done[:0]
		}
		if err := lines.Err(); err != nil {
			fail(err)
			return
		}
		if p.end(); len(p.done) > 0 {
			yield(p.done[0], nil)
		}
	}
}

func readerOf(program string) func(*monitorParser, string) {
	for _, p := range monitorPrograms {
		if p.name == program {
			return p.read
		}
	}
	return nil
}

const maxMonitorLine = 1 << 20 // mpstat and dstat may have a column for each core

// monitorMerge puts the samples of all programs on one axis.
type monitorMerge struct {
	logs     []*monitorLog
	programs []string
	owner    map[valueGroup]int
	totals   map[valueKey]float64
	order    []valueKey // of totals
	cores    int
	nodename string
	interval float64
}

// cursor is how far a log has been read.
type cursor struct {
	next func() (monitorSample, error, bool)
	n    int // samples so far
	s    monitorSample
	at   float64
	// seconds are the length of the interval that s is about.
	seconds float64
	more    bool
}

func (m *monitorMerge) run(ctx context.Context, duration float64, visit func(elapsed, interval float64, s *engine.Status) error) error {
	cursors := make([]cursor, len(m.logs))
	advance := func(i int) error {
		c := &cursors[i]
		previous := c.at
		s, err, ok := c.next()
		if c.more = ok; !ok || err != nil {
			return err
		}
		c.s = s
		c.at = float64(c.n) * m.logs[i].interval
		if !s.at.IsZero() && !m.logs[i].first.IsZero() {
			c.at = s.at.Sub(m.logs[i].first).Seconds()
		}
		c.seconds = c.at - previous
		if c.n++; c.n > 1 && c.at <= previous {
			c.s.values, c.at = nil, previous // the clock was set back: nothing is known
		}
		return nil
	}
	for i, log := range m.logs {
		next, stop := iter.Pull2(monitorSamples(ctx, log.MonitorLog, &monitorParser{}))
		defer stop()
		cursors[i].next = next
		for range 2 { // the first sample is about another time
			if err := advance(i); err != nil {
				return err
			}
		}
	}
	for {
		next := math.Inf(1)
		for i := range cursors {
			if cursors[i].more {
				next = min(next, cursors[i].at)
			}
		}
		if next > duration+m.interval/2 {
			return nil
		}
		now := map[valueKey]float64{}
		for i := range cursors {
			for c := &cursors[i]; c.more && c.at < next+m.interval/2; {
				m.add(i, c.s.values, c.seconds, now)
				if err := advance(i); err != nil {
					return err
				}
			}
		}
		if err := visit(next, m.interval, m.status(now)); err != nil {
			return err
		}
	}
}

// add adds the values of one log's interval of some seconds to the totals, and puts what
// is known now into now.
func (m *monitorMerge) add(log int, values map[valueKey]float64, seconds float64, now map[valueKey]float64) {
	for key, v := range values {
		if m.owner[groupOf[key.metric]] != log {
			continue
		}
		if key.metric.Kind == measure.Counter && (m.cores > 0 || groupOf[key.metric] != cpuGroup) {
			v = m.totals[key] + v*seconds
			m.totals[key] = v
		}
		now[key] = v
	}
}

// status returns the values of one moment. Without the number of cores only the shares of
// CPU time are known.
func (m *monitorMerge) status(now map[valueKey]float64) *engine.Status {
	out := &engine.Status{Version: strings.Join(m.programs, ", "), Nodename: m.nodename}
	if m.cores > 0 {
		out.Set(cores, float64(m.cores))
	}
	if len(m.order) != len(m.totals) { // there is something new
		m.order = slices.SortedFunc(maps.Keys(m.totals), func(a, b valueKey) int {
			return cmp.Or(strings.Compare(a.metric.Name, b.metric.Name), strings.Compare(a.device, b.device))
		})
	}
	for _, key := range m.order {
		v, ok := now[key]
		switch {
		case !ok:
		case key.device != "":
			out.Set(key.metric, v, key.device)
		case groupOf[key.metric] == cpuGroup:
			out.Set(key.metric, v*float64(m.cores))
		default:
			out.Set(key.metric, v)
		}
	}
	if m.cores == 0 {
		setShares(out, now)
	}
	for _, metric := range []*measure.Metric{busiestCore, busiestDisk} {
		if v, ok := now[valueKey{metric: metric}]; ok {
			out.Set(metric, v)
		}
	}
	return out
}

// setShares sets the shares of CPU time in use, waiting for disks and stolen.
func setShares(out *engine.Status, now map[valueKey]float64) {
	of := func(metrics ...*measure.Metric) (sum float64) {
		for _, m := range metrics {
			sum += now[valueKey{metric: m}]
		}
		return sum
	}
	if all := of(cpuTimes...); all > 0 {
		out.Set(busy, of(cpuUser, cpuSystem, cpuIRQ, cpuSoftIRQ, cpuSteal)/all)
		out.Set(iowait, of(cpuIOWait)/all)
		out.Set(steal, of(cpuSteal)/all)
	}
}

// monitorParser reads the lines of one program.
type monitorParser struct {
	cores    int
	nodename string
	head     []string
	current  *monitorSample // the report that is being read
	done     []monitorSample
	// hasCPU and hasDisks are of the current report.
	hasCPU, hasDisks bool
	// reports are those that began; only the first withValues of them get values, 0: all.
	reports, withValues int
	day                 int // midnights since the first time without a date
	last                time.Time
}

// begin ends the report that is being read, and begins the next one.
func (p *monitorParser) begin(at time.Time) {
	p.end()
	p.current = &monitorSample{at: at}
	p.hasCPU, p.hasDisks = false, false
	p.reports++
	if !p.skips() {
		p.current.values = make(map[valueKey]float64, 32)
	}
}

// skips reports whether the values of the current report are not of interest.
func (p *monitorParser) skips() bool { return p.withValues > 0 && p.reports > p.withValues }

func (p *monitorParser) end() {
	if p.current != nil {
		p.done = append(p.done, *p.current)
		p.current = nil
	}
}

func (p *monitorParser) set(m *measure.Metric, device string, v float64) {
	if p.current != nil && p.current.values != nil && v >= 0 && !math.IsInf(v, 0) {
		p.current.values[valueKey{m, device}] = v
	}
}

// banner reads the line that iostat and mpstat begin with:
// "Linux 6.1.0 (db1) 	11/22/26 	_x86_64_	(2 CPU)".
func (p *monitorParser) banner(line string) bool {
	rest, ok := strings.CutPrefix(line, "Linux ")
	if !ok {
		return false
	}
	if _, after, ok := strings.Cut(rest, "("); ok {
		p.nodename, _, _ = strings.Cut(after, ")")
	}
	if i := strings.LastIndex(rest, "("); i >= 0 {
		p.cores, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest[i+1:]), " CPU)"))
	}
	return true
}

// vmstat reads a line such as " 1  0      0 551396 1342476 20227152    0    0   180 …".
func (p *monitorParser) vmstat(line string) {
	fields := strings.Fields(line)
	if slices.Contains(fields, "us") && slices.Contains(fields, "cs") {
		p.head = fields
		return
	}
	if len(p.head) == 0 || len(fields) < len(p.head)-1 || !isNumber(fields[0]) {
		return
	}
	var at time.Time
	if n := len(fields); n > 2 && strings.Contains(fields[n-1], ":") {
		at, _ = time.Parse(time.DateTime, fields[n-2]+" "+fields[n-1])
	}
	p.begin(at)
	if p.skips() {
		return
	}
	v := valuesOf(p.head, fields)
	p.cpu(v["us"]+v["gu"], v["sy"], 0, 0, v["st"], v["wa"], v["id"])
	p.set(switches, "", v["cs"])
	p.set(swapped, "", (v["si"]+v["so"])/4) // KiB as pages of 4 KiB
	p.set(diskRead, "all", v["bi"]*1024)
	p.set(diskWritten, "all", v["bo"]*1024)
}

// cpu sets the shares of CPU time, which are given in percent.
func (p *monitorParser) cpu(user, system, irq, softirq, steal, iowait, idle float64) {
	if user+system+irq+softirq+steal+iowait+idle <= 0 {
		return
	}
	for i, v := range []float64{user, system, softirq, irq, steal, iowait, idle} {
		p.set(cpuTimes[i], "", v/100)
	}
}

// iostat reads the lines of a report: CPU, then a line for each device.
func (p *monitorParser) iostat(line string) {
	switch {
	case line == "" || p.banner(line):
		return
	case strings.HasPrefix(line, "avg-cpu:"):
		if p.current == nil || p.hasCPU || p.hasDisks {
			p.begin(time.Time{})
		}
		p.hasCPU, p.head = true, strings.Fields(line)
		return
	case strings.HasPrefix(line, "Device"):
		if p.current == nil || p.hasDisks {
			p.begin(time.Time{})
		}
		p.hasDisks, p.head = true, strings.Fields(line)
		return
	}
	if at := monitorTime(line); !at.IsZero() {
		p.begin(at)
		p.head = nil
	}
	if len(p.head) == 0 || p.current == nil || p.skips() {
		return
	}
	fields := strings.Fields(line)
	switch {
	case p.head[0] == "avg-cpu:" && len(fields) == len(p.head)-1:
		v := valuesOf(p.head[1:], fields)
		p.cpu(v["%user"]+v["%nice"], v["%system"], 0, 0, v["%steal"], v["%iowait"], v["%idle"])
	case len(fields) == len(p.head) && !notDisks.MatchString(fields[0]):
		p.disk(fields[0], valuesOf(p.head[1:], fields[1:]))
	}
}

// iostatColumns are the columns that are rates of a device, with the factor to base units.
var iostatColumns = map[string]struct {
	metric *measure.Metric
	factor float64
}{
	"r/s": {diskReads, 1}, "w/s": {diskWrites, 1}, "f/s": {diskFlushes, 1},
	"rkB/s": {diskRead, 1 << 10}, "kB_read/s": {diskRead, 1 << 10}, "rMB/s": {diskRead, 1 << 20}, "MB_read/s": {diskRead, 1 << 20}, "rsec/s": {diskRead, 512}, "Blk_read/s": {diskRead, 512},
	"wkB/s": {diskWritten, 1 << 10}, "kB_wrtn/s": {diskWritten, 1 << 10}, "wMB/s": {diskWritten, 1 << 20}, "MB_wrtn/s": {diskWritten, 1 << 20}, "wsec/s": {diskWritten, 512}, "Blk_wrtn/s": {diskWritten, 512},
	"aqu-sz": {diskQueueTime, 1}, "avgqu-sz": {diskQueueTime, 1}, "%util": {diskBusyTime, 0.01},
}

// disk sets the values of one device.
func (p *monitorParser) disk(name string, v map[string]float64) {
	for column, x := range v {
		if to, ok := iostatColumns[column]; ok {
			p.set(to.metric, name, x*to.factor)
		}
	}
	for wait, of := range map[string]*measure.Metric{"r_await": diskReadTime, "w_await": diskWriteTime} {
		x, ok := v[wait]
		if !ok {
			x, ok = v["await"] // of reads and writes together, in older versions
		}
		if ok {
			p.set(of, name, x/1000*v[wait[:1]+"/s"])
		}
	}
	if x, ok := v["%util"]; ok {
		p.set(busiestDisk, "", max(p.current.values[valueKey{metric: busiestDisk}], min(1, x/100)))
	}
}

// mpstat reads a line of all cores or of one: "20:09:22     all   23.62    3.52 …".
func (p *monitorParser) mpstat(line string) {
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] == "Average:" || p.banner(line) {
		return
	}
	if i := slices.Index(fields, "CPU"); i > 0 && strings.HasPrefix(fields[len(fields)-1], "%") {
		if p.head == nil { // the line has the time at which mpstat began
			p.begin(p.clock(strings.Join(fields[:i], " ")))
		}
		p.head = fields[i:]
		return
	}
	i := len(fields) - len(p.head)
	if len(p.head) == 0 || i < 1 {
		return
	}
	at := p.clock(strings.Join(fields[:i], " "))
	if p.current == nil || !at.Equal(p.current.at) || at.IsZero() && fields[i] == "all" {
		p.begin(at)
	}
	v := valuesOf(p.head[1:], fields[i+1:])
	if fields[i] == "all" {
		p.cpu(v["%usr"]+v["%user"]+v["%nice"]+v["%guest"]+v["%gnice"], v["%sys"], v["%irq"], v["%soft"], v["%steal"], v["%iowait"], v["%idle"])
		return
	}
	if idle, ok := v["%idle"]; ok && isNumber(fields[i]) {
		p.set(busiestCore, "", max(p.current.values[valueKey{metric: busiestCore}], min(1, 1-(idle+v["%iowait"])/100)))
	}
}

// dstat reads a line such as " 67  11  20   0   1| 505k 6797k|   0     0 |…", whose columns
// are headed by those of their groups.
func (p *monitorParser) dstat(line string) {
	groups := strings.Split(line, "|")
	if strings.Contains(line, "usr") && strings.Contains(line, "idl") {
		p.head = groups
		return
	}
	if len(p.head) == 0 || len(groups) != len(p.head) {
		return
	}
	v, at := map[string]float64{}, time.Time{}
	for i, group := range groups {
		names, values := strings.Fields(p.head[i]), strings.Fields(group)
		if slices.Equal(names, []string{"time"}) {
			at = p.clock(strings.Join(values, " "))
			continue
		}
		if len(values) != len(names) {
			continue // pcp's dstat begins with an empty row
		}
		for j, name := range names {
			if x, ok := shortNumber(values[j]); ok {
				v[name] = x
			}
		}
	}
	p.begin(at)
	p.cpu(v["usr"], v["sys"], v["hiq"], v["siq"], v["stl"], v["wai"], v["idl"])
	for name, key := range map[string]valueKey{
		"csw": {metric: switches}, "read": {diskRead, "all"}, "writ": {diskWritten, "all"}, "recv": {netReceived, "all"}, "send": {netSent, "all"},
	} {
		if x, ok := v[name]; ok {
			p.set(key.metric, key.device, x)
		}
	}
}

// valuesOf returns numbers by the heads of their columns.
func valuesOf(heads, fields []string) map[string]float64 {
	v := make(map[string]float64, len(heads))
	for i, head := range heads {
		if i >= len(fields) {
			break
		}
		if x := numberOf(fields[i]); !math.IsNaN(x) {
			v[head] = x
		}
	}
	return v
}

// numberOf returns a number that may have a decimal comma; NaN if it is none.
func numberOf(s string) float64 {
	if strings.IndexByte(s, ',') >= 0 {
		s = strings.Replace(s, ",", ".", 1)
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func isNumber(s string) bool { return !math.IsNaN(numberOf(s)) }

// shortNumber returns a number as dstat prints it: 79M, 17.9G, 505k, 2817B.
func shortNumber(s string) (float64, bool) {
	factor := 1.0
	if i := strings.IndexByte("BkMGT", s[len(s)-1]); i >= 0 {
		factor, s = math.Pow(1024, float64(i)), s[:len(s)-1]
	}
	v := numberOf(s)
	return v * factor, !math.IsNaN(v)
}

// monitorTime returns the time that a line consists of, as iostat -t prints it; zero if it
// has none.
func monitorTime(line string) time.Time {
	if line[0] < '0' || line[0] > '9' || !strings.Contains(line, ":") {
		return time.Time{}
	}
	for _, layout := range []string{"01/02/06 15:04:05", "01/02/2006 15:04:05", "01/02/2006 03:04:05 PM", "01/02/06 03:04:05 PM", time.DateTime, "2006-01-02T15:04:05-0700"} {
		if at, err := time.Parse(layout, strings.TrimSpace(line)); err == nil {
			return at
		}
	}
	return time.Time{}
}

// clock returns a time of day, after the previous one; zero if text has none. dstat prints
// day and month before it.
func (p *monitorParser) clock(text string) time.Time {
	for _, layout := range []string{"15:04:05", "03:04:05 PM", "02-01 15:04:05"} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if strings.HasPrefix(layout, "02") {
			return at
		}
		at = at.AddDate(0, 0, p.day)
		if !p.last.IsZero() && p.last.Sub(at) > 12*time.Hour {
			p.day++
			at = at.AddDate(0, 0, 1)
		}
		p.last = at
		return at
	}
	return time.Time{}
}
