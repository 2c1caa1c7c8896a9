package mysqlslap

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func TestDescribe(t *testing.T) {
	notes := []string{"mysqlslap reports only at its end: until then only the servers can be watched"}
	files := func(name string) ([]byte, error) {
		if name != "my.cnf" {
			return nil, os.ErrNotExist
		}
		return []byte("[mysqld]\nport=1\n[client]\nhost = db9\npassword = \"from file\"\n# x=y\n[mysqlslap]\nconcurrency=3\n"), nil
	}
	tests := []struct {
		name, args string
		want       tool.Description
	}{
		{
			"as recorded", "--no-defaults -h127.0.0.1 -P3317 -ubench -psecret --concurrency=4 --iterations=2 --auto-generate-sql --auto-generate-sql-load-type=key --number-of-queries=2000",
			tool.Description{
				Command: "run", Workload: "key", Threads: 4, Target: "127.0.0.1:3317", Database: "mysqlslap", Notes: notes,
				Labels: map[string]string{"concurrency": "4", "iterations": "2", "queries": "2000"},
			},
		},
		{
			"several concurrencies, short options", "-a -c 1,4,8 -i3 -e innodb -h db1 --password=secret",
			tool.Description{
				Command: "run", Workload: "mixed", Target: "db1:3306", Database: "mysqlslap", Notes: notes,
				Labels: map[string]string{"concurrency": "1,4,8", "iterations": "3", "engine": "innodb"},
			},
		},
		{
			"a query, a socket, names cut short", "--query=select --create-schema sbtest --sock=/tmp/s --conc=2 --pass=a",
			tool.Description{
				Command: "run", Workload: "query", Threads: 2, Target: "/tmp/s", Database: "sbtest", Notes: notes,
				Labels: map[string]string{"concurrency": "2"},
			},
		},
		{
			"a password that it would not take", "--password secret -p other -p",
			tool.Description{
				Command: "run", Threads: 1, Target: "localhost:3306", Database: "mysqlslap", Notes: notes,
				Labels: map[string]string{},
			},
		},
		{
			"an option file", "--defaults-file=my.cnf -P 5",
			tool.Description{
				Command: "run", Threads: 3, Target: "db9:5", Database: "mysqlslap", Notes: notes,
				Labels: map[string]string{"concurrency": "3"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Describe(tool.Invocation{Args: strings.Fields(tt.args), ReadFile: files})
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(tool.Description{}, "Engine", "User")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, args := range [][]string{nil, {""}, {"-"}, {"--"}, {"-c"}, {"--host"}, {"--defaults-file=none"}, {"--="}} {
		Describe(tool.Invocation{Args: args, ReadFile: files}) // does not panic
	}
}

// TestLogin guards which login is used to sample a server if the user asks for it.
func TestLogin(t *testing.T) {
	for command, want := range map[string][2]string{
		"mysqlslap -u app -a": {"mysql", "app"},
		"mysqlslap -a":        {"mysql", ""},
	} {
		words := strings.Fields(command)
		got := Describe(tool.Invocation{Program: words[0], Args: words[1:], Getenv: func(string) string { return "" }})
		if got.Engine != want[0] || got.User != want[1] {
			t.Errorf("%s: engine %q, user %q", command, got.Engine, got.User)
		}
	}
}
