package commandline

import "strings"

// through returns the surroundings behind env's, or sudo's, arguments.
func (s surroundings) through(args []word) surroundings {
	for i := 0; i < len(args); i++ {
		v := args[i].value
		next := func() string {
			if i++; i < len(args) {
				return args[i].value
			}
			return ""
		}
		switch {
		case v == "-" || v == "-i" || v == "--ignore-environment":
			s.cleared, s.set = true, nil
		case v == "-u" || v == "--unset":
			s = s.with(next(), "")
		case v == "-C" || v == "--chdir" || v == "-D":
			dir := next()
			s = s.chdir(dir, !strings.Contains(dir, expansion))
		case strings.HasPrefix(v, "--unset="):
			s = s.with(strings.TrimPrefix(v, "--unset="), "")
		case strings.HasPrefix(v, "--chdir="):
			s = s.chdir(strings.TrimPrefix(v, "--chdir="), !strings.Contains(v, expansion))
		case isAssignment(v):
			s = assign(s, v)
		}
	}
	return s
}

func assign(s surroundings, assignment string) surroundings {
	name, value, _ := strings.Cut(assignment, "=")
	return s.with(name, value)
}

// splitString finds the text that env splits into words itself (-S), and the
// index of the words behind it.
func splitString(words []word) (at, behind int, ok bool) {
	for i := 1; i < len(words); i++ {
		v := words[i].value
		switch {
		case v == "-S" || v == "--split-string" || v == "-iS" || v == "-vS":
			return i + 1, i + 2, i+1 < len(words)
		case v == "-u" || v == "-C" || v == "--unset" || v == "--chdir":
			i++
		case !strings.HasPrefix(v, "-"):
			return 0, 0, false
		}
	}
	return 0, 0, false
}
