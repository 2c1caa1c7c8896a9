package config

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// CheckAddress reports what is wrong with the address of a server. It refuses user information,
// which would be shown and logged but never used. The path of a socket can contain an @. The error
// does not repeat the address.
func CheckAddress(address string) error {
	if strings.Contains(address, "@") && !strings.HasPrefix(address, "/") {
		return errors.New("contains a user or password; these have their own keys, user and password_file")
	}
	if address == "" || strings.HasPrefix(address, "/") {
		return required(address, "host:port")
	}
	if withoutPort(address) {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return errors.New("expected host:port")
	}
	return checkPort(port)
}

// withoutPort reports whether an address is only a host.
func withoutPort(address string) bool {
	host := strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	return address != "" && !strings.HasPrefix(address, "/") && (!strings.Contains(address, ":") || net.ParseIP(host) != nil)
}

func checkPort(port string) error {
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("expected a port from 1 to 65535")
	}
	return nil
}

// CheckURL reports what is wrong with the address of a Grafana or a Prometheus. An empty address is
// valid.
func CheckURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("expected an http:// or https:// address")
	case u.User != nil:
		return errors.New("contains a user or password; use a token file")
	case strings.HasSuffix(u.Host, ":") || u.Port() != "":
		return checkPort(u.Port())
	}
	return nil
}
