package mysql

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// How InnoDB writes and reads pages beyond what statements ask for.
var _ = cause.Declare(cause.Explanation{
	Engine: Name,
	Causes: []cause.Cause{
		{
			Name: "flushing that falls behind", Of: []cause.Limit{cause.Pool, cause.Disk, cause.State, cause.Latches},
			Reads: "`Innodb_buffer_pool_wait_free`, `Innodb_buffer_pool_pages_lru_flushed`, pages read from disk, dirty pages and all pages of the buffer pool, `innodb_io_capacity`",
			Find:  slowFlushing, Test: "repeat with a larger buffer pool, a larger innodb_io_capacity and innodb_io_capacity_max, or a disk that writes faster",
		},
		{
			Name: "pages written twice", Of: []cause.Limit{cause.Disk, cause.Checkpoint, cause.Pool, cause.State},
			Reads: "`Innodb_dblwr_pages_written` as a share of all bytes that InnoDB reads and writes (`Innodb_data_written`, pages read from disk)",
			Find:  doublewritten, Test: "repeat with innodb_doublewrite=OFF, for the test only; a file system with atomic writes of pages does without it",
		},
		{
			Name: "pages read ahead for nothing", Of: []cause.Limit{cause.Pool, cause.Disk},
			Reads: "`Innodb_buffer_pool_read_ahead`, `_rnd`, `_evicted`, pages read from disk",
			Find:  vainReadAhead, Test: "repeat with innodb_random_read_ahead=OFF and innodb_read_ahead_threshold=64",
		},
	},
})

const (
	// fewWaits is how many waits for a free page, or pages written for one, a transaction has at least: with fewer, flushing
	// delays hardly any of them.
	fewWaits = 0.05
	// vain is the share of all pages read that were read ahead and evicted without use.
	vain = 0.2
)

// slowFlushing finds that statements waited until a dirty page was written, since there was no free one for the page that
// they read. MariaDB counts pages that are written to make room, MySQL the waits: either is a part of the pages read.
func slowFlushing(v *cause.View) (cause.Found, bool) {
	waits, forRoom := v.Increase(freeWaits), v.Increase(flushedForRoom)
	most := max(cause.OrZero(waits), cause.OrZero(forRoom))
	part := min(1, most/(v.Mean(engine.PagesRead)*v.Seconds))
	if !(most >= fewWaits*v.Throughput*v.Seconds) || !(part > 0) {
		return cause.Found{}, false
	}
	text := fmt.Sprintf("for %s of the pages that statements read, a page that was not yet written was in the way", table.Share(part))
	if waits > 0 {
		text += fmt.Sprintf("; statements waited %s times a second for a free page", table.Rounded(waits/v.Seconds))
	}
	if forRoom > 0 {
		text += fmt.Sprintf("; %s pages a second were written to make room for others", table.Rounded(forRoom/v.Seconds))
	}
	if dirty := v.Mean(dirtyPages) / v.Last(allPages); dirty > 0 {
		text += fmt.Sprintf("; %s of the buffer pool were not yet written on average", table.Share(min(1, dirty)))
	}
	of := "innodb_buffer_pool_size"
	if capacity := v.Setting("innodb_io_capacity"); capacity != "" {
		of, text = "innodb_io_capacity", text+"; innodb_io_capacity is "+capacity
	}
	return cause.Found{Of: of, Part: part, Evidence: text}, true
}

// doublewritten finds that much of what the disk did was writing pages a second time: without that, this part of its bytes
// is saved.
func doublewritten(v *cause.View) (cause.Found, bool) {
	again, written, read := v.Increase(writtenTwice), v.Increase(bytesWritten), v.Mean(engine.PagesRead)*v.Seconds*page
	part := again / (written + cause.OrZero(read))
	if !(part > 0) || !(again <= written) {
		return cause.Found{}, false
	}
	return cause.Found{Of: "innodb_doublewrite", Part: part, Evidence: fmt.Sprintf(
		"InnoDB wrote %s and read %s a second; %s of that was the doublewrite buffer: each page is written twice",
		table.Size(written/v.Seconds), table.Size(cause.OrZero(read)/v.Seconds), table.Share(part))}, true
}

// page is InnoDB's usual size of a page.
const page = 16 << 10

// vainReadAhead finds that many pages were read ahead and evicted without use.
func vainReadAhead(v *cause.View) (cause.Found, bool) {
	evicted, ahead, asked := v.Increase(readForNothing), v.Increase(readBefore), v.Mean(engine.PagesRead)*v.Seconds
	part := evicted / (ahead + asked)
	if !(part >= vain) || !(evicted/v.Seconds >= 10) {
		return cause.Found{}, false
	}
	return cause.Found{Of: "innodb_random_read_ahead", Part: min(0.95, part), Evidence: fmt.Sprintf(
		"%s pages a second were read ahead, and %s of them evicted without any use; statements asked for %s a second",
		table.Rounded(ahead/v.Seconds), table.Share(min(1, evicted/ahead)), table.Rounded(asked/v.Seconds))}, true
}
