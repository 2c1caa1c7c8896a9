package host

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
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

// MonitorFolder is the monitor logs of a folder, which is listed once for all benchmarks' logs
// in it.
type MonitorFolder struct {
	// files are by the program and the words that the name has besides it, in one string.
	files map[string]MonitorLog
}

// ListMonitorLogs lists the monitor logs in a folder.
func ListMonitorLogs(folder string) (*MonitorFolder, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for monitor logs: %w", err)
	}
	f := &MonitorFolder{files: map[string]MonitorLog{}}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		words := NameWords(e.Name())
		for _, p := range monitorPrograms {
			i := slices.Index(words, p.name)
			if i < 0 {
				continue
			}
			name := monitorKey(p.name, slices.Delete(slices.Clone(words), i, i+1))
			if _, known := f.files[name]; !known {
				f.files[name] = MonitorLog{p.name, filepath.Join(folder, e.Name())}
			}
		}
	}
	return f, nil
}

func monitorKey(program string, words []string) string {
	return program + " " + strings.Join(words, " ")
}

// Beside returns the monitor logs that have the name of the folder's benchmark log but for the
// name of the program: run-8.vmstat.txt beside run-8.sysbench.txt or run-8.log. alone: the
// folder has no other benchmark's log, and vmstat.txt belongs to it.
func (f *MonitorFolder) Beside(name string, alone bool) []MonitorLog {
	own := NameWords(name)
	var found []MonitorLog
	for _, p := range monitorPrograms {
		log, known := f.files[monitorKey(p.name, own)]
		if len(own) == 0 || !known {
			log, known = f.files[monitorKey(p.name, nil)]
			known = known && alone
		}
		if known {
			found = append(found, log)
		}
	}
	return found
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
	m := monitorMerge{owner: map[valueGroup]int{}, index: map[valueKey]int{}}
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
	at time.Time // zero if the program prints no times
	// values are those of the parser's keys, NaN where unknown; nil: none. They are valid
	// until the next sample is asked for.
	values []float64
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
		for i, v := range s.values {
			if !math.IsNaN(v) {
				out.groups[groupOf[parser.keys[i].metric]] = true
			}
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
				if s.values != nil {
					p.free = s.values[:0]
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
	// merged are the values that count, by index; order are the counters among them, by name.
	merged   []mergedValue
	index    map[valueKey]int
	order    []int
	cores    int
	nodename string
	interval float64
}

// mergedValue is a value of the machine: a counter, or a gauge.
type mergedValue struct {
	valueKey
	labels []string
	group  valueGroup
	counts bool
	total  float64 // of a counter
	now    float64 // NaN if unknown
}

// cursor is how far a log has been read.
type cursor struct {
	next   func() (monitorSample, error, bool)
	parser *monitorParser
	// merged are the places of the parser's keys in those of the merge, -1 for those that
	// another program counts for.
	merged []int
	n      int // samples so far
	s      monitorSample
	at     float64
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
		parser := &monitorParser{}
		next, stop := iter.Pull2(monitorSamples(ctx, log.MonitorLog, parser))
		defer stop()
		cursors[i].next, cursors[i].parser = next, parser
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
		for i := range m.merged {
			m.merged[i].now = math.NaN()
		}
		for i := range cursors {
			for c := &cursors[i]; c.more && c.at < next+m.interval/2; {
				m.add(i, c)
				if err := advance(i); err != nil {
					return err
				}
			}
		}
		if err := visit(next, m.interval, m.status()); err != nil {
			return err
		}
	}
}

// add adds what one log's present sample says to the totals and to what is known now.
func (m *monitorMerge) add(log int, c *cursor) {
	for i, v := range c.s.values {
		if math.IsNaN(v) {
			continue
		}
		for len(c.merged) <= i {
			c.merged = append(c.merged, m.place(log, c.parser.keys[len(c.merged)]))
		}
		if c.merged[i] < 0 {
			continue
		}
		to := &m.merged[c.merged[i]]
		if to.counts {
			to.total += v * c.seconds
			v = to.total
		}
		to.now = v
	}
}

// place returns where the values of a key of one log are merged, -1 if another log counts.
func (m *monitorMerge) place(log int, key valueKey) int {
	group := groupOf[key.metric]
	if m.owner[group] != log {
		return -1
	}
	at, ok := m.index[key]
	if !ok {
		at = len(m.merged)
		m.index[key] = at
		one := mergedValue{valueKey: key, group: group, now: math.NaN()}
		one.counts = key.metric.Kind == measure.Counter && (m.cores > 0 || group != cpuGroup)
		if key.device != "" {
			one.labels = []string{key.device}
		}
		m.merged = append(m.merged, one)
		if one.counts {
			m.order = append(m.order, at)
			slices.SortFunc(m.order, func(i, j int) int {
				a, b := &m.merged[i], &m.merged[j]
				return cmp.Or(strings.Compare(a.metric.Name, b.metric.Name), strings.Compare(a.device, b.device))
			})
		}
	}
	return at
}

// value returns the present value of a metric, NaN if it is unknown.
func (m *monitorMerge) value(metric *measure.Metric) float64 {
	if i, ok := m.index[valueKey{metric: metric}]; ok {
		return m.merged[i].now
	}
	return math.NaN()
}

// status returns the values of one moment. Without the number of cores only the shares of
// CPU time are known.
func (m *monitorMerge) status() *engine.Status {
	out := &engine.Status{Version: strings.Join(m.programs, ", "), Nodename: m.nodename, Values: make([]engine.Value, 0, len(m.order)+3)}
	if m.cores > 0 {
		out.Set(cores, float64(m.cores))
	}
	for _, i := range m.order {
		v := &m.merged[i]
		switch {
		case math.IsNaN(v.now):
		case v.group == cpuGroup:
			out.Set(v.metric, v.now*float64(m.cores))
		default:
			out.Set(v.metric, v.now, v.labels...)
		}
	}
	if m.cores == 0 {
		m.setShares(out)
	}
	for _, metric := range []*measure.Metric{busiestCore, busiestDisk} {
		if v := m.value(metric); !math.IsNaN(v) {
			out.Set(metric, v)
		}
	}
	return out
}

// setShares sets the shares of CPU time in use, waiting for disks and stolen.
func (m *monitorMerge) setShares(out *engine.Status) {
	of := func(metrics ...*measure.Metric) (sum float64) {
		for _, metric := range metrics {
			if v := m.value(metric); !math.IsNaN(v) {
				sum += v
			}
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
	columns  map[string]int     // of head
	headings map[string]heading // by line
	fields   []string           // of the present line
	groups   [][]string         // the heads of dstat's columns, in groups
	row      map[string]float64 // what dstat printed in a line
	keys     []valueKey         // in the order in which they came
	slots    map[valueKey]int
	disks    map[string]bool // whether a device is one whose values count
	free     []float64       // for the values of another sample
	current  *monitorSample  // the report that is being read
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
		p.current.values, p.free = p.free[:0], nil
		if p.current.values == nil {
			p.current.values = make([]float64, 0, 64)
		}
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
	if p.current == nil || p.current.values == nil || !(v >= 0) || math.IsInf(v, 0) {
		return
	}
	slot, ok := p.slots[valueKey{m, device}]
	if !ok {
		if p.slots == nil {
			p.slots = map[valueKey]int{}
		}
		slot, device = len(p.keys), strings.Clone(device) // else it holds its line
		p.slots[valueKey{m, device}] = slot
		p.keys = append(p.keys, valueKey{m, device})
	}
	for len(p.current.values) <= slot {
		p.current.values = append(p.current.values, math.NaN())
	}
	p.current.values[slot] = v
}

// raise sets a value to the largest one of a report, at most 1.
func (p *monitorParser) raise(m *measure.Metric, v float64) {
	if slot, ok := p.slots[valueKey{metric: m}]; ok && p.current != nil && slot < len(p.current.values) && p.current.values[slot] > v {
		return
	}
	p.set(m, "", max(0, min(1, v)))
}

// heading is the heads of columns and the places of these.
type heading struct {
	heads   []string
	columns map[string]int
}

// setHead sets the heads of the columns, which a line has.
func (p *monitorParser) setHead(line string) {
	h, ok := p.headings[line]
	if !ok {
		h.heads, h.columns = strings.Fields(line), map[string]int{}
		for i, name := range h.heads {
			h.columns[name] = i
		}
		if p.headings == nil {
			p.headings = map[string]heading{}
		}
		p.headings[line] = h
	}
	p.head, p.columns = h.heads, h.columns
}

// number returns the number below a head, NaN if there is none. shift is by how much the
// line has fewer fields before it than the head.
func (p *monitorParser) number(name string, shift int) float64 {
	i, ok := p.columns[name]
	if i -= shift; !ok || i < 0 || i >= len(p.fields) {
		return math.NaN()
	}
	return numberOf(p.fields[i])
}

// sum returns the sum of the numbers below some heads; a missing one adds nothing.
func (p *monitorParser) sum(shift int, names ...string) (sum float64) {
	for _, name := range names {
		if v := p.number(name, shift); !math.IsNaN(v) {
			sum += v
		}
	}
	return sum
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
	fields := p.split(line)
	if slices.Contains(fields, "us") && slices.Contains(fields, "cs") {
		p.setHead(line)
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
	p.cpu(p.sum(0, "us", "gu"), p.sum(0, "sy"), 0, 0, p.sum(0, "st"), p.sum(0, "wa"), p.sum(0, "id"))
	p.set(switches, "", p.sum(0, "cs"))
	p.set(swapped, "", p.sum(0, "si", "so")/4) // KiB as pages of 4 KiB
	p.set(diskRead, "all", p.sum(0, "bi")*1024)
	p.set(diskWritten, "all", p.sum(0, "bo")*1024)
}

// cpu sets the shares of CPU time, which are given in percent.
func (p *monitorParser) cpu(user, system, irq, softirq, steal, iowait, idle float64) {
	if user+system+irq+softirq+steal+iowait+idle <= 0 {
		return
	}
	for i, v := range [...]float64{user, system, softirq, irq, steal, iowait, idle} {
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
		p.hasCPU = true
		p.setHead(line)
		return
	case strings.HasPrefix(line, "Device"):
		if p.current == nil || p.hasDisks {
			p.begin(time.Time{})
		}
		p.hasDisks = true
		p.setHead(line)
		return
	}
	if at := monitorTime(line); !at.IsZero() {
		p.begin(at)
		p.head = nil
	}
	if len(p.head) == 0 || p.current == nil || p.skips() {
		return
	}
	fields := p.split(line)
	switch {
	case p.head[0] == "avg-cpu:" && len(fields) == len(p.head)-1:
		p.cpu(p.sum(1, "%user", "%nice"), p.sum(1, "%system"), 0, 0, p.sum(1, "%steal"), p.sum(1, "%iowait"), p.sum(1, "%idle"))
	case len(fields) == len(p.head) && p.isDisk(fields[0]):
		p.disk(fields[0])
	}
}

func (p *monitorParser) isDisk(device string) bool {
	is, ok := p.disks[device]
	if !ok {
		if p.disks == nil {
			p.disks = map[string]bool{}
		}
		is = !notDisks.MatchString(device)
		p.disks[strings.Clone(device)] = is
	}
	return is
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

// disk sets the values of one device from the present line.
func (p *monitorParser) disk(name string) {
	for i, column := range p.head {
		if to, ok := iostatColumns[column]; ok {
			p.set(to.metric, name, numberOf(p.fields[i])*to.factor)
		}
	}
	wait := func(m *measure.Metric, wait, count string) {
		x := p.number(wait, 0)
		if math.IsNaN(x) {
			x = p.number("await", 0) // of reads and writes together, in older versions
		}
		if !math.IsNaN(x) {
			p.set(m, name, x/1000*p.sum(0, count))
		}
	}
	wait(diskReadTime, "r_await", "r/s")
	wait(diskWriteTime, "w_await", "w/s")
	if x := p.number("%util", 0); !math.IsNaN(x) {
		p.raise(busiestDisk, x/100)
	}
}

// mpstat reads a line of all cores or of one: "20:09:22     all   23.62    3.52 …".
func (p *monitorParser) mpstat(line string) {
	fields := p.split(line)
	if len(fields) == 0 || fields[0] == "Average:" || p.banner(line) {
		return
	}
	if i := slices.Index(fields, "CPU"); i > 0 && strings.HasPrefix(fields[len(fields)-1], "%") {
		if p.head == nil { // the line has the time at which mpstat began
			p.begin(p.clock(strings.Join(fields[:i], " ")))
		}
		p.setHead(strings.Join(fields[i:], " "))
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
	if fields[i] == "all" {
		p.cpu(p.sum(-i, "%usr", "%user", "%nice", "%guest", "%gnice"), p.sum(-i, "%sys"), p.sum(-i, "%irq"), p.sum(-i, "%soft"),
			p.sum(-i, "%steal"), p.sum(-i, "%iowait"), p.sum(-i, "%idle"))
		return
	}
	if idle := p.number("%idle", -i); !math.IsNaN(idle) && isNumber(fields[i]) {
		p.raise(busiestCore, 1-(idle+p.sum(-i, "%iowait"))/100)
	}
}

// dstat reads a line such as " 67  11  20   0   1| 505k 6797k|   0     0 |…", whose columns
// are headed by those of their groups.
func (p *monitorParser) dstat(line string) {
	if strings.Contains(line, "usr") && strings.Contains(line, "idl") {
		p.groups = p.groups[:0]
		for group := range strings.SplitSeq(line, "|") {
			p.groups = append(p.groups, strings.Fields(group))
		}
		return
	}
	if len(p.groups) == 0 || strings.Count(line, "|") != len(p.groups)-1 {
		return
	}
	var at time.Time
	for i, rest := 0, line; i < len(p.groups); i++ {
		var group string
		group, rest, _ = strings.Cut(rest, "|")
		if len(p.groups[i]) == 1 && p.groups[i][0] == "time" {
			at = p.clock(strings.Join(p.split(group), " "))
		}
	}
	p.begin(at)
	if p.skips() {
		return
	}
	clear(p.row)
	for i, rest := 0, line; i < len(p.groups); i++ {
		var group string
		group, rest, _ = strings.Cut(rest, "|")
		names, values := p.groups[i], p.split(group)
		if len(names) == 0 || len(values) != len(names) || names[0] == "time" {
			continue // pcp's dstat begins with an empty row
		}
		for j, name := range names {
			if x, ok := shortNumber(values[j]); ok {
				if p.row == nil {
					p.row = map[string]float64{}
				}
				p.row[name] = x
			}
		}
	}
	v := p.row
	p.cpu(v["usr"], v["sys"], v["hiq"], v["siq"], v["stl"], v["wai"], v["idl"])
	for _, of := range dstatColumns {
		if x, ok := v[of.name]; ok {
			p.set(of.metric, of.device, x)
		}
	}
}

// dstatColumns are the columns of dstat besides those of CPU time.
var dstatColumns = []struct {
	name   string
	metric *measure.Metric
	device string
}{{"csw", switches, ""}, {"read", diskRead, "all"}, {"writ", diskWritten, "all"}, {"recv", netReceived, "all"}, {"send", netSent, "all"}}

// split returns the fields of a line, which the next call overwrites.
func (p *monitorParser) split(line string) []string {
	p.fields = p.fields[:0]
	begin := -1
	for i := range len(line) {
		switch space := line[i] == ' ' || line[i] == '\t' || line[i] == '\r'; {
		case space && begin >= 0:
			p.fields = append(p.fields, line[begin:i])
			begin = -1
		case !space && begin < 0:
			begin = i
		}
	}
	if begin >= 0 {
		p.fields = append(p.fields, line[begin:])
	}
	return p.fields
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
