// Package option reads the options and other words of a command line by the syntax that the tool declares.
package option

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// MaxTargets is the maximum number of addresses that Targets returns.
const MaxTargets = 64

// Set is the options of one command line.
type Set struct {
	// Values by option name without dashes.
	Values map[string]string
	// Words are the arguments that are neither options nor their values.
	Words []string
	// WithSecrets: values from configuration files keep their secrets.
	WithSecrets bool
}

// New returns a Set without options.
func New() *Set { return &Set{Values: map[string]string{}} }

// Word returns the word at an index, empty if there are fewer words.
func (s *Set) Word(i int) string {
	if i < len(s.Words) {
		return s.Words[i]
	}
	return ""
}

// First returns the value of the first of names that is given.
func (s *Set) First(names ...string) (string, bool) {
	for _, name := range names {
		if v, ok := s.Values[name]; ok {
			return v, true
		}
	}
	return "", false
}

// Has reports whether any of names is given.
func (s *Set) Has(names ...string) bool {
	_, ok := s.First(names...)
	return ok
}

// SetDefault sets an option from a configuration file unless it is given. It blanks secrets in the
// value.
func (s *Set) SetDefault(name, value string) {
	switch {
	case s.Has(name):
	case s.WithSecrets:
		s.Values[name] = value
	default:
		s.Values[name] = secret.Value(name, value)
	}
}

// Text returns a value, or otherwise if the value is empty or not given.
func (s *Set) Text(name, otherwise string) string {
	if v := s.Values[name]; v != "" {
		return v
	}
	return otherwise
}

// Number returns a whole number, 0 if the value is not one, or otherwise if the option is not
// given.
func (s *Set) Number(name string, otherwise int) int {
	if v, ok := s.Values[name]; ok {
		return Number(v)
	}
	return otherwise
}

// Duration returns a duration in Go's format, 0 if the value is not one, or otherwise if the option
// is not given.
func (s *Set) Duration(name string, otherwise time.Duration) time.Duration {
	v, ok := s.Values[name]
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// Labels returns the values of options by label; names maps options to labels. It leaves out
// options without a value.
func (s *Set) Labels(names map[string]string) map[string]string {
	labels := map[string]string{}
	for option, label := range names {
		if v := s.Values[option]; v != "" {
			labels[label] = v
		}
	}
	return labels
}

// Number returns a whole number up to 2^31-1, 0 if text is not one.
func Number(text string) int {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int(n)
}

// Targets returns every host with every port, joined by commas, at most MaxTargets. hosts and ports
// are separated by commas. With portsFirst the ports of one host follow each other, otherwise the
// hosts of one port.
func Targets(hosts, ports string, portsFirst bool) string {
	inner, outer := strings.Split(hosts, ","), strings.Split(ports, ",")
	if portsFirst {
		inner, outer = outer, inner
	}
	var all []string
	for _, o := range outer {
		for _, i := range inner {
			host, port := i, o
			if portsFirst {
				host, port = o, i
			}
			if len(all) < MaxTargets {
				all = append(all, net.JoinHostPort(strings.Trim(host, " []"), strings.TrimSpace(port)))
			}
		}
	}
	return strings.Join(all, ",")
}
