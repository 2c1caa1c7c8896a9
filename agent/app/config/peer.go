package config

import (
	"cmp"
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
	URL          string `yaml:"url"`
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file" text:"file"`
	PasswordEnv  string `yaml:"password_env"`
	TLS          *TLS   `yaml:"tls"` // nil: the system's certificates
	Output       bool   `yaml:"output" default:"true"`
	Metrics      bool   `yaml:"metrics" default:"false"`
	MaxAge       string `yaml:"max_age" default:"24h"`
}

func (p *Peer) check() error {
	address := required(p.URL, "the http:// or https:// address of an agent")
	if strings.ContainsAny(p.URL, "?#") {
		address = errors.New("expected an address without a query")
	}
	var password error
	switch {
	case p.PasswordFile != "" && p.PasswordEnv != "":
		password = errors.New("is set besides password_file: use one of them")
	case p.User != "" && p.PasswordFile == "" && p.PasswordEnv == "":
		password = errors.New("is missing: user needs it or password_file")
	case p.User == "" && (p.PasswordFile != "" || p.PasswordEnv != ""):
		password = errors.New("is set without user")
	}
	_, age := ParseAge(p.MaxAge)
	return cmp.Or(in("url", cmp.Or(address, CheckURL(p.URL))), in("password_env", password), in("max_age", age))
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
			return in(fmt.Sprintf("peers[%d].url", i), fmt.Errorf("%s is used twice", c.Peers[i].name()))
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
