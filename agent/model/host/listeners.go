package host

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// listeners returns the processes that listen on one of the ports; nil if none is known to. Only
// root can read the files of another user's process.
func (f *files) listeners(proc string, pids, ports []int) []int {
	sockets := map[string]bool{}
	for _, name := range []string{"/net/tcp", "/net/tcp6"} {
		text, err := f.read(proc + name)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			fields := bytes.Fields(line)
			if len(fields) < 10 || string(fields[3]) != "0A" { // TCP_LISTEN
				continue
			}
			_, hex, _ := bytes.Cut(fields[1], []byte(":"))
			if port, err := strconv.ParseUint(string(hex), 16, 16); err == nil && slices.Contains(ports, int(port)) {
				sockets["socket:["+string(fields[9])+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return nil
	}
	var own []int
	for _, pid := range pids {
		folder := proc + "/" + strconv.Itoa(pid) + "/fd"
		dir, err := os.Open(folder)
		if err != nil {
			continue
		}
		names, _ := dir.Readdirnames(-1) // an error leaves a partial list
		_ = dir.Close()
		if slices.ContainsFunc(names, func(name string) bool {
			link, err := os.Readlink(folder + "/" + name)
			return err == nil && strings.HasPrefix(link, "socket:") && sockets[link]
		}) {
			own = append(own, pid)
		}
	}
	return own
}
