package engine

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"unicode"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// maxErrorText limits an error's text in bytes, since a server may send pages.
const maxErrorText = 500

// explained is an error whose text is one line for the user.
type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }

// Explain returns an error that wraps cause and has a text of one line. The text should be the same
// for each attempt, since the sampler logs each text once.
func Explain(cause error, format string, args ...any) error {
	text := OneLine(fmt.Sprintf(format, args...))
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return &explained{text: text, cause: cause}
}

// IsSilence reports whether the text of a recorded error says that a server did not answer. A server that refuses a login
// does answer.
func IsSilence(text string) bool {
	return strings.HasPrefix(text, "no answer") || strings.HasPrefix(text, "nothing is listening")
}

// OneLine returns a server's text in a form that can be logged and shown: without secrets, with
// each run of white space and control characters as one space.
func OneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return secret.Text(strings.Join(strings.Fields(text), " "))
}

// ExplainConnection returns an error that explains why no connection to address can be opened if
// the reason is the name, the port or the certificate; nil for any other reason. The error wraps
// err.
func ExplainConnection(address string, err error) error {
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &dns):
		return Explain(err, "address %s can't be resolved: %s", address, dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return Explain(err, "nothing is listening on %s: %v", address, syscall.ECONNREFUSED)
	case errors.As(err, &authority):
		return Explain(err, "the certificate of %s is signed by an unknown authority: set tls.ca_file", address)
	case errors.As(err, &hostname):
		return Explain(err, "the certificate of %s is for another name (%v): set tls.server_name", address, hostname)
	case errors.As(err, &invalid):
		return Explain(err, "the certificate of %s is not valid: %v", address, invalid)
	}
	return nil
}

// errorText returns the error's text without the local port of a connection, which differs with
// each attempt.
func errorText(err error) string {
	if _, ok := errors.AsType[*explained](err); ok {
		return err.Error()
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Source != nil {
		text := *op
		text.Source = nil
		return text.Error()
	}
	return err.Error()
}
