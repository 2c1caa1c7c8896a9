package dsn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

func TestParse(t *testing.T) {
	tests := map[string]Address{
		"mongodb://127.0.0.1:27357/ycsb?w=1":                               {Hosts: "127.0.0.1:27357", Database: "ycsb"},
		"mongodb://bench:not-the-password@127.0.0.1:27359/ycsb":            {Hosts: "127.0.0.1:27359", Database: "ycsb"},
		"mongodb://u:p%40ss@a:1,b:2,c:3/db?replicaSet=rs":                  {Hosts: "a:1,b:2,c:3", Database: "db"},
		"mongodb+srv://u:pw@cluster.example.net":                           {Hosts: "cluster.example.net"},
		"mongodb://u:p@ss/word@h:1/db":                                     {Hosts: "h:1", Database: "db"},
		"mongodb://u:p?q@h:1/db":                                           {Hosts: "h:1", Database: "db"},
		"jdbc:mariadb://127.0.0.1:3357/ycsb":                               {Hosts: "127.0.0.1:3357", Database: "ycsb"},
		"jdbc:mysql://h1/a?user=x&password=geheim;jdbc:mysql://h2:3307/a":  {Hosts: "h1,h2:3307", Database: "a"},
		"jdbc:mariadb:replication://h1,h2/ycsb":                            {Hosts: "h1,h2", Database: "ycsb"},
		"jdbc:sqlserver://h:1433;databaseName=ycsb;user=sa;password=Top1!": {Hosts: "h:1433", Database: "ycsb"},
		"jdbc:oracle:thin:@h:1521:orcl":                                    {Hosts: "h:1521:orcl"},
		"jdbc:oracle:thin:scott/tiger@//h:1521/svc":                        {Hosts: "h:1521", Database: "svc"},
		"jdbc:h2:mem:x": {},
		"not a url":     {},
		"":              {},
	}
	for s, want := range tests {
		if diff := cmp.Diff(want, Parse(s)); diff != "" {
			t.Errorf("Parse(%q):\n%s", s, diff)
		}
	}
}

func TestLogin(t *testing.T) {
	for s, want := range map[string][2]string{
		"mongodb://bench:pw@h:1/db":  {"mongodb", "bench"},
		"mongodb+srv://h/db":         {"mongodb", ""},
		"jdbc:mariadb://h:3306/ycsb": {"mysql", ""},
		"jdbc:postgresql://h/ycsb":   {"postgresql", ""},
		"redis://u@h":                {"", "u"},
		"not a url":                  {"", ""},
	} {
		if engine, user := Login(s); engine != want[0] || user != want[1] {
			t.Errorf("Login(%q) = %q, %q", s, engine, user)
		}
	}
}

func TestKeywords(t *testing.T) {
	for s, want := range map[string]map[string]string{
		"":                     {},
		"bench":                {},
		"host=db1 port = 5432": {"host": "db1", "port": "5432"},
		`application_name='my \'bench' dbname=a\ b`: {"application_name": "my 'bench", "dbname": "a b"},
		"host='db1":     {"host": "db1"},
		"a= b= c":       {"a": "b="},
		"host=h dbname": {"host": "h"},
		`x=\`:           {"x": `\`},
	} {
		if diff := cmp.Diff(want, Keywords(s)); diff != "" {
			t.Errorf("Keywords(%q):\n%s", s, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("mongodb://u:p%40ss@a:1,b:2/db?x=y")
	f.Add("jdbc:mysql://h1/a?password=x;jdbc:mysql://h2/a")
	f.Fuzz(func(t *testing.T, s string) {
		Keywords(s)
		a := Parse(s)
		if strings.Contains(a.Hosts, "@") {
			t.Errorf("Parse(%q): credentials in hosts %q", s, a.Hosts)
		}
	})
}
