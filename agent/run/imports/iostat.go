package imports

import (
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// iostatColumns are the columns with rates of a device, with the factor to base units.
var iostatColumns = map[string]struct {
	metric *measure.Metric
	factor float64
}{
	"r/s": {host.DiskReads, 1}, "w/s": {host.DiskWrites, 1}, "f/s": {host.DiskFlushes, 1},
	"rkB/s": {host.DiskRead, 1 << 10}, "kB_read/s": {host.DiskRead, 1 << 10}, "rMB/s": {host.DiskRead, 1 << 20},
	"MB_read/s": {host.DiskRead, 1 << 20}, "rsec/s": {host.DiskRead, 512}, "Blk_read/s": {host.DiskRead, 512},
	"wkB/s": {host.DiskWritten, 1 << 10}, "kB_wrtn/s": {host.DiskWritten, 1 << 10}, "wMB/s": {host.DiskWritten, 1 << 20},
	"MB_wrtn/s": {host.DiskWritten, 1 << 20}, "wsec/s": {host.DiskWritten, 512}, "Blk_wrtn/s": {host.DiskWritten, 512},
	"aqu-sz": {host.DiskQueueTime, 1}, "avgqu-sz": {host.DiskQueueTime, 1}, "%util": {host.DiskBusyTime, 0.01},
}

// iostat reads the lines of a report: its time, CPU, then a line for each device, each section with
// headings. All but the devices can be missing.
func iostat(s *sheet) func(string) {
	const cpuHead, diskHead = "avg-cpu:", "Device"
	row, head := fields{}, ""
	hasCPU, hasDisks, began := false, false, false // in the current report
	begin := func(at time.Time) {
		s.begin(at)
		hasCPU, hasDisks, began = false, false, true
	}
	return func(line string) {
		row.values = strings.Fields(line)
		n := len(row.values)
		switch {
		case n == 0 || s.banner(line):
			return
		case row.values[0] == cpuHead:
			if !began || hasCPU || hasDisks {
				begin(time.Time{})
			}
			row.heads, row.shift, head, hasCPU = headsOf(row.values), -1, cpuHead, true
			return
		case strings.HasPrefix(line, diskHead):
			if !began || hasDisks {
				begin(time.Time{})
			}
			row.heads, row.shift, head, hasDisks = headsOf(row.values), 0, diskHead, true
			return
		}
		if at := iostatTime(line); !at.IsZero() {
			begin(at)
			head = ""
		}
		switch {
		case head == cpuHead && n == len(row.heads)-1:
			s.setCPU(row.sum("%user", "%nice"), row.sum("%system"), 0, 0, row.sum("%steal"), row.sum("%iowait"), row.sum("%idle"))
		case head == diskHead && n == len(row.heads) && host.IsDisk(row.values[0]):
			s.setDisk(&row)
		}
	}
}

// setDisk sets the values of one device.
func (s *sheet) setDisk(row *fields) {
	device := row.values[0]
	for column, to := range iostatColumns {
		s.set(to.metric, device, row.number(column)*to.factor)
	}
	for _, wait := range []struct {
		metric     *measure.Metric
		mean, rate string
	}{{host.DiskReadTime, "r_await", "r/s"}, {host.DiskWriteTime, "w_await", "w/s"}} {
		milliseconds := row.number(wait.mean)
		if !series.IsKnown(milliseconds) {
			milliseconds = row.number("await") // for reads and writes together, in older versions
		}
		s.set(wait.metric, device, milliseconds/1000*row.sum(wait.rate))
	}
	s.raise(host.BusiestDiskShare, row.number("%util")/100)
}

// iostatTime parses a line with only a time, as iostat -t prints it; zero if it is not one.
func iostatTime(line string) time.Time {
	if line[0] < '0' || line[0] > '9' || !strings.Contains(line, ":") {
		return time.Time{}
	}
	for _, layout := range []string{"01/02/06 15:04:05", "01/02/2006 15:04:05",
		"01/02/2006 03:04:05 PM", "01/02/06 03:04:05 PM", time.DateTime, "2006-01-02T15:04:05-0700"} {
		if at, err := time.Parse(layout, strings.TrimSpace(line)); err == nil {
			return at
		}
	}
	return time.Time{}
}
