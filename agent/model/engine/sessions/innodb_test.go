package sessions

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// TestInnoDBMonitor: what the monitor says of latches, files, checkpoint and history, in the forms of several versions. The
// first two are recordings; the others have the lines that the manuals of MySQL 5.7 and 8.0 show.
func TestInnoDBMonitor(t *testing.T) {
	recorded := func(name string) string {
		text, err := os.ReadFile("testdata/innodb/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	latch := "--Thread 1403 has waited at btr0cur.cc line 545 for 3.00 seconds the semaphore:\n"
	for name, c := range map[string]struct {
		text string
		want map[string]float64
		at   string
	}{
		"MariaDB 10.11": {recorded("mariadb-10.11"), map[string]float64{HistoryList: 0, CheckpointAge: 42_547_432, PendingFlushes: 0}, ""},
		"MySQL 9.7": {recorded("mysql-9.7"), map[string]float64{HistoryList: 14, CheckpointAge: 8_485_836, PendingFlushes: 0,
			PendingReads: 0, PendingWrites: 0}, ""},
		"latches": {latch + latch + "--Thread 1404 has waited at fsp0fsp.cc line 12 for 0.5 seconds the semaphore:\n",
			map[string]float64{LatchWaits: 3, LongestLatch: 3}, "btr0cur.cc line 545"},
		"files of MySQL 8": {"Pending normal aio reads: [0, 1, 2, 0] , aio writes: [0, 5, 0, 0] ,\nPending flushes (fsync) log: 1; buffer pool: 2\n",
			map[string]float64{PendingReads: 3, PendingWrites: 5, PendingFlushes: 3}, ""},
		"files of MariaDB":   {"Pending flushes (fsync): 4\n", map[string]float64{PendingFlushes: 4}, ""},
		"numbers with signs": {"History list length -1\nPending flushes (fsync) log: -2; buffer pool: 0\n", map[string]float64{HistoryList: -1}, ""},
		"statements that imitate the monitor": {latch + "LATEST DETECTED DEADLOCK\nUPDATE t /*\n" + latch + "History list length 900\n*/\nTRANSACTIONS\n" +
			"History list length 5\nLIST OF TRANSACTIONS FOR EACH SESSION:\nUPDATE t /*\n" + latch +
			"History list length 901\nPending flushes (fsync): 77\n*/\nFILE I/O\nPending flushes (fsync): 1\n",
			map[string]float64{LatchWaits: 1, LongestLatch: 3, HistoryList: 5, PendingFlushes: 1}, "btr0cur.cc line 545"},
		"one huge line": {strings.Repeat("Pending flushes ", 100_000), nil, ""},
		"empty":         {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &evidence.Answer{}
			parseInnoDB(a, c.text)
			if !maps.Equal(a.Values, c.want) || a.Texts[LatchAt] != c.at {
				t.Errorf("%v at %q, expected %v at %q", a.Values, a.Texts[LatchAt], c.want, c.at)
			}
		})
	}
}

// FuzzInnoDB guards that no text of a monitor breaks an answer, or makes it large.
func FuzzInnoDB(f *testing.F) {
	f.Add("--Thread 1 has waited at a line 2 for 3 seconds\nPending normal aio reads: [1e999, 2], aio writes: -,\n")
	f.Add("Log sequence number 99999999999999999999999\nLast checkpoint at x\nHistory list length NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		a := &evidence.Answer{}
		parseInnoDB(a, text)
		for name, v := range a.Values {
			if v != v {
				t.Errorf("%s is no number", name)
			}
		}
		if len(a.Values) > 8 || len(a.Texts[LatchAt]) > longestPlace {
			t.Errorf("%v, %q", a.Values, a.Texts)
		}
	})
}
