// Package mongodb samples MongoDB 4.4 to 8: members of replica sets and of shards, arbiters,
// standalone servers and mongos.
//
// Every field of a server's answer is optional and may have any numeric type: sections differ
// between versions, roles and storage engines. What a server does not report is absent.
package mongodb

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Engine is MongoDB.
var Engine = &engine.Engine{Name: "mongodb", DefaultPort: "27017", Open: open}

// The options of a target.
const (
	// optionAuthSource is the database in which the user is defined; default: admin.
	optionAuthSource = "auth_source"
	// optionAuthMechanism is the driver's name of the mechanism, such as SCRAM-SHA-256 or
	// MONGODB-X509; default: negotiated.
	optionAuthMechanism = "auth_mechanism"
)

// mechanisms that work with what a target can configure: a user, a password, a client certificate.
var mechanisms = []string{"SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN", "MONGODB-X509"}

// open checks the target's settings.
func open(t engine.Target, log *slog.Logger) (engine.Prober, error) {
	if t.Address == "" {
		return nil, errors.New("mongodb: no address; set it to host:port")
	}
	if strings.Contains(t.Address, "://") || strings.ContainsAny(t.Address, ", ") {
		return nil, fmt.Errorf("mongodb: address %q is not one host:port; list each server as a target of its own", t.Address)
	}
	isMechanism := func(value string) error {
		if slices.Contains(mechanisms, value) {
			return nil
		}
		return fmt.Errorf("unknown mechanism %q; known are %s", value, strings.Join(mechanisms, ", "))
	}
	if err := (engine.OptionChecks{
		optionAuthSource: nil, optionAuthMechanism: isMechanism,
		engine.OptionSessions: engine.OneOf(engine.On, engine.Off), engine.OptionStatements: engine.OneOf(engine.On, engine.Off),
	}).Check(&t); err != nil {
		return nil, fmt.Errorf("mongodb: %w", err)
	}
	if t.Hearsay && t.Options[optionAuthMechanism] == "PLAIN" {
		return nil, fmt.Errorf("mongodb: PLAIN sends the password itself, which no address gets that only another server named: name %s in the configuration", t.Address)
	}
	p := &prober{target: t, log: log}
	if err := p.clientOptions().Validate(); err != nil {
		return nil, fmt.Errorf("mongodb: %w", err)
	}
	return p, nil
}

// credential returns the credential for the login; nil without a user.
func credential(t *engine.Target) *options.Credential {
	mechanism := t.Options[optionAuthMechanism]
	if t.User == "" && mechanism != "MONGODB-X509" {
		return nil
	}
	c := &options.Credential{
		AuthMechanism: mechanism,
		Username:      t.User,
		Password:      string(t.Password),
		PasswordSet:   mechanism != "MONGODB-X509",
		AuthSource:    t.Options[optionAuthSource],
	}
	if c.AuthSource == "" && (mechanism == "MONGODB-X509" || mechanism == "PLAIN") {
		c.AuthSource = "$external"
	}
	if c.AuthSource == "" {
		c.AuthSource = "admin"
	}
	return c
}
