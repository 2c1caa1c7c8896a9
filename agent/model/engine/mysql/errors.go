package mysql

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// stage is how far connecting has got.
type stage int

const (
	idle     stage = iota
	dialling       // no connection yet
	greeting       // connected, not logged in
	asking         // logged in
)

// progress describes an attempt, for error messages.
type progress struct {
	at      stage
	foreign string // first bytes of a server that is not MySQL
	// encrypted: the connection has TLS. needsTLS: the account can only log in with it.
	encrypted, needsTLS bool
}

// explain turns an error into one line with a remedy. The line is the same for the same cause,
// whichever local port was used.
func explain(t *engine.Target, p progress, err error) error {
	switch {
	case p.at == dialling:
		return explainDial(t, err)
	case p.at == greeting && p.foreign != "":
		return fmt.Errorf("%s does not speak the MySQL protocol: it sent %q", t.Address, p.foreign)
	case p.at == greeting:
		return explainLogin(t, &p, err)
	case errors.Is(err, engine.ErrTooMuch):
		return engine.Explain(err, "%s: %v", t.Address, err)
	case timedOut(err):
		return engine.Explain(context.DeadlineExceeded, "%s is connected but does not answer", t.Address)
	case !answered(err) && lost(err):
		return fmt.Errorf("%s closed the connection", t.Address)
	}
	return engine.Explain(err, "%v", err)
}

func explainDial(t *engine.Target, err error) error {
	if explained := engine.ExplainConnection(t.Address, err); explained != nil {
		return explained
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("socket %s does not exist", t.Address)
	case timedOut(err):
		return engine.Explain(context.DeadlineExceeded, "no connection to %s", t.Address)
	}
	return engine.Explain(err, "no connection to %s: %v", t.Address, rootCause(err))
}

func explainLogin(t *engine.Target, p *progress, err error) error {
	var (
		refusal *mysqldriver.MySQLError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case timedOut(err):
		return engine.Explain(context.DeadlineExceeded, "%s accepts connections but does not greet as a MySQL server (stopped or overloaded, or the network between)", t.Address)
	case hasNumber(err, insecureTransport), hasNumber(err, accessDenied) && p.needsTLS && !p.encrypted:
		return engine.Explain(err, "%s demands TLS for user %q: set tls in the target, or use TLS with the tool", t.Address, t.User)
	case errors.As(err, &refusal):
		return engine.Explain(err, "%s refuses the login: %s (%d)%s", t.Address,
			refusal.Message, refusal.Number, loginHints[refusal.Number])
	}
	if explained := engine.ExplainConnection(t.Address, err); explained != nil {
		return explained
	}
	switch {
	case errors.As(err, &alert), errors.As(err, &record), strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
		return engine.Explain(err, "no TLS connection to %s: %v", t.Address, rootCause(err))
	case errors.Is(err, errWantsPassword):
		return fmt.Errorf("%s asks user %q for the password itself, which no address gets that only another server named: "+
			"log in there once, so that the server remembers the user (caching_sha2_password), or name the target in the configuration", t.Address, t.User)
	case errors.Is(err, mysqldriver.ErrNoTLS) && t.Hearsay:
		return fmt.Errorf("%s does not offer TLS, but the tool uses it", t.Address)
	case errors.Is(err, mysqldriver.ErrNoTLS):
		return fmt.Errorf("%s does not offer TLS: remove tls from the target, or switch TLS on in the server", t.Address)
	case errors.Is(err, mysqldriver.ErrUnknownPlugin), errors.Is(err, mysqldriver.ErrOldPassword),
		errors.Is(err, mysqldriver.ErrNativePassword), errors.Is(err, mysqldriver.ErrCleartextPassword):
		return fmt.Errorf("user %q logs in with a method that can't be used here (%w): give it caching_sha2_password, mysql_native_password or ed25519", t.User, err)
	case errors.Is(err, mysqldriver.ErrOldProtocol), strings.Contains(err.Error(), "unsupported protocol version"):
		return fmt.Errorf("server on %s is too old: 5.5 is the oldest that can be sampled", t.Address)
	}
	return fmt.Errorf("%s does not speak the MySQL protocol, or closes the connection at once", t.Address)
}

// Numbers of refused logins.
const (
	accessDenied      = 1045
	insecureTransport = 3159
)

// loginHints are remedies for refused logins, by error number.
var loginHints = map[uint16]string{
	1040: ": raise max_connections, or use the server's extra port",
	1045: ": check user and password_file of the target",
	1129: ": FLUSH HOSTS on the server",
	1130: ": create the user for the agent's host",
	1203: ": raise max_connections, or use the server's extra port",
	1235: ": set tls in the target",
	1698: ": check user and password_file of the target",
}

// answered reports whether an error is a server's answer to a statement, which means that the
// connection still works.
func answered(err error) bool {
	var answer *mysqldriver.MySQLError
	return errors.As(err, &answer)
}

// lost reports whether an error means that the connection is lost.
func lost(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// cause returns the error within an error of package net, whose text contains changing ports.
func rootCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
