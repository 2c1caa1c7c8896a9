package atlas

import (
	"net"
	"net/netip"

	"github.com/prometheus/procfs"
)

// States of a TCP socket in procfs (include/net/tcp_states.h).
const (
	stateEstablished = 1
	stateListen      = 10
)

// socket is a line of /proc/net/tcp or tcp6.
type socket struct {
	local, remote netip.AddrPort
	state         uint64
	inode         uint64
}

// sockets are the TCP sockets of this machine.
type sockets []socket

// readSockets reads the sockets; none if procfs can't be read.
func (p *process) readSockets() {
	p.sockets = nil
	root, err := procfs.NewFS(p.root)
	if err != nil {
		return
	}
	// The package advises netlink, which would need a dependency and can't be
	// pointed at another root in tests.
	v4, err := root.NetTCP() //lint:ignore SA1019 see above
	if err != nil {
		return
	}
	v6, _ := root.NetTCP6() //lint:ignore SA1019 see above; not there without IPv6
	all := make(sockets, 0, len(v4)+len(v6))
	for _, table := range []procfs.NetTCP{v4, v6} {
		for _, line := range table {
			all = append(all, socket{
				local:  addrPort(line.LocalAddr, line.LocalPort),
				remote: addrPort(line.RemAddr, line.RemPort),
				state:  line.St, inode: line.Inode,
			})
		}
	}
	p.sockets = all
}

func addrPort(ip net.IP, port uint64) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(addr.Unmap(), uint16(port))
}

// listener returns the socket that listens on a port.
func (s sockets) listener(port uint64) (inode uint64, ok bool) {
	for i := range s {
		if s[i].state == stateListen && uint64(s[i].local.Port()) == port {
			return s[i].inode, true
		}
	}
	return 0, false
}

// clients counts the connections that have their server's end at a port.
func (s sockets) clients(port uint64) int {
	n := 0
	for i := range s {
		if s[i].state == stateEstablished && uint64(s[i].local.Port()) == port {
			n++
		}
	}
	return n
}

// towards counts the connections of a process, given by its sockets, to an
// address; false if the address can't be read.
func (s sockets) towards(address string, owned map[uint64]int) (int, bool) {
	host, port, ok := parseBackend(address)
	if !ok {
		return 0, false
	}
	n := 0
	for i := range s {
		line := &s[i]
		_, mine := owned[line.inode]
		if mine && line.state == stateEstablished && line.remote.Port() == port && (!host.IsValid() || line.remote.Addr() == host) {
			n++
		}
	}
	return n, true
}
