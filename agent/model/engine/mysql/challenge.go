package mysql

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // mysql_native_password
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"filippo.io/edwards25519"
	driver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// errWantsPassword is returned if a server at an address that only another server named asks for the password
// itself. It might be anyone.
var errWantsPassword = errors.New("the server wants the password itself")

// Capabilities of the protocol.
const (
	capLongPassword   = 0x1
	capProtocol41     = 0x200
	capSSL            = 0x800
	capTransactions   = 0x2000
	capSecure         = 0x8000
	capMultiResults   = 0x20000
	capPluginAuth     = 0x80000
	capPluginAuthData = 0x200000
	capDeprecateEOF   = 0x1000000

	// ownCapabilities are those that the driver and this login have in common.
	ownCapabilities = capLongPassword | capProtocol41 | capTransactions | capSecure | capMultiResults | capPluginAuth | capPluginAuthData | capDeprecateEOF
)

// First bytes of a server's packets.
const (
	packetOK         = 0x00
	packetMore       = 0x01
	packetSwitch     = 0xfe
	packetError      = 0xff
	fastSuccess      = 3
	fullLogin        = 4
	longestHandshake = 64 << 10
)

// challenge logs in by challenges alone, for a server that only another server named. The driver would send the
// password within TLS, or encrypted with a key that the server sends. The driver gets a connection that is logged
// in, and believes that it has a user without a password.
type challenge struct {
	target *engine.Target
	conn   net.Conn
	seq    byte
	// encrypted: the connection has TLS.
	encrypted bool
}

// login logs in on conn, and returns the connection for the driver. A refusal is passed on to the driver.
func (c *challenge) login(ctx context.Context, conn net.Conn) (*loggedIn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.conn = conn
	hello, err := c.read()
	if err != nil {
		return nil, err
	}
	if hello[0] == packetError {
		return &loggedIn{Conn: c.conn, toRead: frame(0, hello)}, nil
	}
	g, err := parseGreeting(hello)
	if err != nil {
		return nil, err
	}
	flags := ownCapabilities & g.capabilities
	if c.target.TLS != nil {
		switch {
		case g.capabilities&capSSL != 0:
			if err := c.encrypt(ctx, flags); err != nil {
				return nil, err
			}
		case !c.target.TLSOptional:
			return nil, driver.ErrNoTLS
		}
	}
	refusal, err := c.authenticate(&g, flags)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return &loggedIn{Conn: c.conn, toRead: frame(0, refusal)}, nil
	}
	_ = c.conn.SetDeadline(time.Time{})
	return &loggedIn{Conn: c.conn, toRead: frame(0, g.forDriver(flags)), greets: true}, nil
}

// encrypt starts TLS.
func (c *challenge) encrypt(ctx context.Context, flags uint32) error {
	if err := c.write(loginHead(flags | capSSL)); err != nil {
		return err
	}
	secure := tls.Client(c.conn, c.target.TLS.Clone())
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	c.conn, c.encrypted = secure, true
	return nil
}

// authenticate answers the server's challenges. It returns the server's packet if that refuses the login.
func (c *challenge) authenticate(g *serverGreeting, flags uint32) (refusal []byte, err error) {
	plugin, scramble := g.plugin, g.scramble
	answer, err := c.answer(plugin, scramble)
	if err != nil { // the account may have another method
		plugin = "mysql_native_password"
		if answer, err = c.answer(plugin, scramble); err != nil {
			return nil, err
		}
	}
	if c.encrypted {
		flags |= capSSL
	}
	login := loginHead(flags)
	login = append(login, c.target.User...)
	login = append(login, 0, byte(len(answer)))
	login = append(login, answer...)
	login = append(append(login, plugin...), 0)
	if err := c.write(login); err != nil {
		return nil, err
	}
	for range 4 { // a switch, its result, and a result of that
		p, err := c.read()
		if err != nil {
			return nil, err
		}
		switch p[0] {
		case packetOK:
			return nil, nil
		case packetError:
			return p, nil
		case packetMore:
			if plugin != "caching_sha2_password" || len(p) != 2 || p[1] != fastSuccess {
				return nil, errWantsPassword
			}
		case packetSwitch:
			name, data, ok := bytes.Cut(p[1:], []byte{0})
			if !ok {
				return nil, driver.ErrOldPassword
			}
			plugin = string(name)
			if answer, err = c.answer(plugin, bytes.TrimSuffix(data, []byte{0})); err != nil {
				return nil, err
			}
			if err := c.write(answer); err != nil {
				return nil, err
			}
		default:
			return nil, driver.ErrMalformPkt
		}
	}
	return nil, driver.ErrMalformPkt
}

// answer returns the answer of a method that proves the password without sending it.
func (c *challenge) answer(plugin string, scramble []byte) ([]byte, error) {
	password := []byte(c.target.Password)
	const usual, ed25519 = 20, 32 // lengths of a challenge
	switch plugin {
	case "mysql_native_password", "caching_sha2_password":
		switch {
		case len(password) == 0:
			return nil, nil
		case len(scramble) < usual:
			return nil, driver.ErrMalformPkt
		case plugin == "mysql_native_password":
			return nativeAnswer(scramble[:usual], password), nil
		}
		return sha2Answer(scramble[:usual], password), nil
	case "client_ed25519":
		if len(scramble) != ed25519 {
			return nil, driver.ErrMalformPkt
		}
		return ed25519Answer(scramble, password)
	}
	return nil, fmt.Errorf("%w (%q)", errWantsPassword, plugin)
}

// nativeAnswer is SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password))).
func nativeAnswer(scramble, password []byte) []byte {
	once := sha1.Sum(password)                                   //nolint:gosec // the protocol's
	twice := sha1.Sum(once[:])                                   //nolint:gosec // the protocol's
	mask := sha1.Sum(append(bytes.Clone(scramble), twice[:]...)) //nolint:gosec // the protocol's
	for i := range mask {
		mask[i] ^= once[i]
	}
	return mask[:]
}

// sha2Answer is SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble).
func sha2Answer(scramble, password []byte) []byte {
	once := sha256.Sum256(password)
	twice := sha256.Sum256(once[:])
	mask := sha256.Sum256(append(twice[:], scramble...))
	for i := range mask {
		mask[i] ^= once[i]
	}
	return mask[:]
}

// ed25519Answer signs the challenge with a key made from the password (plugin/auth_ed25519 of MariaDB).
func ed25519Answer(scramble, password []byte) ([]byte, error) {
	seed := sha512.Sum512(password)
	secret, err := edwards25519.NewScalar().SetBytesWithClamping(seed[:32])
	if err != nil {
		return nil, err
	}
	public := new(edwards25519.Point).ScalarBaseMult(secret).Bytes()
	digest := func(parts ...[]byte) (*edwards25519.Scalar, error) {
		sum := sha512.Sum512(bytes.Join(parts, nil))
		return edwards25519.NewScalar().SetUniformBytes(sum[:])
	}
	r, err := digest(seed[32:], scramble)
	if err != nil {
		return nil, err
	}
	commitment := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
	k, err := digest(commitment, public, scramble)
	if err != nil {
		return nil, err
	}
	return append(commitment, k.MultiplyAdd(k, secret, r).Bytes()...), nil
}

// loginHead is the beginning of a login, and the whole of a request for TLS.
func loginHead(flags uint32) []byte {
	const utf8mb4 = 45
	b := binary.LittleEndian.AppendUint32(nil, flags)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(append(b, utf8mb4), make([]byte, 23)...)
}

// read returns the next packet, which is not empty.
func (c *challenge) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		return nil, err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if n == 0 || n > longestHandshake || head[3] != c.seq {
		return nil, driver.ErrMalformPkt
	}
	c.seq++
	p := make([]byte, n)
	_, err := io.ReadFull(c.conn, p)
	return p, err
}

func (c *challenge) write(p []byte) error {
	_, err := c.conn.Write(frame(c.seq, p))
	c.seq++
	return err
}

// frame returns a packet with its header.
func frame(seq byte, p []byte) []byte {
	return append([]byte{byte(len(p)), byte(len(p) >> 8), byte(len(p) >> 16), seq}, p...)
}

// serverGreeting is a server's first packet.
type serverGreeting struct {
	version      []byte
	capabilities uint32
	scramble     []byte
	plugin       string
}

func parseGreeting(p []byte) (g serverGreeting, err error) {
	version, rest, ok := bytes.Cut(p[1:], []byte{0})
	if p[0] != 10 || !ok || len(rest) < 32 {
		return g, driver.ErrOldProtocol
	}
	g.version = version
	g.scramble = bytes.Clone(rest[4:12])
	g.capabilities = uint32(binary.LittleEndian.Uint16(rest[13:])) | uint32(binary.LittleEndian.Uint16(rest[18:]))<<16
	if g.capabilities&capProtocol41 == 0 || g.capabilities&capSecure == 0 {
		return g, driver.ErrOldProtocol
	}
	length := max(13, int(rest[20])-8)
	rest = rest[31:]
	second := rest[:min(len(rest), length)]
	g.scramble = append(g.scramble, bytes.TrimSuffix(second, []byte{0})...)
	plugin, _, _ := bytes.Cut(rest[len(second):], []byte{0})
	g.plugin = string(plugin)
	return g, nil
}

// forDriver is the greeting that the driver gets: of a server with these capabilities only.
func (g *serverGreeting) forDriver(flags uint32) []byte {
	b := append([]byte{10}, g.version...)
	b = append(b, 0, 0, 0, 0, 0) // end of the version, connection id
	b = append(b, "01234567\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(flags)) //nolint:gosec // the lower half
	b = append(b, 45, 2, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(flags>>16))
	b = append(b, 21)
	b = append(b, make([]byte, 10)...)
	return append(b, "012345678901\x00mysql_native_password\x00"...)
}

// loggedIn is a connection on which the login is done. The driver's own login is answered here.
type loggedIn struct {
	net.Conn
	toRead []byte // before anything from the server
	greets bool   // the next packet of the driver is its login
}

// Read implements net.Conn.
func (c *loggedIn) Read(into []byte) (int, error) {
	if len(c.toRead) > 0 {
		n := copy(into, c.toRead)
		c.toRead = c.toRead[n:]
		return n, nil
	}
	return c.Conn.Read(into)
}

// Write implements net.Conn. The driver writes each packet by one call.
func (c *loggedIn) Write(p []byte) (int, error) {
	if c.greets {
		c.greets = false
		c.toRead = frame(2, []byte{packetOK, 0, 0, 2, 0, 0, 0})
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// demandsTLS reports whether an account that the server refused without TLS can log in with it. The server's
// refusal is the same as for a wrong password.
func demandsTLS(ctx context.Context, t engine.Target) bool {
	t.TLS = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10} //nolint:gosec // only a challenge is answered
	t.TLSOptional = false
	network := "tcp"
	if strings.HasPrefix(t.Address, "/") {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, t.Address)
	if err != nil {
		return false
	}
	login := challenge{target: &t}
	in, err := login.login(ctx, conn)
	ok := err == nil && in.greets
	if ok {
		_ = login.conn.SetDeadline(time.Now().Add(ioTimeout))
		_, _ = login.conn.Write(frame(0, []byte{1})) // the end of the connection
	}
	_ = conn.Close()
	return ok
}
