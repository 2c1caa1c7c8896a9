package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/benchwatch/benchwatch/agent/engine"
)

// stage is how far a connection has come.
type stage int

const (
	idle     stage = iota
	dialling       // no connection yet
	greeting       // connected, not logged in
	asking         // logged in
)

// progress is what is known when an attempt fails.
type progress struct {
	at      stage
	foreign string // what something that is no MySQL server says
}

// explain turns an error into one line that says what to do. It is the same
// line for the same cause, whatever local port the attempt had.
func explain(t *engine.Target, p progress, err error) error {
	switch p.at {
	case dialling:
		return explainDial(t, err)
	case greeting:
		if p.foreign != "" {
			return fmt.Errorf("%s does not speak the MySQL protocol: it says %q", t.Address, p.foreign)
		}
		return explainLogin(t, err)
	}
	var said *mysqldriver.MySQLError
	switch {
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return timeout("%s is connected but does not answer", t.Address)
	case errors.As(err, &said):
		return oneLine(err)
	case lost(err):
		return fmt.Errorf("%s closed the connection", t.Address)
	}
	return oneLine(err)
}

func explainDial(t *engine.Target, err error) error {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("address %s can't be resolved: %s", t.Address, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody listens on %s: %w", t.Address, syscall.ECONNREFUSED)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("socket %s does not exist", t.Address)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return timeout("no connection to %s", t.Address)
	}
	return oneLine(fmt.Errorf("no connection to %s: %w", t.Address, cause(err)))
}

func explainLogin(t *engine.Target, err error) error {
	var (
		said      *mysqldriver.MySQLError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return timeout("%s accepts connections but does not greet as a MySQL server (stopped, overloaded, or something else)", t.Address)
	case errors.As(err, &said):
		return explainRefusal(t, said)
	case errors.As(err, &authority):
		return fmt.Errorf("the certificate of %s is signed by an unknown authority: name its CA file in the target's tls", t.Address)
	case errors.As(err, &hostname):
		return oneLine(fmt.Errorf("the certificate of %s is for another name (%v): set the server name in the target's tls", t.Address, hostname))
	case errors.As(err, &invalid):
		return oneLine(fmt.Errorf("the certificate of %s is not valid: %v", t.Address, invalid))
	case errors.As(err, &alert), errors.As(err, &record):
		return oneLine(fmt.Errorf("no TLS connection to %s: %w", t.Address, cause(err)))
	case errors.Is(err, mysqldriver.ErrNoTLS):
		return fmt.Errorf("%s does not offer TLS: remove tls from the target, or switch TLS on in the server", t.Address)
	case errors.Is(err, mysqldriver.ErrUnknownPlugin), errors.Is(err, mysqldriver.ErrOldPassword),
		errors.Is(err, mysqldriver.ErrNativePassword), errors.Is(err, mysqldriver.ErrCleartextPassword):
		return fmt.Errorf("user %q logs in with a method that can't be used here (%v): give it caching_sha2_password, mysql_native_password or ed25519", t.User, err)
	case errors.Is(err, mysqldriver.ErrOldProtocol), strings.Contains(err.Error(), "unsupported protocol version"):
		return fmt.Errorf("server on %s is too old: 5.5 is the oldest that can be sampled", t.Address)
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
		return oneLine(fmt.Errorf("no TLS connection to %s: %w", t.Address, cause(err)))
	}
	return fmt.Errorf("%s does not speak the MySQL protocol, or closes the connection at once", t.Address)
}

// explainRefusal says what a server's refusal to log in asks for.
func explainRefusal(t *engine.Target, said *mysqldriver.MySQLError) error {
	hint := ""
	switch said.Number {
	case 1045, 1698:
		hint = ": check user and password_file of the target"
	case 1040, 1203:
		hint = ": raise max_connections, or use the server's extra port"
	case 1129:
		hint = ": FLUSH HOSTS on the server"
	case 1130:
		hint = ": make the user for the agent's host"
	case 3159, 1235:
		hint = ": set tls in the target"
	}
	return oneLine(fmt.Errorf("%s refuses the login: %s (%d)%s", t.Address, said.Message, said.Number, hint))
}

// saidByServer reports whether an error is a server's answer to a statement, so
// that the connection is still good.
func saidByServer(err error) bool {
	var said *mysqldriver.MySQLError
	return errors.As(err, &said)
}

// lost reports whether an error means that the connection is gone.
func lost(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// cause is the error below net's, which names ports that change.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// lineError is an error whose text is one line.
type lineError struct {
	text string
	err  error
}

func (e *lineError) Error() string { return e.text }
func (e *lineError) Unwrap() error { return e.err }

// timeout is an error for a deadline that has passed.
func timeout(format string, args ...any) error {
	return &lineError{text: fmt.Sprintf(format, args...), err: context.DeadlineExceeded}
}

func oneLine(err error) error {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(text) > 500 {
		text = text[:500] + "…"
	}
	return &lineError{text: text, err: err}
}
