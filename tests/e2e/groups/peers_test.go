//go:build e2e

package groups

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// peer is an agent with its own data directory.
type peer struct {
	dir, data, address string
	cmd                *exec.Cmd
	log                bytes.Buffer
}

func (p *peer) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(env.binary, "agent", "--config.file="+filepath.Join(p.dir, "benchwatch.yml"), "--web.config.file="+filepath.Join(p.dir, "web.yml"), "--web.listen-address="+p.address)
	p.cmd.Stdout, p.cmd.Stderr = io.Discard, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the agent as kill -9 does.
func (p *peer) kill(t *testing.T) {
	t.Helper()
	kill(t, p.cmd.Process.Pid)
	_ = p.cmd.Wait() // killed
}

// get returns the agent's answer.
func (p *peer) get(path string) (string, error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth("bench", "s3cret")
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

// Two generators with an agent each, and a third agent that mirrors both: the group is combined
// there, once. All three agents are repeatedly killed at random times: the copies have each byte of
// the tools' output once, and the group is their sum.
func TestPeers(t *testing.T) {
	dir, err := os.MkdirTemp(env.dir, "peers.")
	if err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("s3cret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	port, err := servers.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	var all []*peer
	for i := range 3 {
		p := &peer{dir: filepath.Join(dir, strconv.Itoa(i)), address: fmt.Sprintf("127.0.0.1:%d", port+i)}
		p.data = filepath.Join(p.dir, "data")
		if err := os.MkdirAll(p.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	one, two, center := all[0], all[1], all[2]
	for _, p := range all {
		text := fmt.Sprintf("data_dir: %s\n", p.data)
		if p == center {
			text += fmt.Sprintf("targets:\n  - {name: db1, engine: mysql, cluster: db, address: '%s', user: monitor, password_file: %s/monitor.password}\npeers:\n", env.server.Address(1), env.server.Dir)
			for _, o := range []*peer{one, two} {
				text += fmt.Sprintf("  - {url: 'http://%s', user: bench, password_file: password}\n", o.address)
			}
		}
		for name, content := range map[string]string{"benchwatch.yml": text, "password": "s3cret\n", "web.yml": "basic_auth_users:\n  bench: " + string(hash) + "\n"} {
			if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.start(t)
		t.Cleanup(func() { p.kill(t) })
	}
	before := status(t, "Com_commit")
	at := time.Now().Add(4 * time.Second).Format(time.RFC3339Nano)
	var runs []*command
	for i, p := range []*peer{one, two} {
		c := benchwatch(t.Context(), append([]string{"run", "--data-dir=" + p.data, "--group=job", "--generators=2", fmt.Sprintf("--generator=%d", i+1), "--start-at=" + at, "--linger=0s", "--"}, load(20)...)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, c)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range runs {
			_ = c.Wait() // judged by run.json
		}
	}()
	kills, seen := 0, ""
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(time.Duration(rand.IntN(2500)) * time.Millisecond):
			if body, err := center.get("/metrics"); err == nil && strings.Contains(body, `benchwatch_run_operations_per_second{op="transaction",run="job"}`) {
				seen = body
			}
			if seen == "" {
				continue // an agent that is killed all the time exposes no live group
			}
			p := all[rand.IntN(len(all))]
			p.kill(t)
			p.start(t)
			kills++
		}
	}
	l := &lab{data: center.data, config: filepath.Join(center.dir, "benchwatch.yml")}
	waitFor(t, "the end of the group", func() error {
		m, err := l.dir("job").Load()
		if err == nil && !m.Closed() {
			err = fmt.Errorf("it is not closed\n%s", center.log.String())
		}
		return err
	})
	commits := status(t, "Com_commit") - before
	for i, p := range []*peer{one, two} {
		id := rundir.GeneratorID("job", i+1)
		for _, name := range []string{rundir.StdoutFile, rundir.StderrFile} {
			there, err := os.ReadFile(rundir.At(p.data, id).Path(name))
			if err != nil {
				t.Fatal(err)
			}
			here, err := os.ReadFile(l.dir(id).Path(name))
			if err != nil || !bytes.Equal(there, here) {
				t.Errorf("%s of %s: %d bytes there, %d here, %v", name, id, len(there), len(here), err)
			}
		}
		if m := l.load(t, id); !m.IsCopy() || m.Outcome != rundir.Succeeded {
			t.Errorf("%s: %s %s, %+v", id, m.Outcome, m.Reason, m.Mirror)
		}
		if _, err := rundir.At(p.data, "job").Load(); err == nil {
			t.Errorf("the agent of generator %d made a run of the group, too", i+1)
		}
	}
	r := l.report(t, "job", rundir.GeneratorID("job", 1), rundir.GeneratorID("job", 2))
	got, sum := r[0].count("transaction"), r[1].count("transaction")+r[2].count("transaction")
	if got != sum || sum == 0 || math.Abs(commits-sum) > 0.01*sum {
		t.Errorf("the group has %.0f transactions, its generators %.0f, the server %.0f commits", got, sum, commits)
	}
	if seen == "" || strings.Contains(seen, `{run="job-g1"`) || strings.Contains(seen, `,run="job-g1"`) || !strings.Contains(seen, `benchwatch_run_generator_state{generator_run="job-g1",run="job"`) {
		t.Errorf("metrics of the agent that mirrors, during the group: %d bytes", len(seen))
	}
	waitFor(t, "the generator's metrics at its own agent", func() error {
		body, err := one.get("/metrics")
		if err == nil && !strings.Contains(body, `benchwatch_run_summary_operations_total{op="transaction",run="job-g1"}`) {
			err = errors.New("no summary of job-g1")
		}
		return err
	})
	if kills == 0 {
		t.Error("nothing was killed")
	}
	t.Logf("%d kills, %.0f transactions, %.0f commits", kills, sum, commits)
}
