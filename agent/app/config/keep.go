package config

import (
	"cmp"
	"fmt"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/retention"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Keep are the limits beyond which run directories are removed. Without a limit none is.
type Keep struct {
	MaxAge   string `yaml:"max_age"`
	MaxSize  string `yaml:"max_size"`
	MaxCount int    `yaml:"max_count"`
}

func (k *Keep) check() error {
	_, age := k.age()
	_, size := ParseSize(k.MaxSize)
	var count error
	if k.MaxCount < 0 {
		count = fmt.Errorf("%d is too small: expected at least 1", k.MaxCount)
	}
	return cmp.Or(in("max_age", age), in("max_size", size), in("max_count", count))
}

func (k *Keep) age() (time.Duration, error) {
	if k.MaxAge == "" {
		return 0, nil
	}
	return ParseAge(k.MaxAge)
}

// rule returns the limits, which were checked.
func (k *Keep) rule() retention.Rule {
	age, _ := k.age()
	size, _ := ParseSize(k.MaxSize)
	return retention.Rule{MaxAge: age, MaxSize: size, MaxCount: k.MaxCount}
}

// ParseSize parses a size such as 50GiB, in bytes; empty: 0.
func ParseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	size, ok := rundir.SizeOf(s)
	if !ok || size < 1 || size > 1<<60 {
		return 0, fmt.Errorf("%q is not a size: expected one such as 50GiB", s)
	}
	return int64(size), nil
}

// Retention returns which runs are removed: the limits, the archive that must have them, and for how long peers would
// send them again.
func (c *Config) Retention() (retention.Options, error) {
	o := retention.Options{DataDir: c.DataDir, Rule: c.Runs.Keep.rule()}
	for i := range c.Peers {
		age, _ := ParseAge(c.Peers[i].MaxAge) // was checked
		o.CopiedFor = max(o.CopiedFor, age)
	}
	if c.Archive.URL == "" {
		return o, nil
	}
	var err error
	o.Archive, err = c.OpenArchive()
	return o, err
}
