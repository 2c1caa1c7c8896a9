package commandline

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
)

// maxFile bounds how much of a configuration file is read.
const maxFile = 1 << 20

// Env is what surrounds a command.
type Env struct {
	// ReadFile reads a file that the command names, relative to the working
	// directory. Nil: there are no files.
	ReadFile func(name string) ([]byte, error)
	// Getenv reads the environment. Nil: it is empty.
	Getenv func(name string) string
	// NoInject leaves the command as it is.
	NoInject bool
}

// OS is the Env of this process. Only regular files of at most 1 MiB are
// read: a pipe would be drained, and would block.
func OS() Env {
	return Env{ReadFile: readFile, Getenv: os.Getenv}
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read %s: larger than %d bytes", name, maxFile)
	}
	return data, nil
}

// secretVariables are environment variables that hold passwords of what
// benchmark tools connect to.
var secretVariables = []string{
	"MYSQL_PWD", "MYSQL_PASSWORD", "MYSQL_ROOT_PASSWORD", "MARIADB_PASSWORD", "MARIADB_ROOT_PASSWORD",
	"PGPASSWORD", "POSTGRES_PASSWORD", "MONGODB_PASSWORD", "MONGO_PASSWORD", "MONGO_INITDB_ROOT_PASSWORD",
	"GRAFANA_TOKEN", "GRAFANA_API_KEY",
}

// surroundings are an Env as the parts of a command change it. Its methods
// return changed copies.
type surroundings struct {
	Env
	set     map[string]string
	cleared bool
	dir     string
	nowhere bool // the directory is not known, or not on this machine
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

var errNowhere = errors.New("the file's directory is not known")

func (s surroundings) readFile(name string) ([]byte, error) {
	if s.ReadFile == nil {
		return nil, os.ErrNotExist
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
