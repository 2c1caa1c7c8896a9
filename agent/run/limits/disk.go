package limits

import (
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

const (
	// leastMisses is the share of misses above which the buffer pool can be a limit.
	leastMisses = 0.005
	// estimatedMisses is the weight of a miss whose time is unknown: a page from a disk takes some hundred times as
	// long as a page in memory, and a statement needs several.
	estimatedMisses = 10
)

// takePool takes the time in which clients read pages from disk. It is measured by the sessions that wait for a page
// and by the reads times their latency on the server's disks; either may miss a part, so the larger one counts. If both
// are unknown, the time is estimated. Of a server that reads through the operating system's cache only the sessions count.
func (s *shares) takePool() {
	for _, server := range s.servers {
		server.read = series.Unknown()
		if !(server.PoolReads > 0) || !(server.PoolMisses >= leastMisses) || !(s.e.Threads > 0) {
			continue
		}
		waiting, sampled := server.Sessions[engine.Disk]
		server.pool = cause.OrZero(waiting) / s.e.Threads
		if cause.ReadsThroughPageCache(server.Engine) {
			s.takeReads(server)
			continue
		}
		for _, m := range s.machines {
			if !slices.Contains(m.Servers, server.Name) || !series.IsKnown(m.Disk.Mean) {
				continue
			}
			sampled = true
			if series.IsKnown(m.DiskReadWait) { // else the page cache had all of them
				server.pool = max(server.pool, min(1, server.PoolReads*m.DiskReadWait/s.e.Threads))
				server.read = m.DiskReadWait
			}
		}
		if server.estimated = !sampled; server.estimated {
			server.pool = min(0.9, estimatedMisses*server.PoolMisses)
		}
		s.takeReads(server)
	}
}

// takeReads takes the time in which clients wait for a server's pages, once if several servers have some.
func (s *shares) takeReads(server *serverShares) {
	takeTime(server.pool-max(s.pooled, s.byClass[engine.Disk]), &s.running, &s.outside)
	s.pooled = max(s.pooled, server.pool)
	s.attribute(server.pool)
}

func (s *serverShares) smallPool() LimitFinding {
	read, time := "", fmt.Sprintf("clients waited for pages for %s of their time", table.Share(s.pool))
	if series.IsKnown(s.read) {
		read = fmt.Sprintf(", a read of the disk takes %.2g ms", s.read*1000)
	}
	if s.estimated {
		time = fmt.Sprintf("an estimate of %s of the clients' time, since neither waits for pages nor disks were observed",
			table.Share(s.pool))
	}
	from := "from disk"
	if cause.ReadsThroughPageCache(s.Engine) {
		from = "that were not in its buffers"
	}
	return finding(s.pool, cause.Advice(s.Engine, cause.Pool),
		"%s read %s pages/s %s, %s of those that were asked for%s: %s",
		s.Name, table.Rounded(s.PoolReads), from, table.Share(s.PoolMisses), read, time)
}

// takeDisk takes the time in which a disk was busy, unless sessions that wait for it show that time.
func (s *shares) takeDisk(m *machineShares) {
	if m.Server && m.Disk.High >= mostlyBusy && s.byClass[engine.Disk] < LeastShare {
		m.disk = m.Disk.High * (takeTime(s.running, &s.running, &s.outside) + s.byClass[engine.Commit])
		s.attribute(m.disk)
	}
}

func (m *machineShares) busyDisk() LimitFinding {
	return finding(m.disk, "repeat with a faster disk, a larger cache or fewer fsyncs",
		"a disk of %s was busy for %s of the time on average%s", m.title(), table.Share(m.Disk.Mean), waitText(m.DiskWait))
}

func waitText(seconds float64) string {
	if !series.IsKnown(seconds) {
		return ""
	}
	return fmt.Sprintf("; an operation took %.2g ms", seconds*1000)
}
