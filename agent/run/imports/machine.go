package imports

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// MachineLog is the output of a program that monitored a machine during a benchmark.
type MachineLog struct {
	// Program is vmstat, iostat, mpstat or dstat.
	Program string
	Path    string
}

// program is a supported program; parser returns the function that reads its lines into a sheet.
type program struct {
	name   string
	parser func(*sheet) func(line string)
}

// programs in order of precedence: if several print the same value, the first one counts.
var programs = []program{{"mpstat", mpstat}, {"iostat", iostat}, {"vmstat", vmstat}, {"dstat", dstat}}

const (
	maxLine    = 1 << 20 // mpstat and dstat may have a column per core
	maxReports = 200_000 // two days, one per second
	maxColumns = 512
)

// value is a metric of the machine or of one of its devices.
type value struct {
	metric *measure.Metric
	device string
}

// sheet is a program's output, a row per report: counters as growth per second, CPU times as shares
// of all cores. The first row is about the time since the machine started, except for mpstat, where
// it is empty.
type sheet struct {
	program  string
	cores    int
	nodename string
	series.Table[value]
	times []time.Time // of the rows; zero if the program prints none
	// started is when the program began or, with only a date, the day; without a zone. every is the time between rows
	// according to its options, in seconds. Both are zero if the program prints neither.
	started time.Time
	every   float64
	// interval is the time between rows in seconds; at is the time of each since the first. A row
	// with the same time as the previous one is from when the clock was set back.
	interval float64
	at       []float64
}

// begin starts a report.
func (s *sheet) begin(at time.Time) {
	if len(s.times) < maxReports && s.Row(float64(len(s.times))) {
		s.times = append(s.times, at)
	}
}

func (s *sheet) set(m *measure.Metric, device string, v float64) {
	if len(s.times) > 0 && v >= 0 && !math.IsInf(v, 0) {
		s.Set(value{m, strings.Clone(device)}, v) // otherwise the key retains the whole line
	}
}

// raise sets a value to the largest one of a report, at most 1.
func (s *sheet) raise(m *measure.Metric, v float64) {
	if n := len(s.times); n > 0 && series.IsKnown(v) && !(s.At(value{metric: m}, n-1) >= v) {
		s.Replace(value{metric: m}, max(0, min(1, v)))
	}
}

// setCPU sets the shares of CPU time, which are given in percent.
func (s *sheet) setCPU(user, system, softirq, irq, steal, iowait, idle float64) {
	if user+system+irq+softirq+steal+iowait+idle > 0 {
		for i, v := range [...]float64{user, system, softirq, irq, steal, iowait, idle} {
			s.set(host.CPUTimes[i], "", v/100)
		}
	}
}

func readMachineLog(ctx context.Context, log MachineLog, duration float64) (*sheet, error) {
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == log.Program })
	if i < 0 {
		return nil, fmt.Errorf("read %s: unknown program %s", log.Path, log.Program)
	}
	file, err := follow.OpenFile(log.Path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", log.Path, err)
	}
	defer file.Close()
	s := &sheet{program: log.Program}
	s.MaxColumns = maxColumns
	parse := programs[i].parser(s)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for ctx.Err() == nil && len(s.times) < maxReports && lines.Scan() {
		parse(strings.TrimRight(lines.Text(), "\r"))
	}
	if err := cmp.Or(ctx.Err(), lines.Err()); err != nil {
		return nil, fmt.Errorf("read %s: %w", log.Path, err)
	}
	s.place(duration)
	return s, nil
}

// place determines the times of the rows. For a program that prints no times it assumes equal
// distances: one second, or longer if the log is otherwise shorter than duration.
func (s *sheet) place(duration float64) {
	var distances []float64
	for i := 1; i < len(s.times); i++ {
		if d := s.times[i].Sub(s.times[i-1]).Seconds(); d > 0 {
			distances = append(distances, d)
		}
	}
	switch n := len(s.times); {
	case n < 2:
		return
	case len(distances) > 0:
		slices.Sort(distances)
		s.interval = distances[len(distances)/2]
	default:
		s.interval = cmp.Or(s.every, max(1, math.Round(duration/float64(n-1))))
	}
	for i, at := range s.times {
		elapsed := float64(i) * s.interval
		if !at.IsZero() && !s.times[0].IsZero() {
			elapsed = at.Sub(s.times[0]).Seconds()
		}
		if i > 0 {
			elapsed = max(elapsed, s.at[i-1])
		}
		s.at = append(s.at, elapsed)
	}
}

// readMachine calls visit with the values of a machine at the end of each interval of the logs, up
// to duration after the programs began. elapsed and interval are in seconds. It assumes that all
// programs began at the same time, and returns the logs that had values.
func readMachine(ctx context.Context, logs []MachineLog, duration float64,
	visit func(elapsed, interval float64, s *engine.Status) error) (used []MachineLog, err error) {
	j := join{interval: math.Inf(1), owners: map[kind]*sheet{}, totals: map[value]float64{}}
	for _, log := range logs {
		s, err := readMachineLog(ctx, log, duration)
		if err != nil {
			return nil, err
		}
		if s.interval == 0 || len(s.Keys()) == 0 {
			continue // only headings, or something else
		}
		j.add(s)
		used = append(used, log)
	}
	if len(used) == 0 {
		return nil, nil
	}
	return used, j.run(duration, visit)
}

// kind is the group of values taken from one program: values of two programs must not be added up.
type kind int

const (
	cpuKind kind = iota
	coreKind
	diskKind
	networkKind
	switchKind
	swapKind
)

func kindOf(m *measure.Metric) kind {
	switch {
	case slices.Contains(host.CPUTimes, m):
		return cpuKind
	case m == host.BusiestCoreShare:
		return coreKind
	case m == host.NetReceived || m == host.NetSent:
		return networkKind
	case m == host.Switches:
		return switchKind
	case m == host.Swapped:
		return swapKind
	}
	return diskKind
}

// join merges the values of several sheets on one axis.
type join struct {
	sheets   []*sheet
	owners   map[kind]*sheet
	cores    int
	nodename string
	interval float64
	totals   map[value]float64 // of the counters
}

func (j *join) add(s *sheet) {
	j.sheets = append(j.sheets, s)
	j.cores, j.nodename = cmp.Or(j.cores, s.cores), cmp.Or(j.nodename, s.nodename)
	j.interval = min(j.interval, s.interval)
	for _, v := range s.Keys() {
		if k := kindOf(v.metric); j.owners[k] == nil {
			j.owners[k] = s
		}
	}
}

// run visits the ends of the intervals. Rows whose ends are less than half an interval apart are
// treated as simultaneous.
func (j *join) run(duration float64, visit func(elapsed, interval float64, s *engine.Status) error) error {
	rows := make([]int, len(j.sheets)) // the next row of each sheet
	for i := range rows {
		rows[i] = 1 // the first row is about another time
	}
	for {
		elapsed := math.Inf(1)
		for i, s := range j.sheets {
			if rows[i] < len(s.at) {
				elapsed = min(elapsed, s.at[rows[i]])
			}
		}
		if elapsed > duration+j.interval/2 {
			return nil
		}
		now := map[value]float64{}
		for i, s := range j.sheets {
			for ; rows[i] < len(s.at) && s.at[rows[i]] < elapsed+j.interval/2; rows[i]++ {
				j.take(now, s, rows[i])
			}
		}
		if err := visit(elapsed, j.interval, j.status(now)); err != nil {
			return err
		}
	}
}

// take adds a row to the counters, and sets the known values in now.
func (j *join) take(now map[value]float64, s *sheet, row int) {
	seconds := s.at[row] - s.at[row-1]
	if seconds == 0 {
		return // the clock was set back: no values
	}
	for _, v := range s.Keys() {
		x := s.At(v, row)
		k := kindOf(v.metric)
		if !series.IsKnown(x) || j.owners[k] != s {
			continue
		}
		if v.metric.Kind == measure.Counter && (k != cpuKind || j.cores > 0) {
			if k == cpuKind {
				x *= float64(j.cores)
			}
			j.totals[v] += x * seconds
			x = j.totals[v]
		}
		now[v] = x
	}
}

// status returns the values at one time. Without the number of cores, only the shares of CPU time
// are known.
func (j *join) status(now map[value]float64) *engine.Status {
	out := &engine.Status{Nodename: j.nodename}
	for i, s := range j.sheets {
		out.Version += strings.Repeat(", ", min(i, 1)) + s.program
	}
	if j.cores > 0 {
		out.Set(host.CoreCount, float64(j.cores))
	}
	keys := slices.SortedFunc(maps.Keys(now), func(a, b value) int {
		return cmp.Or(strings.Compare(a.metric.Name, b.metric.Name), strings.Compare(a.device, b.device))
	})
	for _, v := range keys {
		switch {
		case v.device != "":
			out.Set(v.metric, now[v], v.device)
		case kindOf(v.metric) != cpuKind || j.cores > 0:
			out.Set(v.metric, now[v])
		}
	}
	if j.cores == 0 {
		setShares(out, now)
	}
	return out
}

// setShares sets the shares of CPU time in use, waiting for disks and stolen.
func setShares(out *engine.Status, now map[value]float64) {
	user, system, softirq, irq, steal, iowait, idle := 0, 1, 2, 3, 4, 5, 6 // of host.CPUTimes
	of := func(times ...int) (sum float64) {
		for _, i := range times {
			sum += now[value{metric: host.CPUTimes[i]}]
		}
		return sum
	}
	if all := of(user, system, softirq, irq, steal, iowait, idle); all > 0 {
		out.Set(host.BusyShare, of(user, system, softirq, irq, steal)/all)
		out.Set(host.IOWaitShare, of(iowait)/all)
		out.Set(host.StealShare, of(steal)/all)
	}
}

// fields is a line with its column headings. shift is how many more fields than headings the line
// begins with.
type fields struct {
	heads  map[string]int
	values []string
	shift  int
}

// headsOf returns the indexes of columns.
func headsOf(names []string) map[string]int {
	heads := map[string]int{}
	for i, name := range names {
		heads[name] = i
	}
	return heads
}

// number returns the number in a column; unknown if missing.
func (f *fields) number(name string) float64 {
	i, ok := f.heads[name]
	if i += f.shift; !ok || i < 0 || i >= len(f.values) {
		return series.Unknown()
	}
	return numberOf(f.values[i])
}

// sum returns the sum of the numbers in some columns; a missing one counts as 0.
func (f *fields) sum(names ...string) (sum float64) {
	for _, name := range names {
		if v := f.number(name); series.IsKnown(v) {
			sum += v
		}
	}
	return sum
}

// banner reads the first line of iostat and mpstat: "Linux 6.1.0 (db1)    11/22/26        _x86_64_
// (2 CPU)".
func (s *sheet) banner(line string) bool {
	rest, ok := strings.CutPrefix(line, "Linux ")
	if !ok {
		return false
	}
	if _, after, ok := strings.Cut(rest, "("); ok {
		s.nodename, after, _ = strings.Cut(after, ")")
		if words := strings.Fields(after); len(words) > 0 {
			s.started = dateOf(words[0])
		}
	}
	if i := strings.LastIndex(rest, "("); i >= 0 {
		s.cores, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest[i+1:]), " CPU)"))
	}
	return true
}

// dateOf reads a date as the sysstat programs print it; zero if it is none. Where day and month can be confused, the month
// is first.
func dateOf(text string) time.Time {
	for _, layout := range []string{"01/02/2006", "01/02/06", "02/01/2006", "02/01/06", time.DateOnly, "02.01.2006", "02.01.06"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

// numberOf parses a number that may have a decimal comma; unknown if it is not a number.
func numberOf(text string) float64 {
	v, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	if err != nil {
		return series.Unknown()
	}
	return v
}

// clock reads times of day, which increase.
type clock struct {
	day  int // midnights since the first time without a date
	last time.Time
}

// read returns a time after the previous one; zero if text has none. dstat prints day and month
// before it.
func (c *clock) read(text string) time.Time {
	if at, err := time.Parse("02-01 15:04:05", text); err == nil {
		return at
	}
	at, err := time.Parse("15:04:05", text)
	if err != nil {
		if at, err = time.Parse("03:04:05 PM", text); err != nil {
			return time.Time{}
		}
	}
	if at = at.AddDate(0, 0, c.day); !c.last.IsZero() && c.last.Sub(at) > 12*time.Hour {
		c.day++
		at = at.AddDate(0, 0, 1)
	}
	c.last = at
	return at
}
