package atlasproxy

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
)

// fakeAdmin answers like a recorded Atlas admin interface: a MySQL greeting of version
// 5.0.99-agent-admin, only mysql_native_password, five SELECTs compared letter by letter, and an
// error for everything else.
type fakeAdmin struct {
	*enginetest.Port

	mu         sync.Mutex
	password   string
	version    string // empty: SELECT VERSION is an unknown column, as in MySQL
	backends   []proxy.Backend
	statements []string
}

const user, password = "admin", "adminpw"

var upAndUp = []proxy.Backend{backend("127.0.0.1:3367", "up", "rw"), backend("127.0.0.1:3368", "up", "ro")}

// backend is a row of the answer.
func backend(address, state, role string) proxy.Backend {
	return proxy.Backend{Address: address, State: state, Role: role}
}

func newFakeAdmin(t *testing.T) *fakeAdmin {
	t.Helper()
	return startFakeAdmin(t, "127.0.0.1:0")
}

func startFakeAdmin(t *testing.T, address string) *fakeAdmin {
	t.Helper()
	f := &fakeAdmin{password: password, version: "2.2.2", backends: upAndUp}
	f.Port = enginetest.Listen(t, address, f.serve)
	return f
}

func (f *fakeAdmin) set(backends ...proxy.Backend) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backends = backends
}

// asked returns the statements received so far.
func (f *fakeAdmin) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.statements)
}

// Capabilities of the greeting: long password and flag, connect with database,
// protocol 4.1, transactions, secure connection. No plugins, no attributes.
const capabilities = 1 | 4 | 8 | 512 | 8192 | 32768

var salt = []byte("abcdefghijklmnopqrst")

func (f *fakeAdmin) serve(conn net.Conn) {
	greeting := append([]byte{10}, "5.0.99-agent-admin\x00\x01\x00\x00\x00"...)
	greeting = append(greeting, salt[:8]...)
	greeting = append(greeting, 0)
	greeting = binary.LittleEndian.AppendUint16(greeting, capabilities)
	greeting = append(greeting, 8, 2, 0) // charset, status
	greeting = append(greeting, make([]byte, 13)...)
	greeting = append(append(greeting, salt[8:]...), 0)
	if !send(conn, 0, greeting) {
		return
	}
	login, seq, ok := receive(conn)
	if !ok {
		return
	}
	if !f.accepts(login) {
		send(conn, seq+1, failure(1045, "28000", "password doesn't match"))
		return
	}
	send(conn, seq+1, okPacket)
	for {
		command, seq, ok := receive(conn)
		if !ok || len(command) == 0 || command[0] == 1 { // COM_QUIT
			return
		}
		for _, packet := range f.answer(command) {
			seq++
			if !send(conn, seq, packet) {
				return
			}
		}
	}
}

var okPacket = []byte{0, 0, 0, 2, 0, 0, 0}

func failure(number uint16, state, message string) []byte {
	p := binary.LittleEndian.AppendUint16([]byte{0xff}, number)
	return append(p, "#"+state+message...)
}

// accepts checks user and password with mysql_native_password.
func (f *fakeAdmin) accepts(login []byte) bool {
	if len(login) < 33 {
		return false
	}
	name, rest, ok := bytes.Cut(login[32:], []byte{0})
	if !ok || string(name) != user || len(rest) < 21 || rest[0] != 20 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	once := sha1.Sum([]byte(f.password))
	twice := sha1.Sum(once[:])
	mix := sha1.Sum(append(slices.Clone(salt), twice[:]...))
	for i := range mix {
		mix[i] ^= once[i]
	}
	return bytes.Equal(mix[:], rest[1:21])
}

func (f *fakeAdmin) answer(command []byte) [][]byte {
	if command[0] != 3 { // COM_QUERY
		return [][]byte{failure(1105, "07000", "[admin] we only handle text-based queries (COM_QUERY)")}
	}
	statement := string(command[1:])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.statements = append(f.statements, statement)
	switch strings.ToUpper(statement) {
	case "SELECT VERSION":
		if f.version == "" {
			return [][]byte{failure(1054, "42S22", "Unknown column 'VERSION' in 'field list'")}
		}
		return table([]string{"version"}, []string{f.version})
	case "SELECT * FROM BACKENDS":
		var rows [][]string
		for i, b := range f.backends {
			rows = append(rows, []string{string(rune('1' + i)), b.Address, b.State, b.Role})
		}
		return table([]string{"backend_ndx", "address", "state", "type"}, rows...)
	case "SELECT * FROM PWDS":
		return table([]string{"username", "password"}, []string{"sb", "TyZkp+bGIwU="})
	}
	return [][]byte{failure(1105, "07000", "use 'SELECT * FROM help' to see the supported commands")}
}

// table returns a text result set.
func table(columns []string, rows ...[]string) [][]byte {
	packets := [][]byte{{byte(len(columns))}}
	eof := []byte{0xfe, 0, 0, 2, 0}
	for _, name := range columns {
		kind := byte(0xfd)
		if name == "backend_ndx" {
			kind = 3
		}
		p := append(lengthCoded("def"), 0, 0, 0) // schema, table, original table
		p = append(p, lengthCoded(name)...)
		p = append(p, 0, 0x0c, 8, 0, 255, 0, 0, 0, kind, 0, 0, 0, 0, 0)
		packets = append(packets, p)
	}
	packets = append(packets, eof)
	for _, row := range rows {
		var p []byte
		for _, cell := range row {
			p = append(p, lengthCoded(cell)...)
		}
		packets = append(packets, p)
	}
	return append(packets, eof)
}

func lengthCoded(text string) []byte { return append([]byte{byte(len(text))}, text...) }

func send(conn net.Conn, seq byte, payload []byte) bool {
	n := len(payload)
	_, err := conn.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), seq}, payload...))
	return err == nil
}

func receive(conn net.Conn) (payload []byte, seq byte, ok bool) {
	var header [4]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return nil, 0, false
	}
	payload = make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	_, err := io.ReadFull(conn, payload)
	return payload, header[3], err == nil
}
