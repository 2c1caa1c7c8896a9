package libpq

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Settings{
		"":      {},
		"bench": {"dbname": "bench"},
		"host=db1 port=5433 dbname='my db' sslmode=require": {"host": "db1", "port": "5433", "dbname": "my db", "sslmode": "require"},
		"postgresql://": {},
		"postgresql://me:s%40c@db1:5433/bench?sslmode=verify-full&sslrootcert=/ca": {
			"user": "me", "password": "s@c", "host": "db1", "port": "5433", "dbname": "bench", "sslmode": "verify-full", "sslrootcert": "/ca"},
		"postgres://db1,db2:5434/x":                {"host": "db1,db2", "port": ",5434", "dbname": "x"},
		"postgres://[::1]:5433,db2/x":              {"host": "::1,db2", "port": "5433,", "dbname": "x"},
		"postgresql://%2Fvar%2Frun%2Fpostgresql/x": {"host": "/var/run/postgresql", "dbname": "x"},
		"postgresql:///x?host=/tmp&port=5433":      {"dbname": "x", "host": "/tmp", "port": "5433"},
		"postgresql://h/x?ssl=true":                {"host": "h", "dbname": "x", "sslmode": "require"},
		"postgresql://h/%zz":                       {"host": "h", "dbname": "%zz"},
	} {
		if d := cmp.Diff(want, Parse(text)); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestDescribe(t *testing.T) {
	files := map[string]string{
		"/home/me/.pgpass":          "# comment\n*:5432:other:me:wrong\ndb1:*:*:me:from\\:pgpass\nlocalhost:5432:bench:me:local\n",
		"/etc/pass":                 "*:*:*:*:from-passfile",
		"/home/me/.pg_service.conf": "[other]\nhost=x\n# c\n[mine]\nhost=db7\nport=6543\ndbname=seven\nuser=svc\npassword=from-service\nsslmode=require\n[last]\nhost=y\n",
	}
	prefer := tool.TLS{Mode: tool.TLSPreferred}
	for _, test := range []struct {
		name  string
		given Settings
		env   map[string]string
		want  tool.Description
		login tool.Login
	}{
		{"nothing", Settings{}, nil, tool.Description{Target: "localhost:5432", Database: "me", User: "me"}, tool.Login{TLS: prefer}},
		{"options", Settings{"host": "db1", "user": "me", "dbname": "bench"}, nil,
			tool.Description{Target: "db1:5432", Database: "bench", User: "me"}, tool.Login{Password: "from:pgpass", TLS: prefer}},
		{"environment", Settings{}, map[string]string{"PGHOST": "db2", "PGPORT": "1", "PGUSER": "u", "PGDATABASE": "d", "PGPASSWORD": "p", "PGSSLMODE": "disable"},
			tool.Description{Target: "db2:1", Database: "d", User: "u"}, tool.Login{Password: "p"}},
		{"options before the environment", Settings{"host": "db1", "port": "7"}, map[string]string{"PGHOST": "db2", "PGPORT": "1", "PGPASSFILE": "/etc/pass"},
			tool.Description{Target: "db1:7", Database: "me", User: "me"}, tool.Login{Password: "from-passfile", TLS: prefer}},
		{"a service", Settings{"port": "1"}, map[string]string{"PGSERVICE": "mine", "PGHOST": "db2"},
			tool.Description{Target: "db7:1", Database: "seven", User: "svc"}, tool.Login{Password: "from-service", TLS: tool.TLS{Mode: tool.TLSRequired}}},
		{"a service in a connection string", Settings{"service": "last"}, nil, tool.Description{Target: "y:5432", Database: "me", User: "me"}, tool.Login{TLS: prefer}},
		{"an unknown service", Settings{"service": "absent"}, nil, tool.Description{Target: "localhost:5432", Database: "me", User: "me"}, tool.Login{TLS: prefer}},
		{"a socket", Settings{"host": "/var/run/postgresql", "dbname": "bench", "user": "me"}, nil,
			tool.Description{Target: "/var/run/postgresql/.s.PGSQL.5432", Database: "bench", User: "me"}, tool.Login{Password: "local", TLS: prefer}},
		{"hosts with ports", Settings{"host": "a,b", "port": "1,2"}, nil, tool.Description{Target: "a:1,b:2", Database: "me", User: "me"}, tool.Login{TLS: prefer}},
		{"hosts with one port", Settings{"host": "a,b", "port": "1"}, nil, tool.Description{Target: "a:1,b:1", Database: "me", User: "me"}, tool.Login{TLS: prefer}},
		{"hosts, one with a port", Settings{"host": "a,b", "port": ",2"}, nil, tool.Description{Target: "a:5432,b:2", Database: "me", User: "me"}, tool.Login{TLS: prefer}},
		{"certificates", Settings{"host": "a", "sslmode": "verify-full", "sslrootcert": "/ca", "sslcert": "/c", "sslkey": "/k"}, nil,
			tool.Description{Target: "a:5432", Database: "me", User: "me"}, tool.Login{TLS: tool.TLS{Mode: tool.TLSVerify, CAFile: "/ca", CertFile: "/c", KeyFile: "/k"}}},
		{"the system's certificates", Settings{"host": "a", "sslmode": "require", "sslrootcert": "system"}, nil,
			tool.Description{Target: "a:5432", Database: "me", User: "me"}, tool.Login{TLS: tool.TLS{Mode: tool.TLSVerify}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got tool.Description
			login := Describe(&got, &tool.Invocation{
				WithSecrets: true,
				Getenv: func(name string) string {
					if v := test.env[name]; v != "" {
						return v
					}
					return map[string]string{"HOME": "/home/me", "USER": "me"}[name]
				},
				ReadFile: func(name string) ([]byte, error) {
					if text, ok := files[name]; ok {
						return []byte(text), nil
					}
					return nil, fs.ErrNotExist
				},
			}, test.given)
			test.want.Engine = Engine
			test.login.User = test.want.User
			if d := cmp.Diff(test.want, got) + cmp.Diff(test.login, login); d != "" {
				t.Error(d)
			}
		})
	}
}

// FuzzDescribe: no text of a command line or a file lets it panic.
func FuzzDescribe(f *testing.F) {
	f.Add("postgresql://u:p@h:1,[::1]/d?service=x&host=%2F", "[x]\nhost=a\n*:*:*:*:p\\")
	f.Fuzz(func(_ *testing.T, name, file string) {
		var d tool.Description
		Describe(&d, &tool.Invocation{ReadFile: func(string) ([]byte, error) { return []byte(file), nil }}, Parse(name))
	})
}
