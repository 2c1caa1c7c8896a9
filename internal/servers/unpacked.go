package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// release is a server in a release of Debian.
type release struct {
	suite    string
	packages []string
	program  string
}

// releases are the servers that need not be installed.
var releases = map[string]release{
	"mysql9":        {"sid", []string{"mysql-server-core", "mysql-client-core"}, "usr/sbin/mysqld"},
	"mariadb-10.5":  {"bullseye", []string{"mariadb-server-core-10.5", "galera-4"}, "usr/sbin/mariadbd"},
	"mariadb-10.11": {"bookworm", []string{"mariadb-server-core", "galera-4"}, "usr/sbin/mariadbd"},
	"mariadb-11.8":  {"trixie", []string{"mariadb-server-core", "galera-4"}, "usr/sbin/mariadbd"},

	"haproxy-3.0":    {"trixie", []string{"haproxy"}, "usr/sbin/haproxy"},
	"haproxy-3.2":    {"sid", []string{"haproxy"}, "usr/sbin/haproxy"},
	"pgbouncer-1.24": {"trixie", []string{"pgbouncer"}, "usr/sbin/pgbouncer"},
	"pgbouncer-1.26": {"sid", []string{"pgbouncer"}, "usr/sbin/pgbouncer"},
	"mysqlrouter":    {"sid", []string{"mysql-router"}, "usr/bin/mysqlrouter"},
}

// unpacked is the folder with the packages of a release, which run with their own C library on an
// older or newer Debian. It is empty for a server that is installed.
type unpacked string

func (u unpacked) path(file string) string { return filepath.Join(string(u), file) }

// command returns the command line that starts a program with its own dynamic loader.
func (u unpacked) command(program string) []string {
	if u == "" {
		return []string{filepath.Base(program)}
	}
	var folders []string
	loader := ""
	for _, pattern := range []string{"lib/*-linux-gnu", "usr/lib/*-linux-gnu", "usr/lib/mysql-router"} {
		found, _ := filepath.Glob(u.path(pattern)) // the pattern is valid
		folders = append(folders, found...)
	}
	for _, folder := range append(folders, u.path("usr/lib")) {
		if found, _ := filepath.Glob(folder + "/ld-linux*.so.*"); len(found) > 0 {
			loader = found[0]
			break
		}
	}
	return []string{loader, "--library-path", strings.Join(folders, ":"), u.path(program)}
}

// unpackFolder is the folder for releases: BENCHWATCH_UNPACKED, or build below the repository's root.
func unpackFolder() (string, error) {
	if dir := os.Getenv("BENCHWATCH_UNPACKED"); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := Repository()
	return filepath.Join(root, "build"), err
}

// Repository returns the root of the repository that contains the working directory.
func Repository() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", errors.New("the working directory is not in the repository")
		}
	}
	return "", err
}

// Unpack fetches a release, such as mysql9 (100 MB) or mariadb-10.5 (20 MB), unless it is there.
func Unpack(ctx context.Context, name string) error {
	_, err := unpack(ctx, name)
	return err
}

// unpack uses apt with separate folders and the system's keys. A mirror that is no longer updated is sufficient.
func unpack(ctx context.Context, name string) (unpacked, error) {
	r, known := releases[name]
	if !known {
		return "", fmt.Errorf("%s is not a release that can be unpacked", name)
	}
	folder, err := unpackFolder()
	if err != nil {
		return "", err
	}
	root := filepath.Join(folder, name)
	if _, err := os.Stat(filepath.Join(root, r.program)); err == nil {
		return unpacked(root), nil
	}
	if err := r.fetch(ctx, root+".new"); err != nil {
		return "", fmt.Errorf("fetch %s of Debian %s: %w", name, r.suite, err)
	}
	return unpacked(root), os.Rename(root+".new", root)
}

func (r release) fetch(ctx context.Context, fresh string) error {
	const keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if _, err := os.Stat(keys); err != nil {
		return fmt.Errorf("the keys of Debian are missing (package debian-archive-keyring): %w", err)
	}
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	apt := fresh + "/apt"
	for _, dir := range []string{"/lists/partial", "/cache/partial"} {
		if err := os.MkdirAll(apt+dir, 0o755); err != nil {
			return err
		}
	}
	as, err := serverUser()
	if err != nil {
		return err
	}
	if err := run(ctx, as, "test", "-x", fresh); err != nil {
		return fmt.Errorf("the user mysql can't reach %s: set BENCHWATCH_UNPACKED to a folder that it can reach, such as /var/tmp/servers", fresh)
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keys, debianMirror(), r.suite)
	if err := errors.Join(os.WriteFile(apt+"/sources.list", []byte(source), 0o644), os.WriteFile(apt+"/status", nil, 0o644)); err != nil {
		return err
	}
	options := []string{"apt-get", "-q", "-y", "-o",
		"Dir::Etc::sourcelist=" + apt + "/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::State::lists=" + apt + "/lists", "-o", "Dir::State::status=" + apt + "/status", "-o", "Dir::Cache=" + apt + "/cache",
		"-o", "Dir::State::extended_states=" + apt + "/extended", "-o", "Acquire::Check-Valid-Until=false",
		"-o", "APT::Sandbox::User=" + me.Username, "-o", "Debug::NoLocking=true"}
	if err := run(ctx, nil, append(options, "update")...); err != nil {
		return err
	}
	options = append(options, "--no-install-recommends", "--download-only", "install")
	if err := run(ctx, nil, append(options, r.packages...)...); err != nil {
		return err
	}
	packages, err := filepath.Glob(apt + "/cache/archives/*.deb")
	if err != nil {
		return err
	}
	for _, deb := range packages {
		if err := run(ctx, nil, "dpkg-deb", "--extract", deb, fresh); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(apt), os.Chmod(fresh, 0o755))
}

// debianMirror returns the mirror of Debian to use.
func debianMirror() string {
	return cmp.Or(os.Getenv("BENCHWATCH_DEBIAN_MIRROR"), "http://deb.debian.org/debian")
}
