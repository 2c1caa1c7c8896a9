//go:build chaos

package chaos

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/fakegrafana"
	"github.com/benchwatch/benchwatch/internal/playback"
)

// lab is an agent with everything around it, and what a scenario expects of them.
type lab struct {
	t *testing.T
	// deadline is when all waiting ends, so that other scenarios have their time.
	deadline time.Time
	rand     *rand.Rand
	dir      string
	agent    *agents.Agent
	watch    *agents.Watch
	idle     agents.Footprint // of the agent before anything happened
	// secret is in everything that agent, wrapper and tool receive.
	secret  string
	grafana *grafana
	config  string
	paced   []string // targets that answer
	runs    []*run
	texts   []string // of markers, each exactly once
	webhook string   // its token
}

// run is one `benchwatch run` of a replay.
type run struct {
	id      string
	play    playback.Play
	wrapper *agents.Process
	shown   string // file with what the wrapper showed of the tool's output
	killed  bool   // the wrapper was
	began   time.Time
	full    bool // the disk was, so the tool may have ended early
}

// options are how a lab differs from the usual one.
type options struct {
	more   string   // added to the configuration
	binary string   // default: env.binary
	data   string   // data directory; default: a new one
	env    []string // of the agent and the wrappers
	idle   bool     // without databases
}

func newLab(t *testing.T, seed uint64, deadline time.Time) *lab {
	l := &lab{t: t, deadline: deadline, rand: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir()}
	var key [12]byte
	for i := range key {
		key[i] = byte(l.rand.UintN(256))
	}
	l.secret = "Zq" + hex.EncodeToString(key[:])
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// start starts the agent, Grafana and the watchers of both.
func (l *lab) start(o options) {
	l.t.Helper()
	if o.binary == "" {
		o.binary = env.binary
	}
	l.grafana = newGrafana(l)
	l.webhook = filepath.Join(l.dir, "webhook.token")
	l.must(os.WriteFile(l.webhook, []byte("hook"+l.secret+"\n"), 0o600))
	l.config = o.more + fmt.Sprintf("runs: {drain_timeout: 5s}\ngrafana: {url: '%s', token_file: %s}\nwebhook_token_file: %s\n", l.grafana.server.URL, l.grafana.tokenFile, l.webhook)
	if !o.idle {
		l.config += l.targets()
	}
	l.agent = agents.New(l.t, o.binary, "")
	l.agent.Env = o.env
	if o.data != "" {
		l.agent.DataDir = o.data
	}
	l.agent.Configure(l.t, l.config)
	l.agent.Again(l.t)
	l.watch = agents.NewWatch(l.t, l.agent, 100*time.Millisecond, l.paced...)
	l.until(20*time.Second, "first samples", func() error {
		e := l.agent.Scrape(l.t)
		for _, target := range l.paced {
			if v, err := e.Value("benchwatch_db_up", "target", target); err != nil || v != 1 {
				return fmt.Errorf("%s is not up", target)
			}
		}
		return nil
	})
	l.idle = l.agent.Scrape(l.t).Footprint(l.t)
}

// targets returns the part of a configuration with servers that answer, and others that
// refuse, never answer, or are no databases.
func (l *lab) targets() string {
	var b strings.Builder
	b.WriteString("targets:\n")
	password := filepath.Join(l.dir, "db.password")
	l.must(os.WriteFile(password, []byte("db"+l.secret+"\n"), 0o600))
	if g := databases(l.t); g != nil {
		for n := 1; n <= g.N; n++ {
			name := fmt.Sprintf("live%d", n)
			fmt.Fprintf(&b, "  - {name: %s, engine: mysql, cluster: live, address: '%s', user: monitor, password_file: %s/monitor.password}\n", name, g.Address(n), g.Dir)
			l.paced = append(l.paced, name)
		}
	}
	for i, address := range agents.Dead(l.t, 6) {
		engine := []string{"mysql", "mongodb"}[i/3]
		fmt.Fprintf(&b, "  - {name: dead%d, engine: %s, address: '%s', user: u, password_file: %s}\n", i, engine, address, password)
	}
	return b.String()
}

// patience is the factor by which a busy machine may take longer.
const patience = 4

// limit is how long to wait for something that takes at most d on an idle machine, within the rest of the scenario's
// time.
func (l *lab) limit(d time.Duration) time.Duration {
	return min(patience*d, max(time.Until(l.deadline), 10*time.Second))
}

// until is agents.Wait.
func (l *lab) until(limit time.Duration, what string, check func() error) {
	l.t.Helper()
	agents.Wait(l.t, l.limit(limit), what, check)
}

// works waits while a process has much to do. While it computes, only its CPU time counts, otherwise all time. A busy
// machine therefore changes nothing.
func (l *lab) works(p *agents.Process, limit time.Duration, what string, check func() error) {
	l.t.Helper()
	const look, least = 250 * time.Millisecond, 10 * time.Millisecond
	var spent time.Duration
	for before := cpuTime(p); ; {
		err := check()
		if err == nil {
			return
		}
		if spent > limit {
			l.t.Fatalf("%s: not after %s: %v", what, limit, err)
		}
		time.Sleep(look)
		used := max(0, cpuTime(p)-before) // it may have ended
		before += used
		if used < least {
			used = look
		}
		spent += min(used, look)
	}
}

// cpuTime is what a process has used, 0 if it has ended.
func cpuTime(p *agents.Process) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the program's name
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond // a clock tick of Linux
}

// chance is true with a probability.
func (l *lab) chance(p float64) bool { return l.rand.Float64() < p }

// between returns a random duration.
func (l *lab) between(a, b time.Duration) time.Duration {
	return a + time.Duration(l.rand.Int64N(int64(b-a)))
}

func (l *lab) pause(a, b time.Duration) { time.Sleep(l.between(a, b)) }

// kill kills the agent and starts it again.
func (l *lab) kill() {
	l.watch.Disturb(true, func() {
		l.agent.Kill(l.t)
		l.agent.Again(l.t)
	})
	total.add("agents killed", 1)
}

// freeze stops the agent for a while, and does something meanwhile if that is not nil.
func (l *lab) freeze(d time.Duration, meanwhile func()) {
	l.watch.Disturb(false, func() {
		l.agent.Signal(l.t, syscall.SIGSTOP)
		if meanwhile != nil {
			meanwhile()
		}
		time.Sleep(d)
		l.agent.Signal(l.t, syscall.SIGCONT)
		time.Sleep(d / 4)
	})
	total.add("agents stopped and continued", 1)
}

// terminate ends the agent by SIGTERM, as the invariant demands, and starts it again.
func (l *lab) terminate() {
	l.t.Helper()
	l.watch.Disturb(true, func() {
		l.endsOnSIGTERM()
		l.agent.Again(l.t)
	})
}

// run starts a run of a random recording, or of the play.
func (l *lab) run(takes time.Duration, play *playback.Play) *run {
	l.t.Helper()
	r := &run{id: fmt.Sprintf("run%d", len(l.runs)+1), began: time.Now()}
	if play != nil {
		r.play = *play
	} else {
		r.play.Recording = env.recordings[l.rand.IntN(len(env.recordings))]
	}
	r.play.Takes, r.play.Seed, r.play.Hold = takes, l.rand.Uint64(), filepath.Join(l.dir, r.id+".hold")
	command := []string{filepath.Join(env.dir, r.play.Tool), "--mysql-host=127.0.0.1", "--mysql-password=" + l.secret, "--mysql-user=u", "run"}
	flags := []string{"--run-id=" + r.id, "--tool=" + r.play.Tool, "--linger=0s", "--web.listen-address=127.0.0.1:0",
		"--title=load of mysql://u:" + l.secret + "@db1/sbtest", "--label=password=" + l.secret}
	if len(l.paced) > 0 {
		flags = append(flags, "--cluster=live")
	}
	cmd := l.agent.Command(flags, command...)
	cmd.Env = append(cmd.Environ(), "MYSQL_PWD="+l.secret)
	r.play.Set(cmd)
	r.shown = filepath.Join(l.dir, r.id+".shown")
	out, err := os.Create(r.shown)
	l.must(err)
	defer out.Close()
	cmd.Stdout = out
	r.wrapper = agents.StartCommand(l.t, cmd)
	l.t.Cleanup(func() { l.agent.EndTool(r.id) })
	l.until(20*time.Second, r.id+" begins", func() error {
		meta, err := rundir.At(l.agent.DataDir, r.id).Load()
		if err == nil && meta.PID == 0 {
			err = errors.New("no process yet")
		}
		return err
	})
	l.runs = append(l.runs, r)
	total.add("runs", 1)
	return r
}

// expected is what the tool prints.
func (r *run) expected(t *testing.T) (stdout, stderr []byte) {
	t.Helper()
	for name, text := range map[string]*[]byte{r.play.Stdout: &stdout, r.play.Stderr: &stderr} {
		if name != "" {
			var err error
			if *text, err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return stdout, stderr
}

// printed reports whether the tool has printed everything.
func (l *lab) printed(r *run) bool {
	stdout, stderr := r.expected(l.t)
	dir := rundir.At(l.agent.DataDir, r.id)
	for name, want := range map[string]int{rundir.StdoutFile: len(stdout), rundir.StderrFile: len(stderr)} {
		info, err := os.Stat(dir.Path(name))
		if err != nil || info.Size() < int64(want) {
			return false
		}
	}
	return true
}

// allPrinted waits until all tools have printed everything, or have ended because they
// could not, and does something meanwhile, or waits if that is nil.
func (l *lab) allPrinted(meanwhile func()) {
	l.t.Helper()
	deadline := time.Now().Add(l.limit(time.Minute))
	for _, r := range l.runs {
		for !l.printed(r) && !(r.full && exited(r.wrapper)) {
			if time.Now().After(deadline) {
				l.t.Fatalf("run %s of %s has not printed everything", r.id, r.play.Name)
			}
			l.pause(50*time.Millisecond, 600*time.Millisecond)
			if meanwhile != nil {
				meanwhile()
			}
		}
	}
}

func exited(p *agents.Process) bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}

// release lets the tool of a run end.
func (l *lab) release(r *run) { l.must(os.WriteFile(r.play.Hold, nil, 0o600)) }

// mark adds a marker by command. It must exist exactly once if the command succeeds.
func (l *lab) mark(r *run) {
	text := fmt.Sprintf("mark %d", len(l.texts))
	cmd := exec.Command(env.binary, "mark", "--config.file="+l.agent.Config, "--run="+r.id, "--tag=password="+l.secret, text)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Errorf("mark: %v: %s", err, out)
		return
	}
	l.texts = append(l.texts, text)
	total.add("markers by command", 1)
}

// get returns a page of the agent, and waits while no agent answers.
func (l *lab) get(path string) string {
	l.t.Helper()
	var text string
	l.until(20*time.Second, path, func() (err error) {
		text, err = agents.Get("http://" + l.agent.Address + path)
		return err
	})
	return text
}

// benchwatch runs a command on the agent's data directory and returns its output.
func (l *lab) benchwatch(args ...string) []byte {
	l.t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(env.binary, append(args, "--data-dir="+l.agent.DataDir)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		l.t.Errorf("benchwatch %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return append(out, stderr.Bytes()...)
}

// grafana is a Grafana that fails.
type grafana struct {
	*fakegrafana.Grafana
	server    *httptest.Server
	tokenFile string
	busy      sync.WaitGroup
}

func newGrafana(l *lab) *grafana {
	g := &grafana{Grafana: &fakegrafana.Grafana{Token: "glsa_" + l.secret}, tokenFile: filepath.Join(l.dir, "grafana.token")}
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.busy.Add(1)
		defer g.busy.Done()
		g.ServeHTTP(w, r)
	}))
	l.t.Cleanup(g.server.Close)
	g.writeToken(l)
	return g
}

// writeToken writes the right token, so that deliveries with a refused token are tried again.
func (g *grafana) writeToken(l *lab) {
	l.must(os.WriteFile(g.tokenFile, []byte(g.Token+"\n"), 0o600))
}
