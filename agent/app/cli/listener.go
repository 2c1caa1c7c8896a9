package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// listenerKey is the key of the listener in the context of its requests.
type listenerKey struct{}

func withListener(ctx context.Context, l net.Listener) context.Context {
	return context.WithValue(ctx, listenerKey{}, l)
}

// checkHost refuses requests to a loopback listener that are for another host. Otherwise any web page in a browser on
// this machine could read what the agent serves, by resolving its own name to 127.0.0.1 (DNS rebinding).
func (o *observing) checkHost(next http.Handler) http.Handler {
	allowed := o.hosts()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l, known := r.Context().Value(listenerKey{}).(net.Listener)
		name := hostName(r.Host)
		if known && isLoopback(l.Addr()) && !isLocal(name) && !slices.Contains(allowed, name) {
			w.Header().Set("Connection", "close") // without waiting for a body
			http.Error(w, fmt.Sprintf("host %q is not allowed: use localhost, or start the agent with --web.allowed-host or --web.external-url", name), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hosts are the names that the flags allow.
func (o *observing) hosts() []string {
	var names []string
	for _, host := range slices.Concat(o.addresses, o.allowedHosts) {
		names = append(names, hostName(host))
	}
	if u, err := url.Parse(o.externalURL); err == nil {
		names = append(names, hostName(u.Host))
	}
	return names
}

// hostName returns a host without its port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// isLocal reports whether a host is always this machine. Browsers always send a host, so a request without one, as
// HTTP/1.0 permits, is not from a web page.
func isLocal(name string) bool {
	ip := net.ParseIP(name)
	return name == "" || name == "localhost" || ip != nil && ip.IsLoopback()
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func checkExternalURL(s string) error {
	u, err := url.Parse(s)
	if s != "" && (err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("--web.external-url: %q is not an http:// or https:// address", s)
	}
	return nil
}

// pageURL returns the address of the live page for a browser on this machine or, with
// --web.external-url, anywhere.
func (o *observing) pageURL(l net.Listener) string {
	if o.externalURL != "" {
		return strings.TrimSuffix(o.externalURL, "/") + "/"
	}
	scheme := "http"
	if encrypts(o.webConfig) {
		scheme = "https"
	}
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// warnIfOpen logs the addresses that everyone in the network can read.
func (o *observing) warnIfOpen(ls []net.Listener, log *slog.Logger) {
	if authenticates(o.webConfig) {
		return
	}
	for _, l := range ls {
		if !isLoopback(l.Addr()) {
			log.Warn("everyone who reaches this address can read runs, labels and servers: set basic_auth_users or client certificates in --web.config.file, or listen on 127.0.0.1", "address", l.Addr())
		}
	}
}

// webConfig is the part of a file for --web.config.file that is read.
type webConfig struct {
	Users map[string]string `yaml:"basic_auth_users"`
	TLS   struct {
		Certificate string `yaml:"cert_file"`
		Key         string `yaml:"key_file"`
		ClientCA    string `yaml:"client_ca_file"`
		Inline      string `yaml:"cert"`
		ClientAuth  string `yaml:"client_auth_type"`
	} `yaml:"tls_server_config"`
}

// readWebConfig reads a file that was validated before.
func readWebConfig(file string) (c webConfig) {
	data, err := secret.ReadRegular(file)
	if err != nil || yaml.Unmarshal(data, &c) != nil {
		return webConfig{}
	}
	return c
}

// checkWebConfig checks a file for --web.config.file and the files that it names. They are read at each request, by a
// package that would wait for a FIFO forever.
func checkWebConfig(file string) error {
	if file == "" {
		return nil
	}
	if _, err := secret.ReadRegular(file); err != nil {
		return err
	}
	c := readWebConfig(file)
	for _, name := range []string{c.TLS.Certificate, c.TLS.Key, c.TLS.ClientCA} {
		if name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		if _, err := secret.ReadRegular(name); err != nil {
			return err
		}
	}
	return web.Validate(file)
}

// authenticates reports whether a file for --web.config.file requires a password or a certificate from clients.
func authenticates(file string) bool {
	c := readWebConfig(file)
	return len(c.Users) > 0 || c.TLS.ClientAuth == "RequireAndVerifyClientCert"
}

// authenticated reports whether all requests have a password or a certificate. The file
// is read at each request, as the server does.
func (o *observing) authenticated() bool { return authenticates(o.webConfig) }

// encrypts reports whether a file for --web.config.file enables TLS.
func encrypts(file string) bool {
	c := readWebConfig(file)
	return c.TLS.Certificate != "" || c.TLS.Inline != ""
}
