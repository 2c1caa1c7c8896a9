package tool

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// lineTime matches a date and time at the beginning of a line. Loggers write the fraction after a
// point or a comma, YCSB after a colon.
var lineTime = regexp.MustCompile(`^\[?(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,:](\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?`)

// LineTime returns the wall-clock time at the beginning of a line; false if there is none. A time
// without a zone is local.
func LineTime(line []byte) (time.Time, bool) {
	if len(line) < 19 || line[0] != '[' && (line[0] < '1' || line[0] > '2') {
		return time.Time{}, false
	}
	m := lineTime.FindSubmatch(line[:min(len(line), 64)])
	if m == nil {
		return time.Time{}, false
	}
	text := fmt.Sprintf("%s-%s-%sT%s.%s0", m[1], m[2], m[3], m[4], m[5])
	if zone := strings.ReplaceAll(string(m[6]), ":", ""); zone != "" {
		t, err := time.Parse("2006-01-02T15:04:05Z0700", text+zone)
		return t, err == nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local)
	return t, err == nil
}
