package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/many/peer"
)

// Peer is another agent whose runs are mirrored.
type Peer struct {
	URL          string
	User         string
	PasswordFile string
	PasswordEnv  string
	TLS          *TLS // nil: the system's certificates
	Output       bool
	Metrics      bool
	MaxAge       string
}

func (p *Peer) keys() []key {
	return []key{
		{
			name: "url", to: text(&p.URL), doc: "Address of its page, such as `https://gen1:9838`. Required",
			check: func() error {
				if err := required(p.URL, "the http:// or https:// address of an agent"); err != nil {
					return err
				}
				if strings.ContainsAny(p.URL, "?#") {
					return errors.New("expected an address without a query")
				}
				return CheckURL(p.URL)
			},
		},
		{name: "user", to: text(&p.User), doc: "User of its `basic_auth_users`"},
		{name: "password_file", to: file(&p.PasswordFile), doc: "File with the password. It is read at each request"},
		{
			name: "password_env", to: text(&p.PasswordEnv), doc: "Environment variable with the password, instead of `password_file`",
			check: func() error {
				switch {
				case p.PasswordFile != "" && p.PasswordEnv != "":
					return errors.New("is set besides password_file: use one of them")
				case p.User != "" && p.PasswordFile == "" && p.PasswordEnv == "":
					return errors.New("is missing: user needs it or password_file")
				case p.User == "" && (p.PasswordFile != "" || p.PasswordEnv != ""):
					return errors.New("is set without user")
				}
				return nil
			},
		},
		{name: "tls", to: optional[TLS, *TLS]{&p.TLS}, doc: "Certificates, for an `https://` address"},
		{name: "output", to: boolean(&p.Output), initial: "true", doc: "Whether the raw output of the tools is mirrored. An agent serves it only with authentication. Without it a mirrored run has its servers and hosts, and no values of the tool"},
		{name: "metrics", to: boolean(&p.Metrics), initial: "false", doc: "Whether this agent serves the metrics of the peer's runs: only if no Prometheus scrapes the peer itself"},
		{
			name: "max_age", to: text(&p.MaxAge), initial: "24h", doc: "Runs that were closed longer ago are not mirrored, unless that was begun before",
			check: func() error {
				_, err := ParseAge(p.MaxAge)
				return err
			},
		},
	}
}

// name returns the label of the peer's metrics: its address without the scheme.
func (p *Peer) name() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return p.URL
	}
	return u.Host + strings.TrimSuffix(u.Path, "/")
}

func (c *Config) checkPeers() error {
	for i := range c.Peers {
		if slices.ContainsFunc(c.Peers[:i], func(o Peer) bool { return o.name() == c.Peers[i].name() }) {
			return &elementError{fmt.Sprintf("[%d].url", i), fmt.Errorf("%s is used twice", c.Peers[i].name())}
		}
	}
	return nil
}

// PeerConfigs returns the peers, with certificates read from files. It logs and leaves out peers
// whose files can't be read.
func (c *Config) PeerConfigs(log *slog.Logger) []peer.Config {
	prepared, errs := together(len(c.Peers), func(i int) (peer.Config, error) { return c.Peers[i].prepare() })
	var all []peer.Config
	for i, err := range errs {
		if err != nil {
			log.Error("peer left out", "peer", c.Peers[i].name(), "err", err)
			continue
		}
		all = append(all, prepared[i])
	}
	return all
}

// identity returns the text of all keys.
func (p *Peer) identity() string {
	keys, settings := *p, TLS{}
	if keys.TLS = nil; p.TLS != nil {
		settings = *p.TLS
	}
	return fmt.Sprintf("%+v %t %+v", keys, p.TLS != nil, settings)
}

func (p *Peer) prepare() (peer.Config, error) {
	prepared := peer.Config{Name: p.name(), Identity: p.identity(), URL: p.URL, User: p.User, Output: p.Output, Metrics: p.Metrics}
	var err error
	if prepared.MaxAge, err = ParseAge(p.MaxAge); err != nil {
		return prepared, err
	}
	file, env := p.PasswordFile, p.PasswordEnv
	prepared.Password = func() (string, error) {
		switch {
		case file != "":
			return secret.ReadPassword(file)
		case env != "":
			password, set := os.LookupEnv(env)
			if !set {
				return "", fmt.Errorf("the environment has no variable %s, which password_env names", env)
			}
			return password, nil
		}
		return "", nil
	}
	if p.TLS != nil {
		if prepared.TLS, err = p.TLS.load(); err != nil {
			return prepared, err
		}
	}
	return prepared, nil
}
