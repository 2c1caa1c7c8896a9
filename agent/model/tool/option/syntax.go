package option

import (
	"maps"
	"slices"
	"strings"
)

// Syntax is how a program reads its options: as GNU getopt and MySQL's programs do, or as pflag.
type Syntax struct {
	// Short are the letters of options with a value, with their long names. Switches are the letters
	// of options without one; an empty name stands for an option that does not matter.
	Short, Switches map[byte]string
	// Valued are the other long options with a value, Flags those without.
	Valued, Flags []string
	// Optional is the name of an option whose value in short form does not begin with a dash.
	Optional string
	// PFlag: -x=value is possible, and a long option that is not listed has a value. Otherwise it has
	// none, a unique beginning of a long name is enough, and its underscores count as dashes.
	PFlag bool
}

// Letters returns short options with a value that have no long names.
func Letters(letters string) map[byte]string {
	names := map[byte]string{}
	for i := range len(letters) {
		names[letters[i]] = letters[i : i+1]
	}
	return names
}

// Parse returns the options and words of a command line. A later value replaces an earlier one.
func (s *Syntax) Parse(args []string) *Set {
	o := New()
	o.Words = s.Read(args, func(name, value string) { o.Values[name] = value })
	return o
}

// Read calls set for each option in order, and returns the words. The value of an option without one is "on".
func (s *Syntax) Read(args []string, set func(name, value string)) (words []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(words, args[i+1:]...)
		case strings.HasPrefix(a, "--"):
			name, value, given := strings.Cut(a[2:], "=")
			name = s.complete(name)
			if !given && s.hasValue(name) {
				if i++; i == len(args) {
					return words // the program refuses it
				}
				value = args[i]
			} else if !given {
				value = "on"
			}
			set(name, value)
		case len(a) > 1 && a[0] == '-':
			if s.readShort(a, set) && i+1 < len(args) {
				name := s.Short[a[len(a)-1]]
				if name != s.Optional || !strings.HasPrefix(args[i+1], "-") {
					i++
					set(name, args[i])
				}
			}
		default:
			words = append(words, a)
		}
	}
	return words
}

// readShort reads a word of short options, up to the first one that is not known. It reports whether
// the last one has a value, which is then the next word.
func (s *Syntax) readShort(word string, set func(name, value string)) (missing bool) {
	for i := 1; i < len(word); i++ {
		if name, ok := s.Switches[word[i]]; ok {
			if name != "" {
				set(name, "on")
			}
			continue
		}
		name, ok := s.Short[word[i]]
		value := word[i+1:]
		if !ok || value == "" {
			return ok
		}
		if s.PFlag {
			value = strings.TrimPrefix(value, "=")
		}
		set(name, value)
		break
	}
	return false
}

func (s *Syntax) hasValue(name string) bool {
	if s.PFlag {
		return !slices.Contains(s.Flags, name)
	}
	return slices.Contains(s.Valued, name) || slices.Contains(slices.Collect(maps.Values(s.Short)), name)
}

// complete returns the long option whose unique beginning is name, or name itself.
func (s *Syntax) complete(name string) string {
	if s.PFlag {
		return name
	}
	name = strings.ReplaceAll(name, "_", "-")
	names := slices.Concat(s.Valued, s.Flags, slices.Collect(maps.Values(s.Short)), slices.Collect(maps.Values(s.Switches)))
	if slices.Contains(names, name) {
		return name
	}
	names = slices.DeleteFunc(names, func(long string) bool { return !strings.HasPrefix(long, name) })
	if len(names) != 1 {
		return name
	}
	return names[0]
}
