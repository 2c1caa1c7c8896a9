//go:build limits

package limits

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/benchwatch/benchwatch/internal/servers"
)

// encrypted is a server with TLS. The tool reads its certificate from the folder in which it is started.
func encrypted(t *testing.T) *lab {
	t.Helper()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl, which makes the certificate")
	}
	dir := filepath.Join(env.dir, "certificates")
	must(t, os.MkdirAll(dir, 0o755))
	key, certificate := filepath.Join(dir, "client-key.pem"), filepath.Join(dir, "client-cert.pem")
	out, err := exec.Command(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
		"-keyout", key, "-out", certificate).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(certificate)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "cacert.pem"), text, 0o644))
	must(t, os.Chmod(key, 0o644)) // the server's own user reads it, too; it protects nothing
	l := own(servers.MariaDB, 1, "innodb_flush_log_at_trx_commit=0", "sync_binlog=0", "ssl_key="+key, "ssl_cert="+certificate, "ssl_ca="+certificate)(t)
	l.dir = dir
	return l
}

// slowName delays each lookup of the name of an address.
const slowName = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>
int getnameinfo(const struct sockaddr *a, socklen_t n, char *host, socklen_t hosts, char *service, socklen_t services, int flags) {
	static int (*next)(const struct sockaddr *, socklen_t, char *, socklen_t, char *, socklen_t, int);
	if (!next) next = dlsym(RTLD_NEXT, "getnameinfo");
	if (!(flags & NI_NUMERICHOST)) {
		usleep(20000);
		return EAI_NONAME;
	}
	return next(a, n, host, hosts, service, services, flags);
}
`

// slowNames is a server that looks up the name of each client, which takes 20 ms, and forgets it.
func slowNames(t *testing.T) *lab {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler, which delays lookups")
	}
	source, library := filepath.Join(env.dir, "names.c"), filepath.Join(env.dir, "names.so")
	must(t, os.WriteFile(source, []byte(slowName), 0o644))
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := started(t, servers.MariaDB, 1)
	rows, err := first.Query(t.Context(), 1, "SHOW CREATE USER bench@127.0.0.1")
	must(t, err)
	for _, statement := range []string{replaceHost(rows[0][0]), "GRANT ALL ON sbtest.* TO bench@127.0.0.2"} {
		_, err := first.Query(t.Context(), 1, statement)
		must(t, err)
	}
	must(t, first.Stop(t.Context()))
	t.Setenv("LD_PRELOAD", library)
	g, err := servers.Start(t.Context(), first.Dir, servers.MariaDB, servers.Options{Servers: 1, Attached: true,
		Settings: []string{"skip_name_resolve=OFF", "host_cache_size=0", "innodb_flush_log_at_trx_commit=0", "sync_binlog=0"}})
	must(t, err)
	must(t, os.Unsetenv("LD_PRELOAD"))
	t.Cleanup(func() { must(t, g.Stop(context.Background())) })
	return newLab(t, g, g.Address(1), elsewhere(t, g.Address(1)))
}

// elsewhere returns an address whose connections reach the server from 127.0.0.2: it knows the name of 127.0.0.1.
func elsewhere(t *testing.T, server string) string {
	t.Helper()
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	return betweenFrom(t, from, server, func(from, to net.Conn) {
		b := make([]byte, 16<<10)
		for {
			n, err := from.Read(b)
			if n > 0 {
				_, _ = to.Write(b[:n]) // its reader notices the end
			}
			if err != nil {
				_, _ = to.Close(), from.Close()
				return
			}
		}
	})
}

// replaceHost returns the statement that creates the same account for 127.0.0.2.
func replaceHost(create string) string {
	var name, rest string
	if _, err := fmt.Sscanf(create, "CREATE USER %s", &name); err != nil {
		return create
	}
	rest = create[len("CREATE USER ")+len(name):]
	return "CREATE USER bench@127.0.0.2" + rest
}
