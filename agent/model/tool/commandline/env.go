package commandline

import (
	"errors"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Env is the environment of a command.
type Env struct {
	// ReadFile reads a file that the command names, relative to the working directory. Nil: no
	// files.
	ReadFile func(name string) ([]byte, error)
	// Getenv reads an environment variable. Nil: there are none.
	Getenv func(name string) string
	// Environ is the environment; the command may repeat its secrets.
	Environ []string
	// NoInject: add no arguments.
	NoInject bool
}

// OS returns the Env of this process. It reads only regular files: reading a pipe would take data away from the tool.
func OS() Env {
	return Env{ReadFile: secret.ReadRegular, Getenv: getenv, Environ: os.Environ()}
}

// getenv is os.Getenv, with the user of this process as USER where the environment lacks it: client libraries take it
// from the system.
func getenv(name string) string {
	v := os.Getenv(name)
	if name == "USER" && v == "" {
		if u, err := user.Current(); err == nil {
			v = u.Username
		}
	}
	return v
}

// surroundings are an Env as changed by parts of the command. Methods return changed copies.
type surroundings struct {
	Env
	set     map[string]string
	cleared bool
	dir     string
	nowhere bool // the directory is unknown or not on this machine
	place   tool.Place
}

func (s surroundings) with(name, value string) surroundings {
	s.set = maps.Clone(s.set)
	if s.set == nil {
		s.set = map[string]string{}
	}
	s.set[name] = value
	return s
}

func (s surroundings) chdir(dir string, known bool) surroundings {
	switch {
	case !known:
		s.nowhere = true
	case filepath.IsAbs(dir):
		s.dir, s.nowhere = dir, false
	default:
		s.dir = filepath.Join(s.dir, dir)
	}
	return s
}

func (s surroundings) getenv(name string) string {
	if v, ok := s.set[name]; ok {
		return v
	}
	if s.cleared || s.Getenv == nil {
		return ""
	}
	return s.Getenv(name)
}

// in returns the surroundings of a command that runs at place. A container that another machine
// starts stays elsewhere.
func (s surroundings) in(place tool.Place) surroundings {
	if place != tool.PlaceHere && s.place != tool.PlaceElsewhere {
		s.place = place
	}
	if place == tool.PlaceElsewhere { // with an environment of its own
		s.cleared, s.set = true, nil
	}
	return s
}

var errNowhere = errors.New("the file's directory is not known")

func (s surroundings) readFile(name string) ([]byte, error) {
	if s.ReadFile == nil {
		return nil, os.ErrNotExist
	}
	if s.place == tool.PlaceElsewhere {
		return nil, errNowhere
	}
	if !filepath.IsAbs(name) {
		if s.nowhere {
			return nil, errNowhere
		}
		if s.dir != "" {
			name = filepath.Join(s.dir, name)
		}
	}
	return s.ReadFile(name)
}

// envSyntax is the syntax of env, and of the options of sudo that matter.
var envSyntax = option.Syntax{
	Short: map[byte]string{'u': "unset", 'C': "chdir", 'D': "chdir", 'S': "split-string"}, Switches: map[byte]string{'i': "ignore-environment", 'v': ""},
}

// through returns the surroundings of a command started by env or sudo with these arguments.
func (s surroundings) through(args []string) surroundings {
	words := envSyntax.Read(args, func(name, value string) {
		switch name {
		case "ignore-environment":
			s.cleared, s.set = true, nil
		case "unset":
			s = s.with(value, "")
		case "chdir":
			s = s.chdir(value, !strings.Contains(value, expansion))
		}
	})
	for _, w := range words {
		if w == "-" {
			s.cleared, s.set = true, nil
		} else if isAssignment(w) {
			s = assign(s, w)
		}
	}
	return s
}

func assign(s surroundings, assignment string) surroundings {
	name, value, _ := strings.Cut(assignment, "=")
	return s.with(name, value)
}

// splitString finds the text that env itself splits into words (-S), and the index of the words
// after it.
func splitString(words []string) (at, after int, ok bool) {
	for i := 1; i < len(words); i++ {
		v := words[i]
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
