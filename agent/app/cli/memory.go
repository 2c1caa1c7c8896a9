package cli

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startTime is how long the start of the agent takes at most on a busy machine.
	startTime = 10 * time.Second
	// unmapInterval is how often pages that are no longer used are unmapped after that.
	unmapInterval = time.Hour
)

// unmapProgram unmaps the pages of the program's code and constants from this process. The kernel maps 64 KiB around
// each page that is used, and the start of the agent uses many pages that are never used again. The pages remain in
// the kernel's cache, where those that are still used are found.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	smaps, mapsErr := os.ReadFile("/proc/self/smaps")
	if err != nil || mapsErr != nil {
		return // no procfs
	}
	var begin, end uint64
	readOnly, written := false, false
	for line := range strings.Lines(string(smaps)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case !strings.HasSuffix(key, ":"): // the address of a mapping; the lines that describe it follow
			from, to, _ := strings.Cut(key, "-")
			begin, err = strconv.ParseUint(from, 16, 64)
			end, mapsErr = strconv.ParseUint(to, 16, 64)
			readOnly = err == nil && mapsErr == nil && strings.HasPrefix(value, "r") &&
				value[1] == '-' && strings.HasSuffix(value, " "+program)
			written = false
		case key == "Anonymous:" || key == "Swap:":
			// The dynamic linker writes addresses into pages before it makes them read-only. They are not in the file.
			written = written || strings.TrimSpace(value) != "0 kB"
			if key == "Swap:" && readOnly && !written { // Swap follows Anonymous
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(begin), uintptr(end-begin), unix.MADV_DONTNEED)
			}
		}
	}
}
