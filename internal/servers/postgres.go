package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Postgres is a PostgreSQL server on loopback, for pgbench. It has the database postgres and
// the user bench.
type Postgres struct {
	Dir      string
	Port     int
	Password string // of the user bench

	bin string // the folder of the server's programs
}

// ErrNoPostgres is returned if PostgreSQL is not installed.
var ErrNoPostgres = errors.New("PostgreSQL is not installed; scripts/packages.sh test installs it")

// StartPostgres creates a server in a new folder and starts it. The kernel ends it when the caller
// dies.
func StartPostgres(ctx context.Context, dir string) (_ *Postgres, err error) {
	p := &Postgres{Dir: dir}
	if p.bin, err = postgresPrograms(); err != nil {
		return nil, err
	}
	if p.Port, err = FreePorts(1); err != nil {
		return nil, err
	}
	p.Port++
	as, err := serverUser()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	if p.Password, err = password(dir, "bench"); err != nil {
		return nil, err
	}
	// The owner runs initdb, which reads the password from it.
	secret, data, log := filepath.Join(dir, "bench.password"), filepath.Join(dir, "data"), filepath.Join(dir, "server.log")
	if err := errors.Join(os.Mkdir(data, 0o700), os.WriteFile(log, nil, 0o644)); err != nil {
		return nil, err
	}
	if err := give(as, secret, data, log); err != nil {
		return nil, err
	}
	if err := run(ctx, as, p.bin+"/initdb", "--pgdata="+data, "--username=bench", "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	err = p.process().start(program{args: []string{p.bin + "/postgres", "-D", data,
		"-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(p.Port),
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=50"}, log: log, user: as, attached: true})
	if err != nil {
		return nil, err
	}
	err = p.process().await(ctx, startLimit, log, func(ctx context.Context) bool {
		return run(ctx, nil, p.bin+"/pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(p.Port)) == nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("PostgreSQL: %w", err), p.Stop())
	}
	return p, nil
}

func (p *Postgres) process() process { return process(filepath.Join(p.Dir, "pid")) }

// Address returns where the server listens.
func (p *Postgres) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)) }

// Program returns the path of a PostgreSQL program of the server's version.
func (p *Postgres) Program(name string) string { return filepath.Join(p.bin, name) }

// Stop ends the server and waits for it.
func (p *Postgres) Stop() error { return p.process().stop(30 * time.Second) }

// postgresPrograms returns the folder with the newest version's programs: Debian's, or the folder
// of the postgres in the PATH.
func postgresPrograms() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // 9.6 is below all whole numbers
		return n
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	path, err := lookPath("postgres")
	if err != nil {
		return "", ErrNoPostgres
	}
	return filepath.Dir(path), nil
}
