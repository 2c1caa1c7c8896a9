package sessions

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// What SHOW ENGINE INNODB STATUS says that the status variables of all versions do not.
const (
	// LatchWaits are the threads that wait for a latch, LongestLatch for how many seconds, and LatchAt where most of
	// them wait. MariaDB lists none since 10.6.
	LatchWaits   = "InnoDB: threads that wait for a latch"
	LongestLatch = "InnoDB: longest wait for a latch"
	LatchAt      = "InnoDB: latch"
	// PendingReads, PendingWrites and PendingFlushes are requests to files that have not ended.
	PendingReads   = "InnoDB: pending reads"
	PendingWrites  = "InnoDB: pending writes"
	PendingFlushes = "InnoDB: pending flushes"
	// CheckpointAge is as of the text.
	CheckpointAge = "InnoDB: checkpoint age"
	// HistoryList is a status variable of MariaDB only.
	HistoryList = "Innodb_history_list_length"
)

const (
	showInnoDB = "SHOW ENGINE INNODB STATUS"
	// slowInnoDB is the time from which the statement is left out for a while: it lists all transactions.
	slowInnoDB   = 20 * time.Millisecond
	againInnoDB  = 30 * time.Second
	missingInno  = "InnoDB's latches and pending I/O (PROCESS)"
	longestInno  = 1 << 20
	mostPlaces   = 100
	longestPlace = 80
)

// innoDB reads the text of InnoDB's monitor.
type innoDB struct{ next time.Time }

// step returns the step of a witness.
func (i *innoDB) step(w *witness) func(context.Context) error {
	return func(ctx context.Context) error {
		begin := time.Now()
		if begin.Before(i.next) {
			return nil
		}
		rows, err := w.rows(ctx, showInnoDB, missingInno)
		if time.Since(begin) > slowInnoDB {
			i.next = begin.Add(againInnoDB)
		}
		for _, row := range rows {
			readInnoDB(w.a, row)
		}
		return err
	}
}

func readInnoDB(a *evidence.Answer, row mysql.Row) {
	text := row.Text("Status")
	parseInnoDB(a, text[:min(len(text), longestInno)])
}

var (
	latchLine   = regexp.MustCompile(`^--Thread \d+ has waited at (\S+ line \d+) for ([0-9.]+) seconds?`)
	flushesLine = regexp.MustCompile(`^Pending flushes \(fsync\)(?: log: (\d+); buffer pool: (\d+)|: (\d+))`)
	aioLine     = regexp.MustCompile(`(reads|writes):\s*\[?([0-9, ]+)`)
)

// parseInnoDB reads the text, whose form differs between versions (MySQL 5.7 to 9, MariaDB 10.5 to 11.8). Statements in the
// last deadlock and in the list of transactions may have any lines, so that a line counts only before or after these.
func parseInnoDB(a *evidence.Answer, text string) {
	places := map[string]int{}
	waits, longest := 0.0, 0.0
	lsn, checkpoint := -1.0, -1.0
	statements, listed := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		statements = statements || strings.HasPrefix(line, "LATEST ") || line == "TRANSACTIONS"
		listed = listed || strings.HasPrefix(line, "LIST OF TRANSACTIONS")
		if m := latchLine.FindStringSubmatch(line); m != nil && !statements {
			waits++
			longest = max(longest, number(m[2]))
			if len(places) < mostPlaces && len(m[1]) < longestPlace {
				places[m[1]]++
			}
			continue
		}
		switch {
		case strings.HasPrefix(line, "Pending normal aio"):
			for _, m := range aioLine.FindAllStringSubmatch(line, 4) {
				name := map[string]string{"reads": PendingReads, "writes": PendingWrites}[m[1]]
				a.Set(name, sum(strings.Split(m[2], ",")))
			}
		case strings.HasPrefix(line, "Pending flushes"):
			if m := flushesLine.FindStringSubmatch(line); m != nil {
				a.Set(PendingFlushes, sum(m[1:]))
			}
		case strings.HasPrefix(line, "Log sequence number"):
			lsn = number(strings.TrimPrefix(line, "Log sequence number"))
		case strings.HasPrefix(line, "Last checkpoint at"):
			checkpoint = number(strings.TrimPrefix(line, "Last checkpoint at"))
		case strings.HasPrefix(line, "History list length") && !listed:
			a.Set(HistoryList, number(strings.TrimPrefix(line, "History list length")))
		}
	}
	if lsn >= 0 && checkpoint >= 0 {
		a.Set(CheckpointAge, lsn-checkpoint)
	}
	if waits > 0 {
		a.Set(LatchWaits, waits)
		a.Set(LongestLatch, longest)
		most := ""
		for place, n := range places {
			if n > places[most] || n == places[most] && place < most {
				most = place
			}
		}
		a.Say(LatchAt, most)
	}
}

func number(text string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return 0
	}
	return v
}

func sum(texts []string) (sum float64) {
	for _, text := range texts {
		sum += number(text)
	}
	return sum
}
