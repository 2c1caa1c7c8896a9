package commandline_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// The password of PostgreSQL's client library is found where the library finds it, is a secret, and is
// not in the description. It is hunter2.
func TestPostgreSQLPassword(t *testing.T) {
	files := map[string]string{
		"/home/me/.pgpass": "db1:*:*:me:hunter2\n", "/etc/pass": "*:*:*:*:hunter2\n", "/etc/services": "[s]\nhost=db1\nuser=me\npassword=hunter2\n",
		"/home/me/bench.cnf": "pgsql-host=db1\npgsql-user=me\npgsql-password=hunter2\ndb-driver=pgsql\n",
	}
	for _, test := range []struct{ command, env string }{
		{"pgbench -h db1 -U me bench", ""},
		{"pgbench host=db1\u00a0user=me\u00a0password=hunter2", ""},
		{"pgbench postgresql://me:hunter2@db1/bench", ""},
		{"pgbench -h db1 -U me bench", "PGPASSWORD=hunter2"},
		{"env PGPASSWORD=hunter2 pgbench -h db1 -U me bench", ""},
		{"pgbench -h db1 -U me bench", "PGPASSFILE=/etc/pass"},
		{"pgbench host=db1\u00a0user=me\u00a0passfile=/etc/pass", ""},
		{"pgbench", "PGSERVICE=s PGSERVICEFILE=/etc/services"},
		{"pgbench service=s", "PGSERVICEFILE=/etc/services"},
		{"sysbench --db-driver=pgsql --pgsql-host=db1 --pgsql-user=me --pgsql-password=hunter2 oltp_read_only run", ""},
		{"sysbench --config-file=/home/me/bench.cnf oltp_read_only run", ""},
		{"go-tpc tpcc -d postgres -H db1 -P 5432 -U me -p hunter2 run", ""},
		{"ycsb run jdbc -P x -p db.url=jdbc:postgresql://db1:5432/ycsb -p db.user=me -p db.passwd=hunter2", ""},
	} {
		env := map[string]string{"HOME": "/home/me"}
		environ := []string{"HOME=/home/me"}
		for v := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name], environ = value, append(environ, v)
		}
		args := strings.Split(test.command, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\u00a0", " ")
		}
		c := commandline.Read(args, registry.Tools, commandline.Env{Environ: environ,
			Getenv: func(name string) string { return env[name] },
			ReadFile: func(name string) ([]byte, error) {
				if text, ok := files[name]; ok {
					return []byte(text), nil
				}
				return nil, fs.ErrNotExist
			}})
		d := c.Description
		if d.Engine != "postgresql" || d.User != "me" || d.Target != "db1:5432" || c.Login.Password != "hunter2" {
			t.Errorf("%q with %s: engine %q, user %q at %q, password %q", test.command, test.env, d.Engine, d.User, d.Target, c.Login.Password)
		}
		if strings.Contains(strings.Join(c.Redacted, " "), "hunter2") || !slices.Contains(c.Secrets, "hunter2") {
			t.Errorf("%q with %s: the password is in %q, or not in the secrets %q", test.command, test.env, c.Redacted, c.Secrets)
		}
	}
}
