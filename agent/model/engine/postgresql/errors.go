package postgresql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// SQLSTATEs (src/backend/utils/errcodes.txt).
const (
	protocolViolation     = "08P01" // a pooler's answer to a parameter of the session
	featureNotSupported   = "0A000"
	unknownStatement      = "26000"
	duplicateStatement    = "42P05"
	insufficientPrivilege = "42501"
	lockNotAvailable      = "55P03"
	queryCanceled         = "57014"
)

// code returns the SQLSTATE of a server's answer; empty for other errors.
func code(err error) string {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refusal.Code
	}
	return ""
}

// isFatal reports whether the server ends the connection after an error.
func isFatal(err *pgconn.PgError) bool {
	return err.SeverityUnlocalized == "FATAL" || err.SeverityUnlocalized == "PANIC" ||
		err.SeverityUnlocalized == "" && (err.Severity == "FATAL" || err.Severity == "PANIC")
}

// isBrief reports whether a refusal may pass by itself: a lock on a catalog, or a busy server.
func isBrief(err *pgconn.PgError) bool {
	return err.Code == queryCanceled || err.Code == lockNotAvailable
}

// explain turns an error into one line with a remedy. The line is the same for the same cause.
func explain(t *engine.Target, at stage, err error) error {
	switch {
	case errors.Is(err, engine.ErrTooMuch):
		return engine.Explain(err, "%s: %v", t.Address, engine.ErrTooMuch)
	case at == dialling:
		return explainDial(t, err)
	case at == greeting:
		return explainLogin(t, err)
	case timedOut(err):
		return engine.Explain(context.DeadlineExceeded, "%s is connected but does not answer", t.Address)
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return engine.Explain(err, "%s: %s (%s)", t.Address, refusal.Message, refusal.Code)
	}
	if lost(err) {
		return engine.Explain(err, "%s closed the connection", t.Address)
	}
	return engine.Explain(err, "%s: %v", t.Address, err)
}

func explainDial(t *engine.Target, err error) error {
	if explained := engine.ExplainConnection(t.Address, err); explained != nil {
		return explained
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return engine.Explain(err, "socket %s does not exist", t.Address)
	case timedOut(err):
		return engine.Explain(context.DeadlineExceeded, "no connection to %s", t.Address)
	}
	return engine.Explain(err, "no connection to %s: %v", t.Address, rootCause(err))
}

func explainLogin(t *engine.Target, err error) error {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return engine.Explain(err, "%s refuses the login: %s (%s)%s", t.Address, refusal.Message, refusal.Code, loginHints[refusal.Code])
	}
	if explained := engine.ExplainConnection(t.Address, err); explained != nil {
		return explained
	}
	var (
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	text := err.Error()
	switch {
	case timedOut(err):
		return engine.Explain(context.DeadlineExceeded, "%s accepts connections but does not answer as a PostgreSQL server (stopped or overloaded, or the network between)", t.Address)
	case strings.Contains(text, noTLS):
		return engine.Explain(err, "%s does not offer TLS: remove tls from the target, or switch ssl on in the server", t.Address)
	case errors.As(err, &alert), errors.As(err, &record), strings.Contains(text, "tls:"), strings.Contains(text, "x509:"):
		return engine.Explain(err, "no TLS connection to %s: %v", t.Address, rootCause(err))
	case strings.Contains(text, "require_auth"):
		return engine.Explain(err, "%s asks for the password in plain text: set tls in the target, or scram-sha-256 in the server's pg_hba.conf", t.Address)
	case strings.Contains(text, "iterations of SCRAM"), strings.Contains(text, "SASL"):
		return engine.Explain(err, "%s: the login by SCRAM failed: check user and password_file of the target", t.Address)
	}
	return engine.Explain(err, "%s does not speak the PostgreSQL protocol, or closes the connection at once", t.Address)
}

// loginHints are remedies for refused logins, by SQLSTATE.
var loginHints = map[string]string{
	"28000": ": add a line for the agent to pg_hba.conf, or set tls in the target",
	"28P01": ": check user and password_file of the target",
	"3D000": ": set the option database of the target",
	"42501": ": GRANT CONNECT ON DATABASE to the user",
	"53300": ": raise max_connections, or GRANT pg_use_reserved_connections to the user and set reserved_connections (16 and later)",
	"57P03": ": it is starting, stopping or recovering",
}

// lost reports whether an error means that the connection is lost, perhaps because the server ended it.
func lost(err error) bool {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return isFatal(refusal)
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
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

// versionNumber returns the major version of a server_version such as "15.10 (Debian 15.10-0+deb12u1)" or "18beta1".
func versionNumber(version string) (int, error) {
	major := 0
	if _, err := fmt.Sscanf(version, "%d", &major); err != nil || major <= 0 || major > 999 {
		return 0, fmt.Errorf("server gives no version that can be read (%q)", version)
	}
	return major, nil
}
