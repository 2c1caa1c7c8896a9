package config

import (
	"crypto/tls"
	"fmt"

	commoncfg "github.com/prometheus/common/config"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// TLS configures the TLS connection to a target.
type TLS struct {
	CA                 string               `yaml:"ca"`
	CAFile             string               `yaml:"ca_file" text:"file"`
	Cert               string               `yaml:"cert"`
	CertFile           string               `yaml:"cert_file" text:"file"`
	KeyFile            string               `yaml:"key_file" text:"file"`
	ServerName         string               `yaml:"server_name"`
	InsecureSkipVerify bool                 `yaml:"insecure_skip_verify" default:"false"`
	MinVersion         commoncfg.TLSVersion `yaml:"min_version" default:"TLS12"`
	MaxVersion         commoncfg.TLSVersion `yaml:"max_version"`
}

func (t *TLS) check() error {
	settings := t.settings()
	return in("key_file", settings.Validate())
}

func (t *TLS) settings() commoncfg.TLSConfig {
	return commoncfg.TLSConfig{
		CA: t.CA, CAFile: t.CAFile, Cert: t.Cert, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, MinVersion: t.MinVersion, MaxVersion: t.MaxVersion,
	}
}

// load returns the settings with certificates read from files. The client's certificate is read
// again for each connection, so that a new one is used at once.
func (t *TLS) load() (*tls.Config, error) {
	settings, err := t.read()
	if err != nil || t.CertFile == "" && t.KeyFile == "" {
		return settings, err
	}
	first := settings.GetClientCertificate
	settings.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if now, err := t.read(); err == nil {
			return now.GetClientCertificate(request)
		}
		return first(request) // a pipe can be read only once
	}
	return settings, nil
}

func (t *TLS) read() (*tls.Config, error) {
	inline := t.settings()
	for _, f := range []struct {
		name *string
		keep func(string)
	}{
		{&inline.CAFile, func(s string) { inline.CA = s }},
		{&inline.CertFile, func(s string) { inline.Cert = s }},
		{&inline.KeyFile, func(s string) { inline.Key = commoncfg.Secret(s) }},
	} {
		if *f.name == "" {
			continue
		}
		data, err := secret.ReadFile(*f.name)
		if err == nil && len(data) == 0 {
			err = fmt.Errorf("%s is empty", *f.name)
		}
		if err != nil {
			return nil, err
		}
		*f.name = ""
		f.keep(string(data))
	}
	settings, err := commoncfg.NewTLSConfig(&inline)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return settings, nil
}
