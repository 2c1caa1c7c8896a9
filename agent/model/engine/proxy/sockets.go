package proxy

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// States of a TCP socket in procfs (include/net/tcp_states.h).
const (
	stateEstablished = 0x01
	stateListen      = 0x0a
)

// socketShare is the maximum share of time for reading the machine's sockets. There are tens of
// thousands when a benchmark reconnects for each transaction.
const socketShare = 0.02

// socket is a line of /proc/net/tcp or tcp6.
type socket struct {
	local, remote netip.AddrPort
	state         uint8
	inode         uint64
}

// sockets are this machine's TCP sockets that listen or are connected.
type sockets []socket

// readSockets reads the sockets, unless the last reading took long; none if procfs can't be read.
func (p *Process) readSockets(now time.Time) {
	if now.Before(p.socketsDue) {
		return
	}
	start := time.Now()
	p.sockets = nil
	for _, name := range []string{"tcp", "tcp6"} { // tcp6 is missing without IPv6
		table, err := os.ReadFile(filepath.Join(p.root, "net", name))
		if err != nil {
			break
		}
		p.sockets = append(p.sockets, parseSockets(table)...)
	}
	p.socketsDue = now.Add(time.Duration(float64(time.Since(start)) / socketShare))
}

// parseSockets reads a table of sockets. The parser of the procfs package is deprecated and takes
// 70 ms for 20,000 closed sockets; this one skips them by their state, the fourth column.
func parseSockets(table []byte) (list sockets) {
	for line := range bytes.Lines(table) {
		if s, ok := parseSocket(line); ok {
			list = append(list, s)
		}
	}
	return list
}

// parseSocket reads "sl: local remote state queues timer retransmits uid timeout inode …"; false
// for other states.
func parseSocket(line []byte) (socket, bool) {
	var fields [10][]byte
	for i := range fields {
		line = bytes.TrimLeft(line, " ")
		fields[i], line, _ = bytes.Cut(line, []byte(" "))
		if i == 3 && string(fields[3]) != "01" && string(fields[3]) != "0A" {
			return socket{}, false
		}
	}
	s := socket{state: stateEstablished}
	if string(fields[3]) == "0A" {
		s.state = stateListen
	}
	var ok1, ok2 bool
	s.local, ok1 = parseEnd(fields[1])
	s.remote, ok2 = parseEnd(fields[2])
	inode, err := strconv.ParseUint(string(bytes.TrimSpace(fields[9])), 10, 64)
	s.inode = inode
	return s, ok1 && ok2 && err == nil
}

// parseEnd reads "0100007F:3039": an address in words of the machine's byte order, which is
// little-endian on all supported platforms, and a port.
func parseEnd(text []byte) (netip.AddrPort, bool) {
	ip, port, ok := bytes.Cut(text, []byte(":"))
	raw, err1 := hex.AppendDecode(nil, ip)
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, isAddress := netip.AddrFromSlice(raw)
	n, err2 := strconv.ParseUint(string(port), 16, 16)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok && isAddress && err1 == nil && err2 == nil
}

// listener returns the socket that listens on a port.
func (s sockets) listener(port uint16) (inode uint64, ok bool) {
	for i := range s {
		if s[i].state == stateListen && s[i].local.Port() == port {
			return s[i].inode, true
		}
	}
	return 0, false
}

// clients counts the connections whose server end is this port.
func (s sockets) clients(port uint16) (n int) {
	for i := range s {
		if s[i].state == stateEstablished && s[i].local.Port() == port {
			n++
		}
	}
	return n
}

// towards counts the connections of a process, given by its sockets, to an address; false if the
// address can't be parsed.
func (s sockets) towards(address string, owned map[uint64]bool) (int, bool) {
	host, port, err := SplitAddress(address)
	if err != nil {
		return 0, false
	}
	n := 0
	for i := range s {
		line := &s[i]
		if owned[line.inode] && line.state == stateEstablished &&
			line.remote.Port() == port && (!host.IsValid() || line.remote.Addr() == host) {
			n++
		}
	}
	return n, true
}
