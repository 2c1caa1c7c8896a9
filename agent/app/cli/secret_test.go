package cli

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	tools "github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// secretRuns are commands of benchmarks in which § is the secret, ½ its beginning, · a blank in a
// word, and what the tool prints.
var secretRuns = []struct{ command, prints string }{
	{"sysbench oltp --mysql-password=§ --mysql-db=mongodb://u:§@h/ run", "FATAL: unable to connect to mongodb://u:§@h/d"},
	{"sysbench oltp --mysql-host=mysql://u:§@h:3306/db run", "FATAL: u:§@tcp(h:3306)/d refused"},
	{"sysbench oltp --mysql-host=u:§@h1,h2 --mysql-user=u run", "FATAL: --mysql-password=§ is wrong"},
	{"sysbench oltp --mysql-socket=mysql://u:§@h/x run", "FATAL: jdbc:mysql://h/d?user=u&password=§"},
	{"sysbench oltp --config-file=CONFIG run", `FATAL: {"password": "§"}`},
	{"tpcc_start -dmysql://u:§@h/d -hdb1 -p§ -w1 -c1", "mysql://u:§@h/d: error 1045"},
	{"go-tpc tpcc -H u:§@h -D mysql://u:§@h/d -p § run", "panic: dial u:§@tcp(h:4000)/test"},
	{"mysqlslap -vp§ --create-schema=mysql://u:§@h/d", "mysqlslap: Error when connecting to mysql://u:§@h/"},
	{"pgbench -c 4 host=h·user=u·password=§·dbname=d", "pgbench: error: connection to server failed: password=§"},
	{"pgbench -P1 -d postgresql://u:§@h:5432/d", "pgbench: error: invalid URI \"postgresql://u:§@h:x/d\""},
	{"ycsb run mongodb -P CONFIG -p hosts=u:§@h -p mongodb.url=mongodb://u:§@h:1/d", "site.ycsb.DBException: mongodb://u:§@h:1/d"},
	{"go-ycsb run mysql -P CONFIG -p mysql.password=§ -p mysql.host=u:§@h", "panic: u:§@tcp(h:3306)/d"},
	{"unknown --auth=user:§ -u user:§ --token § u:§@h --header=Authorization:·Bearer·§", "Authorization: Bearer §"},
	{"env MYSQL_PWD=§ sh -c sysbench·--mysql-password=§·--mysql-db=u:§@h·oltp·run", "FATAL: password: §"},
	{"sysbench --mysql-db=mysql%3A%2F%2Fu%3A§%40h%2Fd oltp run", "FATAL: mysql%3A%2F%2Fu%3A§%40h%2Fd"},
	{`sysbench --auth={"user":"u","pass":"§"} oltp run`, `FATAL: mysql error: CREATE USER u IDENTIFIED VIA x USING '§'`},
	{"sysbench --dbpass=§ --api-key § oltp run", "FATAL: login with password '§' failed"},
	{"unknown mysqlslap -uroot -p§", "mysqlslap: [ERROR] unknown option '-p§'"},
	{"unknown host go-tpc tpcc -p § run", "unknown shorthand flag: 'x' in -p§"},
	{"sh -c P=§;·export·P;·sysbench·--mysql-password=$P·oltp·run", `FATAL: <password>§</password>`},
	{"sh -c O='-p§·-uroot';·mysqlslap·$O", `mysqlslap: Error: {"name":"password","value":"§"}`},
	{"sh -c unknown·mysqlslap·-p§;·sysbench·--pgsql-password='§'·oltp·run", "FATAL: Properties: {db.passwd=§, db.user=u}"},
	{"ycsb run jdbc -P CONFIG -p db.url=jdbc:mysql://h:3306/d?user=u&password=§ -p db.passwd=§", "java.sql.SQLException: url=jdbc:mysql://h/d?password=§"},
	{"ycsb run mongodb -p mongodb.url=mongodb+srv://u:§@c.example.net/?w=1", "com.mongodb.MongoException: mongodb+srv://u:§@c.example.net"},
	{"go-ycsb run mysql -p mysql.host=h -p mysql.user=u:§", "panic: user=u:§"},
	{"go-tpc tpcc --password=§ --conn-params password=§&x=1 run", "panic: Error 1045: connect(\"h\", \"u\", \"§\")"},
	{"tpcc_start h:3306 d root § 10 16", "option p with value '§'"},
	{"unknown --url http://h/?sig=§ --header X-Api-Key:§ --jwt=§", "error: Secret access key: §"},
	{"unknown password § --opt=user=u,password=§,host=h", "error: token §"},
	{"ycsb run azurecosmos -p azurecosmos.primaryKey=§ -p masterKey=§", "site.ycsb.DBException: azurecosmos.primaryKey=§"},
	{"mysqlslap --pre-system=mysql·-uroot·-p§·-e·x --post-query=SET·PASSWORD='§'", "FATAL: mysql://u:§"},
	{"tiup bench tpcc -p § run", "FATAL: mysql://u:½"},
	{"tiup bench:v1.12.0 --tag=x tpch -H h -p§ run", "panic: dial u:§@"},
	{"hammerdbcli tcl auto mysql://u:§@h/run.tcl", "Error in Virtual User 2: mysql://u:§@h"},
	{"benchbase -b tpcc -c config.xml --password=§", "Unexpected error when executing benchmarks. jdbc:mysql://u:§@h"},
	{"sysbench --mysql-host=u:§@ --mysql-db=mysql://u:½ oltp run", "FATAL: error 1045: login u:§@, aborting"},
}

// secretive is everything that must not contain a secret.
type secretive struct {
	t       *testing.T
	root    string
	random  *rand.Rand
	mu      sync.Mutex
	secrets []string
	seen    map[string]string // by where
	stop    func()            // ends the agent
}

// secret returns a new secret, and fill a text with it.
func (s *secretive) secret() (secret string, fill func(string) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!%^*_+~.-"
	b := []byte{'Z'}
	for range 16 {
		b = append(b, letters[s.random.IntN(len(letters))])
	}
	secret = string(b) + "Z9"
	s.secrets = append(s.secrets, secret)
	return secret, strings.NewReplacer("§", secret, "½", secret[:len(secret)*3/4], "CONFIG", filepath.Join(s.root, "tool.cfg")).Replace
}

// fill fills a text with a new secret.
func (s *secretive) fill(text string) string {
	_, fill := s.secret()
	return fill(text)
}

func (s *secretive) add(where, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[where] += text
}

// benchwatch runs a command. What the tool itself prints, printed, is the user's.
func (s *secretive) benchwatch(printed string, env []string, args ...string) {
	cmd := exec.Command("benchwatch", args...)
	cmd.Dir, cmd.Env = s.root, append(os.Environ(), append(env, "PATH="+s.root+":"+os.Getenv("PATH"), "BENCHWATCH_DATA_DIR="+filepath.Join(s.root, "data"))...)
	out, _ := cmd.CombinedOutput() // many fail
	text := string(out)
	if printed != "" {
		text = strings.ReplaceAll(text, printed+"\n", "")
	}
	s.add("benchwatch "+strings.Join(args[:1], " "), text)
}

// leaks returns where a secret, or half of one, was found.
func (s *secretive) leaks() []string {
	var leaks []string
	for where, text := range s.seen {
		for _, secret := range s.secrets {
			for _, form := range []string{secret[:len(secret)/2], url.QueryEscape(secret), url.PathEscape(secret)} {
				if i := strings.Index(text, form); i >= 0 {
					leaks = append(leaks, fmt.Sprintf("%s: …%q…", where, text[max(0, i-80):min(len(text), i+len(secret)+20)]))
					break
				}
			}
		}
	}
	slices.Sort(leaks)
	return leaks
}

// TestNoSecretAnywhere is a property: random secrets in command lines, files, environment, titles, labels, marks,
// alerts, configuration and the tool's output are never stored, shown, logged or sent. The raw output of the tools is
// left out: it is the user's.
func TestNoSecretAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &secretive{t: t, root: t.TempDir(), random: rand.New(rand.NewPCG(seed, 1)), seen: map[string]string{}}
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(s.root, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range secretRuns {
		program, _, _ := strings.Cut(run.command, " ")
		write(program, "#!/bin/sh\nprintf '%s\\n' \"$PRINTS\"\nprintf '%s\\n' \"$PRINTS\" >&2\nexit 1\n", 0o755)
	}
	_, fill := s.secret()
	write("tool.cfg", fill("mysql-password=§\nmysql-host=u:§@h\nmysql-db=mongodb://u:§@h/\nmongodb.url=mongodb://u:§@h/\ndb.passwd=§\n"), 0o600)
	grafana := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.add("Grafana", r.URL.String()+string(body))
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprintln(w, "[]")
			return
		}
		fmt.Fprintln(w, `{"id": 1, "message": "ok"}`)
	}))
	defer grafana.Close()
	token, _ := s.secret()
	write("token", token, 0o600)
	password, _ := s.secret()
	write("db.password", password, 0o600)
	write("benchwatch.yml", `data_dir: data
webhook_token_file: token
grafana: {url: "`+grafana.URL+`", token_file: token}
targets:
  - {name: db1, engine: mysql, address: "127.0.0.1:1", user: u, password_file: db.password}
`, 0o600)
	address := s.agent()

	for _, tool := range tools.Tools {
		runs := func(run struct{ command, prints string }) bool {
			return slices.ContainsFunc(tool.Programs, func(p string) bool { return strings.Contains(run.command, p) })
		}
		if len(tool.Programs) > 0 && !slices.ContainsFunc(secretRuns, runs) {
			t.Errorf("no command of %s with a secret", tool.Name)
		}
	}
	var all sync.WaitGroup
	for i, run := range secretRuns {
		_, fill := s.secret()
		args := []string{
			"run", fmt.Sprintf("--run-id=r%d", i), "--drain-timeout=1s", s.fill("--title=x mongodb://u:§@h/ u:§@h1,h2"), s.fill("--label=password=§"),
			s.fill("--label=url=mongodb://u:§@h/"), s.fill("--label=auth=u:§"), s.fill("--label=note=password is §"), "--",
		}
		for a := range strings.FieldsSeq(run.command) {
			args = append(args, fill(strings.ReplaceAll(a, "·", " ")))
		}
		prints := fill(run.prints)
		all.Go(func() {
			s.benchwatch(prints, []string{"PRINTS=" + prints, s.fill("MYSQL_PWD=§"), s.fill("DATABASE_URL=mysql://u:§@h/d")}, args...)
		})
	}
	for _, text := range []string{
		"targets: [{name: a, engine: mysql, address: \"mysql://u:§@h:1\"}]", "targets: [{name: a, engine: mysql, address: \"u:§@h:1\"}]",
		"data_dir: mongodb://u:§@h/\ntargets: 3", "grafana: {url: \"http://u:§@h\"}", "prometheus: {url: \"http://u:§@h\"}", "targets: \"u:§@h\"",
		"drain: u:§@h", "runs: {drain_timeout: \"password=§\"}", "targets: [{name: \"u:§@h\", engine: mysql, address: \"h:1\"}]",
		"targets: [{name: a, engine: \"u:§@h\", address: \"h:1\"}]", "targets: [{name: a, cluster: \"u:§@h\", engine: mysql, address: \"h:1\"}]",
		"tools: [{name: \"u:§@h\"}]", "logs: [{path: x, tool: \"u:§@h\"}]", "logs: [{path: x, labels: {password: 3, url: \"u:§@h\"}}]",
		"password: §", "targets: [{name: a, engine: mysql, address: \"h:1\", password: §}]", "targets: [{name: a, engine: mysql, address: \"h:1\", password: \"§", "mysql://u:§@h",
		"targets: [{name: a, engine: mysql, address: \"h:1\", user: \"u:§@h\"}]", "targets: [{name: a, engine: mongodb, address: \"h:1\", user: u, password_env: \"mysql://u:§@h\"}]",
		"grafana: {url: \"http://h\", token: §}", "grafana: {url: \"http://h\", token_file: \"/x/u:§@h\"}", "{\"password\": \"§\"}", "? {password: §}\n: x", "<<: [{password: §}]", "- password: §",
		"drain:\n\tpassword: §", "targets: &a [*a, {password: §}]", "data_dir: [\"password=§\"]",
	} {
		_, fill := s.secret()
		file := fmt.Sprintf("bad%d.yml", len(s.secrets))
		write(file, fill(text), 0o600)
		all.Go(func() { s.benchwatch("", nil, "status", "--once", "--config.file="+file) })
	}
	for i, text := range []string{
		"basic_auth_users: §", "basic_auth_users: {u: x}\ntls_server_config: §", "basic_auth: §", "basic_auth: {username: u, password: {x: §}}", "authorization: §", "bearer_token: [§]", "oauth2: §",
	} {
		file := fmt.Sprintf("web%d.yml", i)
		write(file, s.fill(text), 0o600)
		all.Go(func() {
			s.benchwatch("", nil, "agent", "--config.file=tool.cfg", "--web.config.file="+file)
			s.benchwatch("", nil, "export", "--remote-write=http://127.0.0.1:1", "--remote-write.http-config="+file, "r0")
		})
	}
	_, fill = s.secret()
	prints := fill(secretRuns[0].prints)
	all.Go(func() {
		s.benchwatch("", []string{"PRINTS=" + prints}, "sweep", "--set=threads=1", fill("--title=u:§@h"), fill("--label=password=§"), fill("--before=echo mongodb://u:§@h/ >&2; exit 1"),
			"--", "sysbench", "oltp", fill("--mysql-password=§"), fill("--mysql-db=u:§@h"), "--threads={threads}", "run")
		s.benchwatch("", nil, "sweep", fill("--set=url=mongodb://u:§@h/"), "--", "sysbench", "--mysql-db={url}", "run")
	})
	for _, line := range []string{
		"run --tool=u:§@h -- true", "run --run-id=u:§@h -- true", "run --targets=u:§@h -- true", "run --cluster=mysql://u:§@h/ -- true", "run --label=u -- §@h", "run -- /x/u:§@h/y",
		"run --web.listen-address=u:§@h:1 -- true", "run --config.file=u:§@h -- true", "run --data-dir=/dev/null/u:§@h -- true", "mark --run=u:§@h x", "mark --mysql-password=§ x",
		"report u:§@h", "report mysql://u:§@h/", "export mysql://u:§@h/", "compare u:§@h mysql://u:§@h/", "runs rm --yes u:§@h", "parse --tool=u:§@h x", "parse mysql://u:§@h/x", "import u:§@h",
		"agent --web.external-url=http://u:§@h:x/", "agent --web.config.file=u:§@h", "status --config.file=mysql://u:§@h/", "sweep --set=password=§ -- true", "unknown mysql://u:§@h/", "--token=§",
		"status --engine=mysql --address=mysql://u:§@h", "status --engine=mysql --address=u:§@h", "status --engine=mongodb --address=mongodb://u:§@h/d", "status --engine=mysql --address=u:§@",
		"health --address=u:§@h:1", "doctor --config.file=u:§@h", "init --yes --config.file=new.yml --target=mysql://u:§@h", "dashboards import --grafana.url=http://u:§@h", "archive list --archive=s3://u:§@h/x",
		"run --on=u:§@h --ssh=./nothing -- true", "history --measure=u:§@h", "seek --max=threads --subject-to=u:§@h -- true {threads}", "replay mysql://u:§@h/", "group attach u:§@h",
	} {
		line := s.fill(line)
		all.Go(func() { s.benchwatch("", nil, strings.Fields(line)...) })
	}
	all.Wait()

	for i := range secretRuns {
		all.Go(func() {
			id := fmt.Sprintf("r%d", i)
			s.benchwatch("", nil, "mark", "--run="+id, s.fill("--tag=password=§"), s.fill("--tag=url=u:§@h"), s.fill("restart u:§@h1,h2 with password=§ from mongodb://u:§@h/"))
			s.alert(address, token, id, s.fill)
			s.benchwatch("", nil, "parse", filepath.Join("data", "runs", id, rundir.StderrFile))
			for _, format := range []string{"html", "markdown", "csv", "json"} {
				s.benchwatch("", nil, "report", "--format="+format, id)
			}
			for _, format := range []string{"openmetrics", "csv", "json"} {
				s.benchwatch("", nil, "export", "--format="+format, id)
			}
			for _, path := range []string{"/api/runs/" + id, "/api/runs/" + id + "/history"} {
				s.get(address, path)
			}
		})
	}
	all.Wait()
	s.benchwatch("", nil, "runs", "--json")
	s.benchwatch("", nil, "runs")
	s.benchwatch("", nil, "compare", "--format=json", "r0", "r1")
	for _, path := range []string{"/", "/metrics", "/api/runs", "/api/measures"} {
		s.get(address, path)
	}
	s.files()
	for _, where := range []string{"Grafana", "GET /metrics", "agent", "benchwatch report", "data/runs/r0/run.json"} {
		if s.seen[where] == "" {
			t.Errorf("nothing was seen of %s", where)
		}
	}
	for _, leak := range s.leaks() {
		t.Error(leak)
	}
	t.Logf("%d secrets, %d places", len(s.secrets), len(s.seen))
	if len(s.secrets) < 300 {
		t.Error("too few secrets")
	}
}

// agent starts an agent and returns its address.
func (s *secretive) agent() string {
	var log bytes.Buffer
	cmd := exec.Command("benchwatch", "agent", "--config.file=benchwatch.yml", "--web.listen-address=127.0.0.1:0", "--log.level=debug")
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.root, &log, &log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			s.add("agent", log.String())
		}
	}
	s.t.Cleanup(stop)
	s.stop = stop
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if info, ok := rundir.Agent(filepath.Join(s.root, "data")); ok && info.Address != "" {
			return info.Address
		}
	}
	s.t.Fatal("the agent did not start")
	return ""
}

func (s *secretive) get(address, path string) {
	res, err := http.Get("http://" + address + path)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Errorf("GET %s: %d, %v", path, res.StatusCode, err)
	}
	s.add("GET "+path, string(body))
}

// TestNoFlagTakesSecrets: a flag's value is in the process list, so secrets come from files that flags name.
func TestNoFlagTakesSecrets(t *testing.T) {
	n := 0
	for _, c := range leaves(newProgram()) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			n++
			if secret.Name(f.Name) {
				t.Errorf("--%s", f.Name)
			}
		})
	}
	if n < 20 {
		t.Fatalf("%d flags", n)
	}
}

// TestProcessList: the only processes with the benchmark's password in their command lines are the benchmark and the
// `benchwatch run` that the user started, while that runs. No process has the passwords of the configuration.
func TestProcessList(t *testing.T) {
	s := &secretive{t: t, root: t.TempDir(), random: rand.New(rand.NewPCG(rand.Uint64(), 1)), seen: map[string]string{}}
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(s.root, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	password, fill := s.secret()
	configured, _ := s.secret()
	write("db.password", configured, 0o600)
	write("benchwatch.yml", "data_dir: data\ntargets:\n  - {name: db1, engine: mysql, address: \"127.0.0.1:1\", user: u, password_file: db.password}\n", 0o600)
	write("sysbench", "#!/bin/sh\ngrep -alF -f benchmark.password -f db.password /proc/[0-9]*/cmdline >found\necho $$ $PPID >>found\n", 0o755)
	write("benchmark.password", password, 0o600)
	s.agent()
	s.benchwatch("", nil, "run", "--run-id=r", "--drain-timeout=1s", "--", "sysbench", fill("--mysql-password=§"), "run")
	data, err := os.ReadFile(filepath.Join(s.root, "found"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(data))
	own := words[len(words)-2:]
	found := map[string]bool{}
	for _, file := range words[:len(words)-2] {
		found[filepath.Base(filepath.Dir(file))] = true
	}
	for _, pid := range own {
		if !found[pid] {
			t.Errorf("process %s was not found: %s", pid, data)
		}
		delete(found, pid)
	}
	for pid := range found {
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err == nil { // grep itself is gone
			t.Errorf("process %s: %q", pid, line)
		}
	}
}

// alert sends what Alertmanager sends.
func (s *secretive) alert(address, token, run string, fill func(string) string) {
	body := fill(fmt.Sprintf(`{"version": "4", "status": "firing", "alerts": [{"status": "firing", "labels": {"alertname": "u:§@h", "run": %q,
		"target": "mongodb://u:§@h/", "instance": "u:§@h", "password": "§"}, "annotations": {"summary": "lag of mongodb://u:§@h/", "description": "password=§"},
		"startsAt": %q, "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "%s"}]}`, run, time.Now().Format(time.RFC3339), run))
	req, err := http.NewRequest(http.MethodPost, "http://"+address+"/api/v1/alerts", strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		s.t.Errorf("alert: %s", res.Status)
	}
}

// files adds all files in the data directory but the raw output.
func (s *secretive) files() {
	s.stop()
	err := filepath.WalkDir(filepath.Join(s.root, "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == rundir.StdoutFile || d.Name() == rundir.StderrFile {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(s.root, path)
		s.add(name, string(data))
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}
