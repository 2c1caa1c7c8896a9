package tool

import (
	"cmp"
	"strings"
)

// Login is how a tool logs in to its servers. It is never stored or shown. Zero values mean that the tool does not
// say.
type Login struct {
	User, Password string
	TLS            TLS
	// Options are options of a target in the words of its engine, such as the database that has the user.
	Options map[string]string
}

// TLS is how a tool encrypts its connections.
type TLS struct {
	Mode     TLSMode `json:"mode,omitempty"`
	CAFile   string  `json:"ca_file,omitempty"`
	CertFile string  `json:"cert_file,omitempty"`
	KeyFile  string  `json:"key_file,omitempty"`
	// ServerName replaces the host of the address in the check of the certificate.
	ServerName string `json:"server_name,omitempty"`
}

// TLSMode is how much a tool demands.
type TLSMode string

const (
	TLSOff       TLSMode = ""            // none
	TLSPreferred TLSMode = "preferred"   // if the server offers it, without verifying the certificate
	TLSRequired  TLSMode = "required"    // without verifying the certificate
	TLSVerifyCA  TLSMode = "verify-ca"   // the certificate is of a known authority
	TLSVerify    TLSMode = "verify-full" // and is the server's
)

// tlsModes are the words of database clients for modes, in lower case.
var tlsModes = map[string]TLSMode{
	"disable": TLSOff, "disabled": TLSOff, "off": TLSOff, "false": TLSOff, "0": TLSOff, "no": TLSOff,
	"allow": TLSPreferred, "prefer": TLSPreferred, "preferred": TLSPreferred,
	"require": TLSRequired, "required": TLSRequired, "on": TLSRequired, "true": TLSRequired, "1": TLSRequired, "yes": TLSRequired, "trust": TLSRequired,
	"skip-verify": TLSRequired,
	"verify-ca":   TLSVerifyCA,
	"verify-full": TLSVerify, "verify-identity": TLSVerify,
}

// ParseTLSMode reads a client's word for a mode. A word that is not known demands everything, so that a
// login is never less protected than the tool's.
func ParseTLSMode(word string) TLSMode {
	word = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), "_", "-")
	if mode, known := tlsModes[word]; known {
		return mode
	}
	return TLSVerify
}

// LoginOf returns how a tool logs in, given its arguments and files with their secrets.
func (t *Tool) LoginOf(in Invocation) Login {
	if t.Login == nil {
		return Login{}
	}
	in.WithSecrets = true
	return t.Login(in)
}

// Or returns the login with what l does not say from another one. The TLS of l counts if l has any.
func (l Login) Or(other Login) Login {
	l.User, l.Password = cmp.Or(l.User, other.User), cmp.Or(l.Password, other.Password)
	if l.TLS == (TLS{}) {
		l.TLS = other.TLS
	}
	if l.Options == nil {
		l.Options = other.Options
	}
	return l
}
