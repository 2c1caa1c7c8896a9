package commandline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

func TestReadRedacts(t *testing.T) {
	tests := []struct {
		name    string
		args    []string
		want    []string
		secrets []string
	}{
		{"a tool's option", []string{"bench", "--password=hunter2", "run"}, []string{"bench", "--password=***", "run"}, []string{"hunter2"}},
		{"in shell text", []string{"bash", "-c", "cd x; bench --password='hunter 2' run"}, []string{"bash", "-c", "cd x; bench --password=*** run"}, []string{"hunter 2"}},
		{"nested", []string{"bash", "-c", "sh -c 'bench --password=hunter2 run'"}, []string{"bash", "-c", "sh -c 'bench --password=*** run'"}, []string{"hunter2"}},
		{"an expansion", []string{"bash", "-c", `bench --password="$PW" run`}, []string{"bash", "-c", `bench --password=*** run`}, nil},
		{"the same word elsewhere", []string{"bench", "--password=sbtest", "--db=sbtest", "run"}, []string{"bench", "--password=***", "--db=***", "run"}, []string{"sbtest"}},
		{"a short one elsewhere", []string{"bench", "--password=1", "--threads=1"}, []string{"bench", "--password=***", "--threads=1"}, []string{"1"}},

		{"assignment of env", []string{"env", "MYSQL_PWD=hunter2", "bench", "run"}, []string{"env", "MYSQL_PWD=***", "bench", "run"}, []string{"hunter2"}},
		{"env -S", []string{"env", "-S", "MYSQL_PWD=hunter2 bench run"}, []string{"env", "-S", "MYSQL_PWD=*** bench run"}, []string{"hunter2"}},
		{"assignment in shell text", []string{"bash", "-c", "PGPASSWORD='hunter 2' x"}, []string{"bash", "-c", "PGPASSWORD=*** x"}, []string{"hunter 2"}},
		{"exported", []string{"bash", "-c", "export MY_TOKEN=hunter2; x"}, []string{"bash", "-c", "export MY_TOKEN=***; x"}, []string{"hunter2"}},
		{"of docker", []string{"docker", "run", "-e", "MYSQL_ROOT_PASSWORD=hunter2", "img"}, []string{"docker", "run", "-e", "MYSQL_ROOT_PASSWORD=***", "img"}, []string{"hunter2"}},

		{"unknown: option with =", []string{"x", "--api-key=hunter2", "--token=t0k"}, []string{"x", "--api-key=***", "--token=***"}, []string{"hunter2", "t0k"}},
		{"unknown: separate", []string{"x", "--password", "hunter2", "y"}, []string{"x", "--password", "***", "y"}, []string{"hunter2"}},
		{"unknown: followed by an option", []string{"x", "--password", "--y"}, []string{"x", "--password", "--y"}, nil},
		{"unknown: a file", []string{"x", "--password-file=/etc/x"}, []string{"x", "--password-file=/etc/x"}, nil},
		{"unknown: property", []string{"x", "-p", "db.passwd=hunter2"}, []string{"x", "-p", "db.passwd=***"}, []string{"hunter2"}},
		{"unknown: URL", []string{"x", "mongodb://u:p%40w@h/db"}, []string{"x", "mongodb://u:***@h/db"}, []string{"p%40w", "p@w"}},
		{"unknown: JDBC URL", []string{"x", "-p", "db.url=jdbc:mysql://h/db?password=hunter2&a=b"}, []string{"x", "-p", "db.url=jdbc:mysql://h/db?password=***&a=b"}, []string{"hunter2"}},
		{"mysql, glued", []string{"mysql", "-uroot", "-phunter2", "sbtest"}, []string{"mysql", "-uroot", "-p***", "sbtest"}, []string{"hunter2"}},
		{"mysql, -p asks", []string{"mysql", "-uroot", "-p", "sbtest"}, []string{"mysql", "-uroot", "-p", "sbtest"}, nil},
		{"mongosh, separate", []string{"mongosh", "-u", "x", "-p", "hunter2"}, []string{"mongosh", "-u", "x", "-p", "***"}, []string{"hunter2"}},
		{"sshpass", []string{"sshpass", "-p", "hunter2", "bench", "prepare"}, []string{"sshpass", "-p", "***", "bench", "prepare"}, []string{"hunter2"}},
		{"curl", []string{"curl", "-u", "u:hunter2", "http://h/"}, []string{"curl", "-u", "u:***", "http://h/"}, []string{"hunter2"}},
		{"another command of the shell text", []string{"bash", "-c", "mysql -uroot -p'hunter 2' -e 'x' && bench run"}, []string{"bash", "-c", "mysql -uroot -p*** -e 'x' && bench run"}, []string{"hunter 2"}},
		{"text that is no shell text", []string{"bash", "-c", "MYSQL_PWD=hunter2 bench run ("}, []string{"bash", "-c", "MYSQL_PWD=*** bench run ("}, []string{"hunter2"}},
		{"the same, glued option", []string{"bash", "-c", "mysqlslap -phunter2 run ("}, []string{"bash", "-c", "mysqlslap -p*** run ("}, []string{"hunter2"}},
		{"working directory", []string{"env", "PWD=/root", "bench", "prepare"}, []string{"env", "PWD=/root", "bench", "prepare"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Read(tt.args, testTools, testEnv())
			if diff := cmp.Diff(tt.want, c.Redacted); diff != "" {
				t.Errorf("Redacted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.secrets, c.Secrets); diff != "" {
				t.Errorf("Secrets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadSecretsOfTheEnvironment(t *testing.T) {
	env := testEnv()
	env.Environ = []string{"HOME=/root", "PWD=/root", "MYSQL_PWD=hunter2"}
	c := Read([]string{"bench", "hunter2", "run"}, testTools, env)
	if !slices.Equal(c.Secrets, []string{"hunter2"}) || c.Redacted[1] != secret.Blank {
		t.Errorf("Secrets = %q, Redacted = %q", c.Secrets, c.Redacted)
	}
	c = Read([]string{"env", "MYSQL_PWD=other", "bench", "run"}, testTools, env)
	if !slices.Equal(c.Secrets, []string{"other", "hunter2"}) {
		t.Errorf("Secrets = %q", c.Secrets)
	}
}

// TestPassword guards that Password is only set if it is certain.
func TestPassword(t *testing.T) {
	for command, want := range map[string]string{
		"bench --password=hunter2 run":                          "hunter2",
		"nice bench --password=hunter2 run":                     "hunter2",
		"bench run":                                             "",
		"bench --password=hunter2 --other-password=zwei run":    "",
		"bench --password=hunter2 --other-password=hunter2 run": "hunter2",
	} {
		if got := Read(strings.Fields(command), testTools, testEnv()).Login.Password; got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := Read([]string{"sh", "-c", `bench --password="$P" run`}, testTools, testEnv()).Login.Password; got != "" {
		t.Errorf("a variable: %q", got)
	}
}
