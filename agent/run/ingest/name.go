package ingest

import (
	"path/filepath"
	"regexp"
	"time"
)

// nameTime matches a date and time of day in the forms that programs use in file names:
// 20261121T140300Z, 2026-11-21_14-03-00, 20261121-1403, 2026-11-21T14:03.
var nameTime = regexp.MustCompile(`(?:^|\D)(20\d\d)-?(\d\d)-?(\d\d)[T_ .-]?(\d\d)[:h_.-]?(\d\d)(?:[:m_.-]?(\d\d))?(Z?)(?:\D|$)`)

// namedTime returns the time in the name of a file, local without a zone; zero if there is no time.
func namedTime(path string) time.Time {
	m := nameTime.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return time.Time{}
	}
	seconds, zone := m[6], time.Local
	if seconds == "" {
		seconds = "00"
	}
	if m[7] == "Z" {
		zone = time.UTC
	}
	at, err := time.ParseInLocation("20060102150405", m[1]+m[2]+m[3]+m[4]+m[5]+seconds, zone)
	if err != nil {
		return time.Time{}
	}
	return at
}
