package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestSampleBesideAgent guards that an agent of another user samples the servers of --sample with the tool's login,
// also after a restart, only for that run and only until it is closed; that no third user can get the login, and that
// it is stored nowhere.
func TestSampleBesideAgent(t *testing.T) {
	m := newMachine(t)
	m.must(os.Mkdir(filepath.Join(m.root, "slow"), 0o755))
	slow := filepath.Join(m.root, "slow", "sysbench")
	m.must(os.WriteFile(slow, []byte("#!/bin/sh\nuntil test -e ../go; do sleep 0.1; done\n"), 0o755))
	m.must(os.Chmod(slow, 0o755))
	address, stop := m.agent()
	const (
		server = "oltp_read_only --mysql-host=127.0.0.1 --mysql-port=1 --mysql-user=app --mysql-password=s3cret run"
		series = `benchwatch_db_up{cluster="",engine="mysql",role="",target="127.0.0.1:1"}`
	)
	cmd := m.command(alice, "cd slow && exec benchwatch run --run-id=lent --sample -- ./sysbench "+server)
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	m.must(cmd.Start())
	m.eventually("the sampled server", func() bool { return strings.Contains(m.metrics(address), series) })
	dir := rundir.At(m.data, "lent")
	m.eventually("the server in run.json", func() bool {
		meta, err := dir.Load()
		return err == nil && meta.Servers.Server("127.0.0.1:1") != nil
	})
	info, err := os.Lstat(dir.Path(".login.sock"))
	m.must(err)
	if st := info.Sys().(*syscall.Stat_t); fmt.Sprint(info.Mode(), st.Uid, st.Gid) != "Srw-rw---- 47601 47600" {
		t.Errorf("the socket is %v %d %d", info.Mode(), st.Uid, st.Gid)
	}
	if out, err := m.run(bob, "benchwatch run --run-id=other -- sysbench "+server); err != nil {
		t.Errorf("bob's run: %v\n%s", err, out)
	}
	if meta, err := rundir.At(m.data, "other").Load(); err != nil || meta.Servers.Source != rundir.ServersNone {
		t.Errorf("the servers of bob's run are %+v, %v", meta.Servers, err)
	}
	if out, err := m.run(bob, "benchwatch run --sample -- sysbench oltp_read_only --mysql-socket=/run/x.sock --mysql-user=root run"); err == nil || !strings.Contains(out, `"root" has no password at the socket /run/x.sock`) {
		t.Errorf("a login as the agent's user: %v\n%s", err, out)
	}

	stop()
	address, _ = m.agent()
	m.eventually("the sampled server, after a restart", func() bool { return strings.Contains(m.metrics(address), series) })
	m.must(os.WriteFile(filepath.Join(m.root, "go"), nil, 0o644))
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), `sampling 127.0.0.1:1 as user "app", by the agent`) {
		t.Errorf("alice's run: %v\n%s", err, out.String())
	}
	m.eventually("the end of the loan", func() bool { return !strings.Contains(m.metrics(address), series) })
	if _, err := os.Lstat(dir.Path(".login.sock")); err == nil {
		t.Error("the socket is left")
	}
	if out, err := m.run(alice, "grep -rl s3cret data"); err == nil && strings.TrimSpace(out) != "data/runs/other/stdout.log" {
		t.Errorf("the password is in %s", out)
	}
}

func (m *machine) metrics(address string) string {
	m.t.Helper()
	res, err := http.Get("http://" + address + "/metrics")
	m.must(err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	m.must(err)
	return string(data)
}

func (m *machine) eventually(what string, ok func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatal("waited in vain for " + what)
		}
	}
}
