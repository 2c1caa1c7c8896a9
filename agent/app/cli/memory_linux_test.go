package cli

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestUnmapProgram guards that pages of this test are unmapped, but none that the dynamic linker wrote, and that the
// test continues.
func TestUnmapProgram(t *testing.T) {
	before, written := readOnlyPages(t)
	unmapProgram()
	after, stillWritten := readOnlyPages(t)
	if after == 0 || after > before*3/4 {
		t.Errorf("%d kB of the program are resident, %d kB before", after, before)
	}
	if stillWritten != written {
		t.Errorf("%d kB of read-only pages differ from their file, %d kB before", stillWritten, written)
	}
}

var field = regexp.MustCompile(`^(Rss|Anonymous|Swap): +(\d+) kB`)

// readOnlyPages returns how many kilobytes of mapped files that can't be written are resident, and how many differ
// from the file.
func readOnlyPages(t *testing.T) (resident, written int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("no procfs here")
	}
	ours := false
	for line := range strings.Lines(string(smaps)) {
		if m := field.FindStringSubmatch(line); m == nil && strings.Contains(line, "-") && strings.Contains(line, " r") {
			ours = !strings.Contains(line, " rw") && strings.Contains(line, "/")
		} else if m != nil && ours {
			kilobytes, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			if m[1] == "Rss" {
				resident += kilobytes
			} else {
				written += kilobytes
			}
		}
	}
	return resident, written
}
