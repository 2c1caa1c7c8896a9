// Package cause is how an engine, a machine or a tool explains itself: what its sessions wait for, what limits them
// then, what causes a limit, and what to do about it.
//
// A package that samples something declares one [Explanation] beside its measures:
//
//	var _ = cause.Declare(cause.Explanation{
//		Engine: "mysql",
//		Causes: []cause.Cause{{Name: "full scans", Of: cause.CPU, Reads: "…", Find: fullScans, Test: "…"}},
//	})
//
// Package limits divides the clients' time and asks the catalogue for everything that it says about an engine. Report,
// JSON, comparisons and the table in docs/reference/causes.md show what is declared here. None of them knows an engine by name.
package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Explanation is what one package declares. Every field may be empty.
type Explanation struct {
	// Engine is the engine whose servers it is about. Without an engine it is about every run: waits and advice apply
	// to engines that declare none, and causes get a view without a server.
	Engine string
	Waits  []Wait
	// Advice is the test of a limit's finding: an experiment that would confirm it.
	Advice   map[Limit]string
	Stalls   []Stall
	Meanings []Meaning
	// Settings are the names of the settings that set a limit, such as max_connections.
	Settings map[Limit]string
	// Messages are parts of the messages that clients print if they reach a limit.
	Messages map[Limit][]string
	// Programs are the process names of servers and proxies, which the kernel cuts to 15 bytes.
	Programs []string
	// PageCache: pages that are not in the server's own buffers come from the operating system's cache as far as it has
	// them, so that the latency of a disk says nothing about how long clients wait for them.
	PageCache bool
	// Observe returns a sentence about a server that reports show, whether or not it limits the run; nil: there is none.
	Observe func(*View) string
	Causes  []Cause
}

// Wait is what sessions in a class, or in one of its states, wait for.
type Wait struct {
	// Class is a class of sessions. State is the beginning of the server's own name for the state; empty: all other
	// states of the class.
	Class, State string
	// If is a measure that a server must report for the wait to apply; nil: it always does.
	If *measure.Measure
	// Waits completes the sentence "clients … on SERVER for 20 % of their time".
	Waits string
	Limit Limit
	// Test is an experiment that would confirm the finding; empty: the advice of the limit. Stopped is the test if the
	// wait stopped all clients in one piece; empty: Test.
	Test, Stopped string
}

// Stall is a state of a server in which it does less, while its sessions seem to run.
type Stall struct {
	Limit Limit
	// Measure is high from High, or from the value of HighSetting.
	Measure     *measure.Measure
	High        float64
	HighSetting string
	// Applies reports whether the state can slow this server; nil: it always can.
	Applies func(*View) bool
	// Text describes the state of a server, "%s", which is high from "%s".
	Text string
}

// Meaning is what a server's settings mean for a limit.
type Meaning struct {
	Limit Limit
	Holds func(*View) bool
	// Test replaces the advice of the limit's finding while it holds.
	Test string
}

// Cause is a reason for a limit, found in what was recorded.
type Cause struct {
	// Name says what it is, in lower case: "full scans". It is unique for an engine: the same cause has the same name on
	// every engine.
	Name string
	// Of are the limits that it can explain.
	Of []Limit
	// Reads describes the evidence, for the documentation.
	Reads string
	// Find returns the evidence; false: the cause does not apply, or it is not known whether it does.
	Find func(*View) (Found, bool)
	// Test is what to do to confirm the cause.
	Test string
}

// Found is a cause in a run.
type Found struct {
	// Of is the statement, table, setting or server that it concerns; may be empty.
	Of string
	// Evidence is a sentence with the numbers.
	Evidence string
	// Part is the part of the finding that the cause explains, from 0 to 1.
	Part float64
	// Test replaces the test of the cause if it has the names of this run in it.
	Test string
}

var catalogue struct {
	sync.Mutex
	all []*Explanation
}

// Declare adds an explanation to the catalogue. Packages call it for a package variable. It panics if a cause, a wait, a
// program or an advice is declared twice: that is a mistake in the program.
func Declare(e Explanation) *Explanation {
	catalogue.Lock()
	defer catalogue.Unlock()
	for _, other := range catalogue.all {
		if twice := e.repeats(other); twice != "" {
			panic("cause: " + twice + " is declared twice")
		}
	}
	if twice := (&Explanation{}).repeats(&e); twice != "" {
		panic("cause: " + twice + " is declared twice")
	}
	catalogue.all = append(catalogue.all, &e)
	return &e
}

// repeats returns what e and other both declare, or what other declares twice; empty if there is nothing.
func (e *Explanation) repeats(other *Explanation) string {
	seen := map[string]bool{}
	for _, part := range []*Explanation{e, other} {
		var keys []string
		for i := range part.Causes {
			keys = append(keys, "cause "+part.Engine+" "+part.Causes[i].Name)
		}
		for _, w := range part.Waits {
			keys = append(keys, fmt.Sprintf("wait %s %s %s %v", part.Engine, w.Class, w.State, w.If != nil))
		}
		for limit := range part.Advice {
			keys = append(keys, fmt.Sprintf("advice %s %s", part.Engine, limit))
		}
		for limit := range part.Settings {
			keys = append(keys, fmt.Sprintf("setting %s %s", part.Engine, limit))
		}
		for _, program := range part.Programs {
			keys = append(keys, "program "+program)
		}
		for _, key := range keys {
			if seen[key] {
				return key
			}
			seen[key] = true
		}
	}
	return ""
}

// of returns the explanations of an engine, then those of every run.
func of(engine string) []*Explanation {
	catalogue.Lock()
	defer catalogue.Unlock()
	var own, every []*Explanation
	for _, e := range catalogue.all {
		switch e.Engine {
		case "":
			every = append(every, e)
		case engine:
			own = append(own, e)
		}
	}
	return append(own, every...)
}

// WaitsOf returns the waits of an engine's server, those with a state first. reports is whether the server reports a
// measure; nil: it reports all of them. A wait of the engine replaces the one that every engine has.
func WaitsOf(engine string, reports func(*measure.Measure) bool) []Wait {
	var all []Wait
	for _, e := range of(engine) {
		for _, conditional := range []bool{true, false} {
			for _, w := range e.Waits {
				known := slices.ContainsFunc(all, func(o Wait) bool { return o.Class == w.Class && o.State == w.State })
				if (w.If != nil) != conditional || known || w.If != nil && reports != nil && !reports(w.If) {
					continue
				}
				w.Test = cmp.Or(w.Test, Advice(engine, w.Limit))
				all = append(all, w)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(min(1, len(b.State)), min(1, len(a.State))) })
	return all
}

// Advice returns the test of a limit's finding.
func Advice(engine string, limit Limit) string {
	for _, e := range of(engine) {
		if text := e.Advice[limit]; text != "" {
			return text
		}
	}
	return ""
}

// ReadsThroughPageCache reports whether pages that an engine's servers read may come from the operating system's cache.
func ReadsThroughPageCache(engine string) bool {
	return slices.ContainsFunc(of(engine), func(e *Explanation) bool { return e.PageCache })
}

// StallsOf returns the states in which an engine's servers do less.
func StallsOf(engine string) (all []*Stall) {
	for _, e := range of(engine) {
		for i := range e.Stalls {
			all = append(all, &e.Stalls[i])
		}
	}
	return all
}

// Stalls returns the states of a limit, of all engines.
func Stalls(limit Limit) (all []*Stall) {
	for _, e := range every() {
		for i := range e.Stalls {
			if e.Stalls[i].Limit == limit {
				all = append(all, &e.Stalls[i])
			}
		}
	}
	return all
}

// Classes returns the classes of the sessions that wait for a limit, of all engines.
func Classes(limit Limit) (all []string) {
	for _, e := range every() {
		for _, w := range e.Waits {
			if w.Limit == limit && !slices.Contains(all, w.Class) {
				all = append(all, w.Class)
			}
		}
	}
	return all
}

// MeaningOf returns what the settings of a server mean for a limit, nil if nothing is declared or holds.
func MeaningOf(v *View, limit Limit) *Meaning {
	for _, e := range of(v.Engine) {
		for i := range e.Meanings {
			if m := &e.Meanings[i]; m.Limit == limit && m.Holds(v) {
				return m
			}
		}
	}
	return nil
}

// Observations returns what the engine of a server says about it.
func Observations(v *View) (all []string) {
	for _, e := range of(v.Engine) {
		if e.Observe == nil {
			continue
		}
		if text := e.Observe(v); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// Setting returns the name of the setting of an engine that sets a limit; empty if it has none.
func Setting(engine string, limit Limit) string {
	for _, e := range of(engine) {
		if name := e.Settings[limit]; name != "" {
			return name
		}
	}
	return ""
}

// Messages returns the parts of clients' messages that show a limit, of all engines.
func Messages(limit Limit) (all []string) {
	for _, e := range every() {
		all = append(all, e.Messages[limit]...)
	}
	return all
}

// Programs returns the process names of servers and proxies, of all engines.
func Programs() (all []string) {
	for _, e := range every() {
		all = append(all, e.Programs...)
	}
	return all
}

// ProgramsOf returns the process names of an engine's servers.
func ProgramsOf(engine string) (all []string) {
	for _, e := range of(engine) {
		if e.Engine == engine {
			all = append(all, e.Programs...)
		}
	}
	return all
}

// Declared is a cause with the engine that declares it.
type Declared struct {
	Engine string
	*Cause
}

// All returns the causes, ordered by engine and name: first those of every run.
func All() []Declared {
	var all []Declared
	for _, e := range every() {
		for i := range e.Causes {
			all = append(all, Declared{e.Engine, &e.Causes[i]})
		}
	}
	slices.SortFunc(all, func(a, b Declared) int {
		return cmp.Or(strings.Compare(a.Engine, b.Engine), strings.Compare(a.Name, b.Name))
	})
	return all
}

// IsExplained reports whether a cause of a limit is declared for one of these engines, or for every run.
func IsExplained(limit Limit, engines []string) bool {
	return slices.ContainsFunc(All(), func(d Declared) bool {
		return slices.Contains(d.Of, limit) && (d.Engine == "" || slices.Contains(engines, d.Engine))
	})
}

func every() []*Explanation {
	catalogue.Lock()
	defer catalogue.Unlock()
	return slices.Clone(catalogue.all)
}
