package cli

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// started is when the agent needs no more what only its start needs.
	started = 10 * time.Second
	// unmapEvery is how often pages that nothing needs any more are unmapped after that.
	unmapEvery = time.Hour
)

// unmapProgram takes the pages of the program's code and constants out of this process, of which the start needs half
// as many again as the work of an agent. They stay in the kernel's cache while there is room; the ones that are used
// come back at once, without being read again.
func unmapProgram() {
	maps, _ := os.ReadFile("/proc/self/maps") // none without /proc
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[4] == "0" || strings.Contains(fields[1], "w") { // fields[4] is the file's number
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		begin, err := strconv.ParseUint(from, 16, 64)
		end, errOfEnd := strconv.ParseUint(to, 16, 64)
		if err == nil && errOfEnd == nil {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(begin), uintptr(end-begin), unix.MADV_DONTNEED)
		}
	}
}
