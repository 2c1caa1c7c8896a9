package atlas

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"io"
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

// socketShare is the share of the time that may go into reading the sockets of
// the machine, of which there are tens of thousands when a benchmark reconnects
// for each transaction.
const socketShare = 0.02

// socket is a line of /proc/net/tcp or tcp6.
type socket struct {
	local, remote netip.AddrPort
	state         uint8
	inode         uint64
}

// sockets are the TCP sockets of this machine that listen or are connected.
type sockets []socket

// readSockets reads the sockets, unless it has just taken long; none if procfs
// can't be read.
func (p *process) readSockets(now time.Time) {
	if now.Before(p.socketsDue) {
		return
	}
	start := time.Now()
	p.sockets = nil
	v4, err := readSocketFile(filepath.Join(p.root, "net", "tcp"))
	if err != nil {
		return
	}
	v6, _ := readSocketFile(filepath.Join(p.root, "net", "tcp6")) // not there without IPv6
	p.sockets = append(v4, v6...)
	p.socketsDue = now.Add(time.Duration(float64(time.Since(start)) / socketShare))
}

func readSocketFile(path string) (sockets, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return parseSockets(f)
}

// parseSockets reads a table of sockets. The procfs package has a parser, which
// is deprecated and takes 70 ms for 20,000 closed sockets; here those are left
// out by their state, the fourth column.
func parseSockets(r io.Reader) (sockets, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	if _, err := lines.ReadSlice('\n'); err != nil { // the header
		return nil, err
	}
	var list sockets
	for {
		line, err := lines.ReadSlice('\n')
		if s, ok := parseSocket(line); ok {
			list = append(list, s)
		}
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		}
	}
}

// parseSocket reads "sl: local remote state queues timer retransmits uid
// timeout inode …"; false for sockets in other states.
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

// parseEnd reads "0100007F:3039": an address in words of the machine's byte
// order, which is little-endian wherever this runs, and a port.
func parseEnd(text []byte) (netip.AddrPort, bool) {
	ip, port, ok := bytes.Cut(text, []byte(":"))
	if !ok {
		return netip.AddrPort{}, false
	}
	raw, err := hex.AppendDecode(nil, ip)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(string(port), 16, 16)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), err == nil
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

// clients counts the connections that have their server's end at a port.
func (s sockets) clients(port uint16) int {
	n := 0
	for i := range s {
		if s[i].state == stateEstablished && s[i].local.Port() == port {
			n++
		}
	}
	return n
}

// towards counts the connections of a process, given by its sockets, to an
// address; false if the address can't be read.
func (s sockets) towards(address string, owned map[uint64]bool) (int, bool) {
	host, port, ok := parseBackend(address)
	if !ok {
		return 0, false
	}
	n := 0
	for i := range s {
		line := &s[i]
		if owned[line.inode] && line.state == stateEstablished && line.remote.Port() == port && (!host.IsValid() || line.remote.Addr() == host) {
			n++
		}
	}
	return n, true
}
