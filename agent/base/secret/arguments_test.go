package secret

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	tests := []struct{ command, want string }{
		{"sysbench oltp --mysql-user=bench --mysql_password=PW --PGSQL-PASSWORD=PW2 run", "oltp --mysql-user=bench --mysql_password=*** --PGSQL-PASSWORD=*** run"},
		{"sysbench oltp --mysql-password PW run", "oltp --mysql-password *** run"},
		{"sysbench oltp --mysql-password run", "oltp --mysql-password run"},
		{"sysbench oltp --mysql-ssl-key=/etc/key --api-token=PW run", "oltp --mysql-ssl-key=/etc/key --api-token=*** run"},
		{"sysbench x --mysql-db=mongodb://u:PW@h/ --mysql-host=u:PW@h1,h2 run", "x --mysql-db=mongodb://u:***@h/ --mysql-host=u:***@h1,h2 run"},
		{"sysbench x --mysql-db=u:PW@tcp(h:3306)/db run", "x --mysql-db=u:***@tcp(h:3306)/db run"},
		{"mysqlslap -vpPW -aCpPW2 -hp1 -u root -p", "-vp*** -aCp*** -hp1 -u root -p"},
		{"mysqlslap --password PW -p PW2 --pas=PW3 -p", "--password *** -p *** --pas=*** -p"},
		{"mysqlslap --port=3306 --pre-query=x", "--port=3306 --pre-query=x"},
		{"mysql -uroot -p sbtest", "-uroot -p sbtest"},
		{"tpcc_start -hdb1 -p -i5 -w100", "-hdb1 -p *** -w100"},
		{"tpcc_start db1:3307 tpcc root PW 10 16", "db1:3307 tpcc root *** 10 16"},
		{"tpcc_load -hdb1 -uroot -pPW -w10", "-hdb1 -uroot -p*** -w10"},
		{"go-tpc tpcc -p=PW -pPW2 --password PW3 -H u:PW4@h -Hu:PW5@h --password=PW6", "tpcc -p=*** -p*** --password *** -H u:***@h -Hu:***@h --password=***"},
		{"go-tpc tpch --conn-params sslpassword=PW&sslmode=disable", "tpch --conn-params sslpassword=***"},
		{"go-ycsb run mysql -p mysql.password=PW --prop=pg.password=PW2 -p hosts=u:PW3@h", "run mysql -p mysql.password=*** --prop=pg.password=*** -p hosts=u:***@h"},
		{"ycsb run jdbc -p db.url=jdbc:mysql://h/d?user=a&password=PW&x=1 -p db.passwd=PW2", "run jdbc -p db.url=jdbc:mysql://h/d?user=a&password=***&x=1 -p db.passwd=***"},
		{"x -u user:PW --auth=user:PW2 --user u:PW3 -uu:PW4", "-u user:*** --auth=user:*** --user u:*** -uu:***"},
		{"docker run -u mysql:mysql -u 1000:1000", "run -u mysql:mysql -u 1000:1000"},
		{"x -u 1000:1000 --log-level=a:b -u http://h/", "-u 1000:1000 --log-level=a:b -u http://h/"},
		{"curl -uu:PW -u u:PW2", "-uu:*** -u u:***"},
		{"memtier_benchmark --authenticate=PW --pw=PW2", "--authenticate=*** --pw=***"},
		{"redis-cli -aPW -h h -a PW2", "-a*** -h h -a ***"},
	}
	for _, tt := range tests {
		words := strings.Fields(tt.command)
		got, secrets := Arguments(words[0], words[1:])
		if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" {
			t.Errorf("%s:\n%s", tt.command, diff)
		}
		if strings.Contains(tt.want, Blank) != (len(secrets) > 0) {
			t.Errorf("%s: secrets %q", tt.command, secrets)
		}
	}
}

// places are command lines with the secret at §; · is a blank within a word. whole: the secret is a
// word or the rest of one, so it can contain anything.
var places = []struct {
	command string
	whole   bool
}{
	{"sysbench oltp --mysql-password=§ run", true},
	{"sysbench oltp --mysql_password=§ run", true},
	{"sysbench oltp --mysql-password § run", true},
	{"sysbench oltp --auth=user:§ run", true},
	{"tpcc_start -hdb1 -p§", true},
	{"tpcc_start -h db1 -p § -w 1", true},
	{"tpcc_start db1 tpcc root § 10 16", true},
	{"tpcc_load db1 tpcc root § 10", true},
	{"go-tpc tpcc -p§ run", true},
	{"go-tpc tpcc -p § run", true},
	{"go-tpc tpcc --password=§ run", true},
	{"go-tpc tpcc --password § run", true},
	{"mysqlslap -p§", true},
	{"mysqlslap -vp§", true},
	{"mariadb-slap -vvp§", true},
	{"mysqlslap -p §", true},
	{"mysqlslap --password=§", true},
	{"mysqlslap --passw=§", true},
	{"ycsb run jdbc -p db.passwd=§", true},
	{"go-ycsb run mysql -p mysql.password=§", true},
	{"go-ycsb run mysql --prop=mysql.password=§", true},
	{"java -Djavax.net.ssl.keyStorePassword=§ x", true},
	{"unknown --token §", true},
	{"unknown -u user:§", true},
	{"unknown --auth=user:§", true},
	{"env MYSQL_PWD=§", true},
	{"sysbench x --mysql-password=§ --mysql-db=§ run", false},
	{"ycsb run azurecosmos -p azurecosmos.primaryKey=§", true},
	{"ycsb run documentdb -p documentdb.masterKey=§", true},
	{"ycsb load azuretablestorage -p azure.accountKey=§", true},
	{"ycsb run dynamodb -p dynamodb.awsSecretKey=§", true},
	{"ycsb run rest -P x -s -p rest.authToken=§", true},
	{"tiup bench tpcc -p § run", true},
	{"tiup bench tpcc -p§ run", true},
	{"tiup bench:v1.12.0 tpcc -H h -U root --password § run", true},
	{"mysqlslap --pre-system=mysql·-uroot·-p§·-e·x", false},
	{"mysqlslap --post-system mysql·-uroot·-p§·-e·x", false},
	{"mysqlslap --pre-system=MYSQL_PWD=§·mysql·-e·x", false},
	{"mysqlslap --create=x --query=SET·PASSWORD·=·'§'", false},
	{"sh -c mysql·-p§·-e·x", false},
	{"ssh h sudo·mysqlslap·-p§", false},
	{"sshpass -p § ssh h", true},
	{"cqlsh -u u -p § h", true},
	{"isql -S h -U sa -P §", true},
	{"pt-table-checksum h=h,u=u,p=§", false},
	{"env DATABASE_URL=mysql://u:§@h/d sysbench", false},
	{"unknown mysql://u:§", false},
	{"unknown --url=mongodb://u:§", false},

	{"sysbench oltp --OPTION=mongodb://u:§@h/ run", false},
	{"sysbench oltp --OPTION=postgresql://h/db?user=u&password=§ run", false},
	{"sysbench oltp --OPTION=jdbc:mysql://h/db?user=u&password=§ run", false},
	{"sysbench oltp --OPTION=u:§@tcp(h:3306)/db run", false},
	{"sysbench oltp --OPTION=u:§@h1,h2 run", false},
	{"go-tpc tpcc -H u:§@h run", false},
	{"go-tpc tpcc -Hu:§@h run", false},
	{"go-tpc tpcc --conn-params x=1&password=§ run", false},
	{"go-tpc tpcc -D mysql://u:§@h/d run", false},
	{"mysqlslap --create-schema=mysql://u:§@h/d", false},
	{"tpcc_start -dmysql://u:§@h/d", false},
	{"ycsb run mongodb -p mongodb.url=mongodb://u:§@h:1/d?w=1", false},
	{"ycsb run jdbc -p hosts=u:§@h", false},
	{"ycsb run jdbc -p db.url=jdbc:oracle:thin:u/§@//h:1/s", false},
	{"unknown u:§@h", false},
	{"unknown u:§@/db", false},
	{"unknown --header Authorization:·Bearer·§", false},
}

// secretOf returns a random secret that differs from all words of a command.
func secretOf(r *rand.Rand, whole bool) string {
	letters := "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!%^*_+~.-"
	if whole {
		letters += " @:/='\"`\\$&?#;,(){}[]<>|äß"
	}
	all := []rune(letters)
	b := []rune{'Z'}
	for range 8 + r.IntN(16) {
		b = append(b, all[r.IntN(len(all))])
	}
	return string(b) + "Z9"
}

// Property: no secret survives anywhere, however an option is spelled.
func TestArgumentsHideEverySecret(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 100 {
		for _, place := range places {
			pw := secretOf(r, place.whole)
			option := []string{"mysql-host", "mysql_host", "mysql-socket", "mysql-db", "mysql-user", "x"}[r.IntN(6)]
			var args []string
			for a := range strings.FieldsSeq(place.command) {
				args = append(args, strings.NewReplacer("OPTION", option, "§", pw, "·", " ").Replace(a))
			}
			redacted, secrets := Arguments(args[0], args[1:])
			if len(redacted) != len(args)-1 {
				t.Fatalf("seed %d: %q became %q", seed, args, redacted)
			}
			known := NewWords(secrets...)
			for _, a := range redacted {
				if a = known.Text(a); strings.Contains(a, pw) || strings.Contains(a, pw[:len(pw)/2]) {
					t.Errorf("seed %d: %q survives in %q of %q", seed, pw, redacted, args)
				}
			}
			again, _ := Arguments(args[0], redacted)
			if !slices.Equal(again, redacted) {
				t.Errorf("seed %d: not idempotent: %q, %q, %q", seed, args, redacted, again)
			}
		}
	}
}

// FuzzArguments guards that arguments never panic, that their number does not change, and that
// redacting twice equals redacting once.
func FuzzArguments(f *testing.F) {
	for _, place := range places {
		program, args, _ := strings.Cut(strings.ReplaceAll(place.command, "§", "hunter2"), " ")
		f.Add(program, strings.ReplaceAll(args, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, program, lines string) {
		args := strings.Split(lines, "\n")
		redacted, _ := Arguments(program, args)
		if len(redacted) != len(args) {
			t.Fatalf("%d arguments of %d", len(redacted), len(args))
		}
		if again, _ := Arguments(program, redacted); !slices.Equal(again, redacted) {
			t.Errorf("not idempotent: %q, %q, %q", args, redacted, again)
		}
	})
}

func ExampleArguments() {
	redacted, secrets := Arguments("mysqlslap", []string{"-uroot", "-vphunter2", "--host=db1"})
	fmt.Println(redacted, secrets)
	// Output: [-uroot -vp*** --host=db1] [hunter2]
}
