package pattern

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
)

// unit converts a printed number to base units: times 10^shift, which is exact, times multiplier,
// divided by divisor.
type unit struct {
	shift      int
	multiplier float64 // 0: not used
	divisor    float64 // 0: not used
}

var times = map[string]unit{
	"ns": {shift: -9}, "us": {shift: -6}, "ms": {shift: -3}, "s": {},
	"min": {multiplier: 60}, "h": {multiplier: 3600},
}

var rates = map[string]unit{
	"per_second": {}, "per_minute": {divisor: 60}, "per_hour": {divisor: 3600},
}

// value returns a printed number in base units; false if it is negative or not a number.
func (u unit) value(text []byte) (float64, bool) {
	v, ok := decimal.Parse(text, u.shift)
	if u.multiplier > 0 {
		v *= u.multiplier
	}
	if u.divisor > 0 {
		v /= u.divisor
	}
	return v, ok && v >= 0 && v <= 1e18
}

// units finds the units that the user configured.
type units struct {
	given map[string]string
	used  map[string]bool
}

// of returns the unit of a group. Latencies need a configured unit: tools print three different
// ones without naming them.
func (u *units) of(group string, kind fieldKind) (unit, string) {
	var all string
	known := times
	switch kind {
	case latency:
		all = "latency"
	case elapsed:
		all = "elapsed"
	case length:
		all = "interval"
	case rate:
		all, known = "rate", rates
	default:
		return unit{}, ""
	}
	for _, name := range []string{group, all} {
		text, ok := u.given[name]
		if !ok {
			continue
		}
		u.used[name] = true
		if v, ok := known[text]; ok {
			return v, ""
		}
		return unit{}, fmt.Sprintf("unit %q of %s is unknown: use one of %s",
			text, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	if kind == latency {
		return unit{}, fmt.Sprintf("group %q needs a unit: add units: {%s: ms}, or units: {latency: ms} for all", group, group)
	}
	return unit{}, ""
}

// check returns an error for units that belong to no group.
func (u *units) check() error {
	for _, name := range slices.Sorted(maps.Keys(u.given)) {
		if !u.used[name] {
			return &Error{"units." + name, "no group has this unit: expected the name of a group, or latency, rate, elapsed or interval"}
		}
	}
	return nil
}
