// Package gtid compares servers by the global transaction identifiers that they have executed:
// MySQL's sets and MariaDB's positions.
package gtid

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of transactions: the numbers for each origin. In MySQL an origin is the UUID of a
// server or group, followed by a tag if there is one; in MariaDB it is a replication domain.
type Set map[string][]Interval

// Interval is a range of numbers, First and Last included.
type Interval struct {
	First, Last uint64
}

// ParseSet reads MySQL's notation, as in gtid_executed:
//
//	3e11fa47-…:1-100898:1070769-1090273:tag:1-5,
//	4350f323-…:1
//
// Gaps are usual: members of a group take blocks of a million numbers.
func ParseSet(text string) (Set, error) {
	set := Set{}
	for member := range strings.SplitSeq(text, ",") {
		member = strings.TrimSpace(member)
		if member == "" {
			continue
		}
		uuid, rest, ok := strings.Cut(member, ":")
		if !ok || uuid == "" {
			return nil, fmt.Errorf("GTID set %q: no numbers after %q", shorten(text), shorten(member))
		}
		origin := strings.ToLower(strings.TrimSpace(uuid))
		key := origin
		for part := range strings.SplitSeq(rest, ":") {
			part = strings.TrimSpace(part)
			if part != "" && (part[0] < '0' || part[0] > '9') {
				key = origin + ":" + strings.ToLower(part)
				continue
			}
			interval, err := parseInterval(part)
			if err != nil {
				return nil, fmt.Errorf("GTID set %q: %w", shorten(text), err)
			}
			set[key] = append(set[key], interval)
		}
	}
	for key := range set {
		set[key] = normalize(set[key])
	}
	return set, nil
}

func parseInterval(text string) (Interval, error) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	a, err1 := strconv.ParseUint(strings.TrimSpace(first), 10, 63)
	b, err2 := strconv.ParseUint(strings.TrimSpace(last), 10, 63)
	if err1 != nil || err2 != nil || a == 0 || b < a {
		return Interval{}, fmt.Errorf("%q is no range of numbers", shorten(text))
	}
	return Interval{a, b}, nil
}

// ParsePosition reads MariaDB's notation, as in gtid_slave_pos: the last transaction of each
// domain, domain-server-number. The set contains all earlier ones, since the numbers of a domain
// only grow.
func ParsePosition(text string) (Set, error) {
	set := Set{}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		parts := strings.Split(item, "-")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%q is no GTID", shorten(item))
		}
		domain, err1 := strconv.ParseUint(parts[0], 10, 32)
		_, err2 := strconv.ParseUint(parts[1], 10, 32)
		number, err3 := strconv.ParseUint(parts[2], 10, 63)
		if err1 != nil || err2 != nil || err3 != nil {
			return nil, fmt.Errorf("%q is no GTID", shorten(item))
		}
		key := strconv.FormatUint(domain, 10)
		if number > 0 {
			set[key] = normalize(append(set[key], Interval{1, number}))
		}
	}
	return set, nil
}

// normalize sorts intervals and joins adjacent ones.
func normalize(all []Interval) []Interval {
	slices.SortFunc(all, func(a, b Interval) int { return cmp.Compare(a.First, b.First) })
	joined := all[:0]
	for _, i := range all {
		if n := len(joined); n > 0 && i.First <= joined[n-1].Last+1 {
			joined[n-1].Last = max(joined[n-1].Last, i.Last)
			continue
		}
		joined = append(joined, i)
	}
	return joined
}

// Count returns the number of transactions in the set.
func (s Set) Count() uint64 {
	var n uint64
	for _, intervals := range s {
		for _, i := range intervals {
			n = add(n, i.Last-i.First+1)
		}
	}
	return n
}

// Missing counts the transactions of other that are not in s.
func (s Set) Missing(other Set) uint64 {
	var n uint64
	for origin, theirs := range other {
		n = add(n, missing(s[origin], theirs))
	}
	return n
}

// missing counts the numbers in theirs that are not in ours. Both are normalized.
func missing(ours, theirs []Interval) uint64 {
	var n uint64
	for _, t := range theirs {
		next := t.First // first number that is not compared yet
		for len(ours) > 0 && ours[0].Last < t.First {
			ours = ours[1:]
		}
		for _, o := range ours {
			if o.First > t.Last {
				break
			}
			if o.First > next {
				n = add(n, o.First-next)
			}
			next = max(next, o.Last+1)
		}
		if next <= t.Last {
			n = add(n, t.Last-next+1)
		}
	}
	return n
}

func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Only returns the transactions of an origin, with any tag.
func (s Set) Only(origin string) Set { return s.part(origin, true) }

// Without returns the transactions of all other origins.
func (s Set) Without(origin string) Set { return s.part(origin, false) }

func (s Set) part(origin string, of bool) Set {
	part := Set{}
	for key, intervals := range s {
		if (key == origin || strings.HasPrefix(key, origin+":")) == of {
			part[key] = intervals
		}
	}
	return part
}

func shorten(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}
