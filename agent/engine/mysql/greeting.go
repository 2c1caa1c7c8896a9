package mysql

import (
	"errors"
	"net"
	"strings"
)

// greetingConn checks the first bytes that a server sends. The driver would take
// them for the length of a packet and wait for megabytes that never come.
type greetingConn struct {
	net.Conn
	greeted bool
	foreign *string // receives what another kind of server sent
}

// Read implements net.Conn.
func (c *greetingConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if c.greeted || n == 0 {
		return n, err
	}
	c.greeted = true
	if greets(into[:n]) {
		return n, err
	}
	begin, _, _ := strings.Cut(string(into[:n]), "\n")
	*c.foreign = strings.TrimSpace(begin[:min(len(begin), 40)])
	return 0, errors.New("not a MySQL server")
}

// greets reports whether bytes can begin a server's greeting: a packet of less
// than 64 kB, number 0, with a protocol version (10, once 9) or an error.
func greets(b []byte) bool {
	return (len(b) < 3 || b[2] == 0) && (len(b) < 4 || b[3] == 0) &&
		(len(b) < 5 || b[4] == 10 || b[4] == 9 || b[4] == 0xff)
}
