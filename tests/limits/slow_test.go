//go:build limits

package limits

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// slowSync delays fsync and fdatasync of the files whose path contains SLOW_FILE by SLOW_US.
const slowSync = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void delay(int fd) {
	char link[64], path[4096];
	const char *file = getenv("SLOW_FILE"), *us = getenv("SLOW_US");
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n <= 0 || !file || !us) return;
	path[n] = 0;
	if (strstr(path, file)) usleep(atoi(us));
}
int fsync(int fd) {
	static int (*next)(int);
	if (!next) next = dlsym(RTLD_NEXT, "fsync");
	delay(fd);
	return next(fd);
}
int fdatasync(int fd) {
	static int (*next)(int);
	if (!next) next = dlsym(RTLD_NEXT, "fdatasync");
	delay(fd);
	return next(fd);
}
`

// syncing returns a server with the sysbench tables. Each fsync of its files with this name takes
// longer by delay.
func syncing(t *testing.T, file string, delay time.Duration, settings ...string) *servers.Group {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler, which delays fsync")
	}
	source, library := filepath.Join(env.dir, "slow.c"), filepath.Join(env.dir, "slow.so")
	must(t, os.WriteFile(source, []byte(slowSync), 0o644))
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := started(t, servers.MariaDB, 1)
	must(t, first.Stop(t.Context()))
	t.Setenv("LD_PRELOAD", library)
	t.Setenv("SLOW_FILE", file)
	t.Setenv("SLOW_US", fmt.Sprint(delay.Microseconds()))
	g, err := servers.Start(t.Context(), first.Dir, servers.MariaDB, servers.Options{Servers: 1, Attached: true, Settings: settings}) // it has its data
	must(t, err)
	must(t, os.Unsetenv("LD_PRELOAD")) // the tool and the agent start without it
	return g
}

// started returns servers with the sysbench tables, which run for as long as the test.
func started(t *testing.T, kind servers.Kind, n int, settings ...string) *servers.Group {
	t.Helper()
	g, err := servers.Start(t.Context(), filepath.Join(env.dir, filepath.Base(t.Name())), kind, servers.Options{Servers: n, Attached: true, Settings: settings})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	must(t, prepare(g))
	return g
}

// prepare fills the sysbench tables of a server.
func prepare(g *servers.Group) error {
	out, err := exec.Command("sysbench", sysbenchOn(g, "oltp_read_write", "--threads=2", "prepare")[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("prepare tables: %w\n%s", err, out)
	}
	return nil
}
