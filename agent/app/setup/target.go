package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
)

// ParseTarget reads a server from a URL such as
// mysql://monitor@10.0.0.1:3306?cluster=blue&name=db1. It refuses a password, since everyone who
// lists processes would see it.
func ParseTarget(text string) (config.Target, error) {
	expected := errors.New("expected ENGINE://USER@HOST[:PORT][?cluster=NAME&name=NAME]")
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return config.Target{}, expected
	}
	if _, given := u.User.Password(); given {
		return config.Target{}, errors.New("contains a password; put it into a file and name that with --password-file")
	}
	if engines.ByName(u.Scheme) == nil {
		return config.Target{}, fmt.Errorf("unknown engine %q: expected one of %s", u.Scheme, strings.Join(engines.Names(), ", "))
	}
	t := config.Target{Engine: u.Scheme, Address: u.Host, User: u.User.Username()}
	for key, values := range u.Query() {
		switch key {
		case "cluster":
			t.Cluster = values[0]
		case "name":
			t.Name = values[0]
		default:
			return t, fmt.Errorf("unknown %q: %w", key, expected)
		}
	}
	if t.Name == "" {
		t.Name = u.Host
	}
	return t, nil
}

// Tested is the answer of a server.
type Tested struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Answers: the login was accepted and the server was read.
	Answers bool   `json:"answers"`
	Error   string `json:"error,omitempty"`
	Version string `json:"version,omitempty"`
	Role    string `json:"role,omitempty"`
	// Sampled: the running agent samples it.
	Sampled bool `json:"sampled,omitempty"`
	// Missing lists what could not be read, mostly because of a missing privilege.
	Missing []string `json:"missing,omitempty"`
}

// probeTime limits the test of one server.
const probeTime = 5 * time.Second

// TestTargets tests all targets concurrently.
func TestTargets(ctx context.Context, targets []engine.Target) []Tested {
	all := make([]Tested, len(targets))
	var asking sync.WaitGroup
	for i, t := range targets {
		asking.Go(func() { all[i] = test(ctx, t) })
	}
	asking.Wait()
	return all
}

func test(ctx context.Context, t engine.Target) Tested {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	result := Tested{Name: t.Name, Address: t.Address}
	prober, err := config.Open(t, slog.New(slog.DiscardHandler))
	if err != nil {
		result.Error = secret.Error(err)
		return result
	}
	defer prober.Close()
	status, err := prober.Probe(ctx)
	if err != nil {
		result.Error = secret.Error(err)
		return result
	}
	result.Answers, result.Version, result.Role, result.Missing = true, status.Version, status.Role, status.Missing
	return result
}
