package tool

import "strings"

// Set is the list of known tools in the order in which they are tried: built-in tools, then the
// user's own.
type Set []*Tool

// ByName returns the tool called name, or nil.
func (s Set) ByName(name string) *Tool {
	for _, t := range s {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Sniff returns the tool whose output head resembles most, or nil.
func (s Set) Sniff(head []byte) *Tool {
	var best *Tool
	score := 0
	for _, t := range s {
		if sure := t.Sniff(head); sure > score {
			best, score = t, sure
		}
	}
	return best
}

// Names lists the tools, for messages.
func (s Set) Names() string {
	names := make([]string, len(s))
	for i, t := range s {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
