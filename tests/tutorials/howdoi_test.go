//go:build e2e

package tutorials

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/benchwatch/benchwatch/internal/need"
)

var question = regexp.MustCompile(`(?m)^### (.*)\n`)

// TestHowDoI runs every answer of "How do I …", in order, on a real server. What a reader replaces, the test replaces:
// db1 is a MariaDB on loopback, and a run takes a second instead of a minute.
func TestHowDoI(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sysbench", "mariadbd", "sshd", "jq", "curl", "openssl"} {
		need.Program(t, program)
	}
	text, err := os.ReadFile(root + "/docs/how-do-i.md")
	if err != nil {
		t.Fatal(err)
	}
	all := steps(t, string(text))
	if questions := len(question.FindAll(text, -1)); questions < 40 || len(all) != questions {
		t.Fatalf("%d questions, of at least 40, with %d blocks of commands", questions, len(all))
	}
	dir, err := os.MkdirTemp("", "howdoi-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // the server runs as another user
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // after the servers in it were stopped
	env := append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "TZ=UTC",
		"BENCHWATCH_DATA_DIR="+filepath.Join(dir, "data"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	setUp(t, dir, env)
	page := freePort(t)
	replace := strings.NewReplacer("--mysql-host=db1", "--config-file="+dir+"/servers/sysbench.cnf --tables=1 --table-size=100 --mysql-ignore-errors=all",
		"~/.local/share/benchwatch", dir+"/data", "--address=db1:3306", "--address="+address(t, dir), "monitor@db1:3306", "monitor@"+address(t, dir),
		"monitor.password", "servers/monitor.password", "/mnt/team", dir+"/team", "127.0.0.1:9838", "127.0.0.1:"+page,
		"p95 < 20ms", "p95 < 10s", "--time=600", "--time=4",
		"sleep 60", "timeout 60 sh -c 'until grep -L ended_at "+dir+"/data/runs/*/run.json | grep -q .; do sleep 0.1; done'",
		"--time=60", "--time=1", "--time=10", "--time=1", "--linger=10m", "--linger=1s", "--max-time 10m", "--max-time 3s",
		"--on gen1,gen2", "--ssh='ssh -F machines/config' --on gen1,gen2")
	for i := range all {
		all[i].commands = replace.Replace(all[i].commands)
	}
	follow(t, dir, all, env)
}

// setUp starts a server and two machines, and makes the certificate and the logins that the page names.
func setUp(t *testing.T, dir string, env []string) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("s3cret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	web := "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: {bench: '" + string(hash) + "'}\n"
	if err := os.WriteFile(filepath.Join(dir, "web.yml"), []byte(web), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = shell(dir, env, "benchwatch-servers stop machines; benchwatch-servers stop servers") })
	out, err := shell(dir, env, `set -e
mkdir team
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench1 -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem
benchwatch-servers start mariadb servers
benchwatch-servers machines machines --number=2
sysbench --config-file=servers/sysbench.cnf oltp_read_write --tables=1 --table-size=100 prepare`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func shell(dir string, env []string, commands string) (string, error) {
	cmd := exec.Command("bash", "-c", commands)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var portOption = regexp.MustCompile(`(?m)^mysql-port=(\d+)`)

// address is the server's.
func address(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "servers/sysbench.cnf"))
	if err != nil {
		t.Fatal(err)
	}
	m := portOption.FindSubmatch(data)
	if m == nil {
		t.Fatalf("no port in %s", data)
	}
	return "127.0.0.1:" + string(m[1])
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
