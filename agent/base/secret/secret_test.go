package secret

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		// URLs.
		{"mongodb URL", "mongodb://u:p@h:27017/db?w=1", "mongodb://u:***@h:27017/db?w=1"},
		{"user and hosts", "u:p@h1,h2 (u:p@h)", "u:***@h1,h2 (u:***@h)"},
		{"flags before -p", "ssh h mysqlslap -vpx -hprod", "ssh h mysqlslap -vp*** -hprod"},
		{"MongoDB's shell", "db.auth('u', 'p')", "db.auth('u', '***')"},
		{"several hosts", "mongodb://u:p@h1:27017,h2:27018/db", "mongodb://u:***@h1:27017,h2:27018/db"},
		{"a user whose name is a word for one", "mongodb://user:pw@h1.example:27017/ycsb", "mongodb://user:***@h1.example:27017/ycsb"},
		{"such a user and a login", "http://auth:pw@h:80/x --user u:pw", "http://auth:***@h:80/x --user u:***"},
		{"srv", "mongodb+srv://u:p@cluster.example/db", "mongodb+srv://u:***@cluster.example/db"},
		{"mysql URL", "see mysql://root:s3cret@127.0.0.1:3306/sbtest now", "see mysql://root:***@127.0.0.1:3306/sbtest now"},
		{"postgres URL", "postgres://u:p%40ss@h/db?sslmode=disable", "postgres://u:***@h/db?sslmode=disable"},
		{"http URL", "http://admin:admin@localhost:3000/api", "http://admin:***@localhost:3000/api"},
		{"token alone", "https://ghp_abc@example.org/x", "https://***@example.org/x"},
		{"at sign in the password", "mysql://u:p@ss@h:1/db", "mysql://u:***@h:1/db"},
		{"slash in the password", "mongodb://u:a/b?c#d@h:1/db", "mongodb://u:***@h:1/db"},
		{"web: slash in the password", "http://u:a/b@h:3000/", "http://u:***@h:3000/"},
		{"web: at sign in the path", "http://h:3000/search?q=a@b", "http://h:3000/search?q=a@b"},
		{"no password", "mongodb://127.0.0.1:27357/ycsb?w=1", "mongodb://127.0.0.1:27357/ycsb?w=1"},
		{"user only", "mongodb://u@h/db", "mongodb://u@h/db"},
		{"log line of YCSB", "mongo client connection created with mongodb://bench:not-the-password@127.0.0.1:27359/ycsb?serverSelectionTimeoutMS=3000",
			"mongo client connection created with mongodb://bench:***@127.0.0.1:27359/ycsb?serverSelectionTimeoutMS=3000"},
		{"JDBC", "db.url=jdbc:mysql://h/ycsb?user=u&password=x&useSSL=true", "db.url=jdbc:mysql://h/ycsb?user=u&password=***&useSSL=true"},
		{"JDBC, first", "jdbc:mysql://h/ycsb?password=x&user=u", "jdbc:mysql://h/ycsb?password=***&user=u"},
		{"JDBC of another kind", "jdbc:sqlserver://h;user=sa;password=x;encrypt=true", "jdbc:sqlserver://h;user=sa;password=***;encrypt=true"},

		// DSNs.
		{"DSN", "root:p@tcp(127.0.0.1:4000)/test?x=1", "root:***@tcp(127.0.0.1:4000)/test?x=1"},
		{"DSN, special characters", "root:p@(s:s)!@tcp(127.0.0.1:4000)/test", "root:***@tcp(127.0.0.1:4000)/test"},
		{"DSN, socket", "dial root:p@unix(/tmp/my.sock)/", "dial root:***@unix(/tmp/my.sock)/"},
		{"cut before the host", "FATAL: root:pw@, (root:pw@) [root:pw@]:3306 mysql://root:pw", "FATAL: root:***@, (root:***@) [root:***@]:3306 mysql://root:***"},
		{"user, password and host", "connect root:pw@127.0.0.1:3306", "connect root:***@127.0.0.1:3306"},

		{"the code of a quote in a password", "%22password%22%3A%22ZYL3%22^k%22LB%22", `"password":"***"`},
		{"the code of > in a password", "mysql%3A%2F%2Fu%3Ax%3Ey%40h%2F", "mysql://u:***@h/"},

		// Options.
		{"option with =", "sysbench --mysql-password=x --threads=4 run", "sysbench --mysql-password=*** --threads=4 run"},
		{"option with blank", "tool --password x --threads 4", "tool --password *** --threads 4"},
		{"option without value", "tool --password --threads 4", "tool --password --threads 4"},
		{"option at the end", "tool --password", "tool --password"},
		{"quoted value", `tool --password="a b" -x`, `tool --password="***" -x`},
		{"quoted pair", `tool '--password=a b' -x`, `tool '--password=***' -x`},
		{"escaped blank", `tool --password=a\ b -x`, `tool --password=*** -x`},
		{"property", "ycsb run jdbc -p db.passwd=dummy-pass -p db.user=u", "ycsb run jdbc -p db.passwd=*** -p db.user=u"},
		{"a file is no secret", "--web.config.file=x --password-file=/etc/p --token_file /t", "--web.config.file=x --password-file=/etc/p --token_file /t"},
		{"mysql, glued", "mysqlslap --no-defaults -uroot -psecret --csv", "mysqlslap --no-defaults -uroot -p*** --csv"},
		{"mysql -p alone", "mysql -uroot -p sbtest", "mysql -uroot -p sbtest"},
		{"tpcc, separate", "./tpcc_start -h h -p secret -w 1", "./tpcc_start -h h -p *** -w 1"},
		{"go-tpc, glued", "go-tpc tpcc -psecret run", "go-tpc tpcc -p*** run"},
		{"list of arguments", `["sysbench", "--password", "x y", "run"]`, `["sysbench", "--password", "***", "run"]`},
		{"list of arguments with =", `["sysbench","--password=x","run"]`, `["sysbench","--password=***","run"]`},

		// Files and variables.
		{"option file", "[client]\nuser=root\npassword=my secret\nport=1\n", "[client]\nuser=root\npassword=***\nport=1\n"},
		{"option file with blanks", "  mysql-password = x y\r\nthreads=1", "  mysql-password = ***\r\nthreads=1"},
		{"connection string", "password=x user=y", "password=*** user=y"},
		{"environment", "MYSQL_PWD=x PGPASSWORD=y MY_TOKEN=z sysbench run", "MYSQL_PWD=*** PGPASSWORD=*** MY_TOKEN=*** sysbench run"},
		{"the working directory", "PWD=/root OLDPWD=/tmp", "PWD=/root OLDPWD=/tmp"},
		{"YAML", "user: u\npassword: a b\n", "user: u\npassword: ***\n"},
		{"JSON", `{"user":"u","password":"a\"b","port":1}`, `{"user":"u","password":"***","port":1}`},
		{"JSON in JSON", `{"a":"{\"token\":\"x\",\"n\":1}"}`, `{"a":"{\"token\":\"***\",\"n\":1}"}`},
		{"go-ycsb's properties", `"mysql.password"="dummy-pass"`, `"mysql.password"="***"`},
		{"API key", "apiKey: abc", "apiKey: ***"},

		// What tools print.
		{"a setting of HammerDB that changes", "Changed tpcc:maria_pass from maria to hp for MariaDB", "Changed tpcc:maria_pass from *** to *** for MariaDB"},
		{"a setting of HammerDB that stays", "Value hp for tpcc:maria_pass is the same as existing value hp, no change made", "Value *** for tpcc:maria_pass is the same as existing value ***, no change made"},
		{"HammerDB's dictionary", " pg_superuserpass       = hp", " pg_superuserpass       = ***"},
		{"HammerDB's script", "diset tpcc maria_pass {h p}", "diset tpcc maria_pass ***"},
		{"HammerDB's script in Python", "diset('tpcc','maria_pass','hp')", "diset('tpcc','maria_pass','***')"},
		{"tpcc-mysql's options", "option p with value 'it's x'", "option p with value '***'"},
		{"tpcc-mysql's parameters", "       [pass]: a b", "       [pass]: ***"},
		{"sysbench's debug", `DEBUG: mysql_real_connect(0x7f18a401b630, "127.0.0.1", "bench", "p", "x", "sb05", 3317, "(null)", CLIENT_MULTI_STATEMENTS)`,
			`DEBUG: mysql_real_connect(0x7f18a401b630, "127.0.0.1", "bench", "***", "sb05", 3317, "(null)", CLIENT_MULTI_STATEMENTS)`},
		{"sysbench's debug, cut", `DEBUG: mysql_real_connect(0x7f18a401b630, "127.0.0.1", "bench", "be`,
			`DEBUG: mysql_real_connect(0x7f18a401b630, "127.0.0.1", "bench", "***`},
		{"SQL", `CREATE USER u IDENTIFIED BY 'it''s'; SELECT 1`, `CREATE USER u IDENTIFIED BY '***'; SELECT 1`},
		{"SQL with plugin", `ALTER USER u identified with mysql_native_password by "x" x`, `ALTER USER u identified with mysql_native_password by '***' x`},
		{"SQL function", `SET PASSWORD FOR u = PASSWORD('x')`, `SET PASSWORD FOR u = PASSWORD('***')`},
		{"bearer", "Authorization: Bearer abc.def", "Authorization: ***"},
		{"bearer alone", "sent bearer abc.def==", "sent bearer ***"},
		{"header in quotes", `curl -H 'Authorization: Basic YWJj' http://h`, `curl -H 'Authorization: ***' http://h`},
		{"Grafana token", "got glsa_abc123_def.", "got ***."},

		// Nothing to hide.
		{"refused login", "Access denied for user 'u'@'h' (using password: YES)", "Access denied for user 'u'@'h' (using password: YES)"},
		{"interval line", "[ 1s ] thds: 16 tps: 1.00 qps: 2.00", "[ 1s ] thds: 16 tps: 1.00 qps: 2.00"},
		{"key of a table", "Duplicate entry '5' for key: PRIMARY", "Duplicate entry '5' for key: PRIMARY"},
		{"mail address", "mail root@example.org about it", "mail root@example.org about it"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Text(tt.in)
			if got != tt.want {
				t.Errorf("Text(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
			if again := Text(got); again != got {
				t.Errorf("not idempotent: %q became %q", got, again)
			}
		})
	}
}

// Property: no secret survives in any line of testdata/texts.txt, where § is the secret and ⏎ a
// line break.
func TestTextHidesEverySecret(t *testing.T) {
	data, err := os.ReadFile("testdata/texts.txt")
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for line := range strings.Lines(string(data)) {
		for range 20 {
			pw := secretOf(r, false)
			in := strings.NewReplacer("§", pw, "⏎", "\n").Replace(strings.TrimSuffix(line, "\n"))
			got := Text(in)
			if strings.Contains(got, pw[:len(pw)/2]) || strings.Contains(got, pw[len(pw)/2:]) {
				t.Errorf("seed %d: %q became %q", seed, in, got)
			}
			if again := Text(got); again != got {
				t.Errorf("seed %d: not idempotent: %q, %q, %q", seed, in, got, again)
			}
		}
	}
}

// TestTextKeepsMessages guards the words that users need to understand a failure.
func TestTextKeepsMessages(t *testing.T) {
	for _, s := range []string{
		"Access denied for user 'bench'@'db1' (using password: YES)", "ERROR 1045 (28000): password expired, reset it",
		"Authentication plugin 'caching_sha2_password' cannot be loaded", "token expired", "unexpected token",
		"[ 10s ] thds: 16 tps: 21532.38 qps: 21532.38", "user: bench login: 12:30:00", "connect to db1:3306 failed: Connection refused",
		"FATAL: unable to connect to MySQL server on host 'db1', port 3306, aborting...", "option --threads: unknown", "image example.org/x@sha256:0a1b",
		"Primary key of sbtest1 is 5", "Duplicate entry 'a1b2c3' for key 'PRIMARY'", "running as user mysql:mysql", "docker exec -u 1000:1000 x",
		"2026-11-22T10:00:00Z user 3 connected", "at 12:30 @ db1", "Access denied for user: root@, closing", "100%3 done", "keyspace users: 3", "secret sauce",
	} {
		if got := Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestRedactor(t *testing.T) {
	tests := []struct {
		name, in, want string
		values         []string
	}{
		{"whole token", "user bench, (bench) 'bench'", "user ***, (***) '***'", []string{"bench"}},
		{"inside of words", "benchwatch sysbench bench_1 workbench", "benchwatch sysbench bench_1 workbench", []string{"bench"}},
		{"a long one inside of words", "Aglsa_hunter2hunter2x", "A***x", []string{"glsa_hunter2hunter2"}},
		{"both", "sysbench as bench", "sysbench as ***", []string{"bench"}},
		{"glued to -p", "exec x -pbench", "exec x -p***", []string{"bench"}},
		{"empty is no secret", "abc", "abc", []string{""}},
		{"special characters", "x p@ss!y xp@ss!", "x ***y xp@ss!", []string{"p@ss!"}},
		{"longest first", "secret-one", "***", []string{"secret", "secret-one"}},
		{"as in a URL", "at p%40ss%2Fw here", "at *** here", []string{"p@ss/w"}},
		{"as in JSON", `{"x":"a\"b"}`, `{"x":"***"}`, []string{`a"b`}},
		{"generic rules too", "--password=other bench", "--password=*** ***", []string{"bench"}},
		{"asterisks", "a * b ** c", "a * b ** c", []string{"*", "***"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := New(tt.values...).Text(tt.in); got != tt.want {
				t.Errorf("Text(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
	if got := (*Redactor)(nil).Text("--password=x"); got != "--password=***" {
		t.Errorf("nil Redactor: %q", got)
	}
}

func TestName(t *testing.T) {
	for _, n := range []string{"--mysql-password", "db.passwd", "PGPASSWORD", "MYSQL_PWD", "apiKey", "api-key", "--token", "client_secret", "private-key", "pass", "MYSQL_PASS", "pw", "db.pw", "Cookie", "DBPASS", "rootpw", "auth", "creds", "jwt"} {
		if !Name(n) {
			t.Errorf("%s holds a secret", n)
		}
	}
	for _, n := range []string{"", "p", "spawn", "password_file", "--token-file", "keyspace", "compass-mode", "compass", "SSH_ASKPASS", "authMechanism", "signal", "key_size", "bypass-x", "threads", "tokenizer", "ssl-key", "mysql_ssl_key"} {
		if Name(n) {
			t.Errorf("%s holds no secret", n)
		}
	}
}

func TestTextWithoutAllocation(t *testing.T) {
	r := New("bench", "dummy-pass")
	const line = "[ 10s ] thds: 16 tps: 21532.38 qps: 21532.38 (r/w/o: 0.00/21532.38/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00"
	if n := testing.AllocsPerRun(100, func() { r.Text(line) }); n != 0 {
		t.Errorf("%v allocations for a line without a secret", n)
	}
}

// A known secret never survives as a whole token, whatever surrounds it, and redacting twice equals
// redacting once.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"mongodb://u:p@h/", "u:p@tcp(h)", `"password"="x"`, "--password x", "option p with value 'x'",
		`mysql_real_connect(0x1, "h", "u", "p", "d", 1, "s", X)`, "identified by 'x'", "Authorization: Bearer x", "mysql -px",
	} {
		f.Add(s, "bench", " after")
	}
	f.Fuzz(func(t *testing.T, before, value, after string) {
		if got := Text(before); Text(got) != got {
			t.Errorf("not idempotent: %q, %q, %q", before, got, Text(got))
		}
		r := New(value)
		in := before + " " + value + " " + after
		got := r.Text(in)
		if again := r.Text(got); again != got {
			t.Errorf("not idempotent: %q, %q, %q", in, got, again)
		}
		if strings.Trim(value, "*") == "" {
			return
		}
		for at := 0; ; at++ {
			i := strings.Index(got[at:], value)
			if i < 0 {
				break
			}
			at += i
			if wholeToken(got, at, at+len(value)) {
				t.Errorf("%q survives in %q", value, got)
			}
		}
	})
}

func BenchmarkTextNothing(b *testing.B) {
	r := New("bench")
	const line = "[ 10s ] thds: 16 tps: 21532.38 qps: 21532.38 (r/w/o: 0.00/21532.38/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00"
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r.Text(line)
	}
}

func TestValues(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"nothing", nil},
		{"mongodb://u:p%40x@h/db", []string{"p%40x", "p@x"}},
		{"--password=x y", []string{"x"}},
		{"jdbc:mysql://h/db?password=a&token=b&x=1", []string{"a", "b"}},
		{"--password=***", nil},
	}
	for _, tt := range tests {
		if got := Values(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("Values(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
