package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/fakegrafana"
)

// foreign is a shared runs folder with files of mallory that could harm its readers: root, another user and the agent.
type foreign struct {
	*machine
	secret string // a file that only root can read
}

const mallory = carol

// asRoot runs a command as root and returns its output. The command must end, need little memory, and not print the
// secret.
func (m *foreign) asRoot(stdin string, args ...string) string {
	m.t.Helper()
	c := &child{Cmd: exec.Command(filepath.Join(m.root, "benchwatch"), args...), t: m.t, ended: make(chan error, 1)}
	c.Dir = m.root
	c.Env = append(os.Environ(), "BENCHWATCH_DATA_DIR="+m.data, "HOME="+m.root, "XDG_CACHE_HOME="+filepath.Join(m.root, "cache"))
	c.Stdout, c.Stderr, c.Stdin = &c.out, &c.out, strings.NewReader(stdin)
	c.WaitDelay = time.Second
	m.must(c.Start())
	go c.watch()
	text := c.end()
	m.check(fmt.Sprintf("%q", args), text)
	return text
}

// check fails if a command of mallory's was run, or the secret was read or changed.
func (m *foreign) check(what, text string) {
	m.t.Helper()
	if strings.Contains(text, "topsecret") {
		m.t.Errorf("%s prints the secret: %.1000s", what, text)
	}
	if found, err := filepath.Glob(filepath.Join(m.root, "PWNED*")); err != nil || len(found) > 0 {
		m.t.Fatalf("%s ran a command of another user: %q\n%.1000s", what, found, text)
	}
	if got, err := os.ReadFile(m.secret); err != nil || string(got) != secretText {
		m.t.Fatalf("%s changed a file of root: %v %q", what, err, got)
	}
}

// secretText looks like the output of a tool and like a run.json.
const secretText = "topsecret\n[ 1s ] thds: 4 tps: 10.00 topsecret\n"

// give makes mallory the owner of a directory and its contents, but not of the targets of links.
func (m *foreign) give(dir string) {
	m.t.Helper()
	m.must(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(mallory), int(agentUser)))
	}))
}

// copyOf is a run of mallory with the files of another run.
func (m *foreign) copyOf(from rundir.Directory, id string) rundir.Directory {
	m.t.Helper()
	to := rundir.At(m.data, id)
	out, err := exec.Command("cp", "-rp", string(from), string(to)).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(to.Path(rundir.MetaFile))
	m.must(err)
	m.must(os.WriteFile(to.Path(rundir.MetaFile), []byte(strings.ReplaceAll(string(text), `"`+from.ID()+`"`, `"`+id+`"`)), 0o664))
	return to
}

// replacements are what can replace a file.
func (m *foreign) replacements() map[string]func(path string) error {
	return map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(m.secret, path) },
		"zeros":  func(path string) error { return os.Symlink("/dev/zero", path) },
		"pipe":   func(path string) error { return unix.Mkfifo(path, 0o666) },
		"device": func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) },
		"folder": func(path string) error { return os.Mkdir(path, 0o777) },
		"hole":   func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, 1<<40)) },
	}
}

// files are the files that a run directory can have.
var foreignFiles = []string{
	rundir.MetaFile, rundir.StdoutFile, rundir.StderrFile, rundir.StatusFile, rundir.MarkersFile, rundir.LatenciesFile, "settings.jsonl", "statements.jsonl", "stalls.jsonl", "host.jsonl",
	".archive.json", ".connection.json", ".adopted", ".meta.lock", rundir.ToolLock, rundir.ObserverLock, rundir.MarkersLock, ".wrapper.lock",
}

// TestForeignDirectories: with directories of another user, neither root nor an agent runs their commands, reads or
// replaces files for them, or hangs.
func TestForeignDirectories(t *testing.T) {
	t.Parallel()
	m := &foreign{machine: newMachine(t)}
	m.secret = filepath.Join(m.root, "secret")
	m.must(os.WriteFile(m.secret, []byte(secretText), 0o600))
	if out, err := m.run(mallory, "benchwatch run --run-id=whole --linger=0s --web.listen-address=127.0.0.1:0 -- sysbench run"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	whole := rundir.At(m.data, "whole")
	pwned := "touch " + m.root + "/PWNED; sleep 1000"

	// Commands and hosts.
	for _, id := range []string{"evilgroup", "evilcopy"} {
		dir := rundir.At(m.data, id)
		m.must(os.Mkdir(string(dir), 0o775))
		connection := fmt.Sprintf(`{"ssh":["/bin/sh","-c","%s","x"],"benchwatch":"b","hosts":["h"],"group":%q,"inode":%d}`, pwned, id, inodeOf(t, string(dir)))
		m.must(os.WriteFile(dir.Path(rundir.MetaFile), fmt.Appendf(nil, `{"id":%q,"tool":"sysbench","started_at":"2026-11-21T14:03:00Z",
			"group":{"name":%q,"generators":1,"connection":%s,"members":[{"host":"h"}]}}`, id, id, connection), 0o644))
		m.must(os.WriteFile(dir.Path(".connection.json"), []byte(connection), 0o600))
		m.give(string(dir))
		if id == "evilcopy" { // a file of root's in a directory of mallory's
			m.must(os.Lchown(dir.Path(".connection.json"), 0, 0))
		}
	}
	sweepDir := filepath.Join(sweep.Root(m.data), "evilsweep")
	m.must(os.MkdirAll(sweepDir, 0o755))
	m.must(os.WriteFile(filepath.Join(sweepDir, "sweep.json"), fmt.Appendf(nil, `{"id":"evilsweep","created_at":"2026-11-21T14:03:00Z","sets":[{"name":"threads","values":["1"]}],
		"repeat":1,"order":"fixed","command":["sh","-c",%q],"before":%q,"after":%q,"steps":[{"values":["1"]}]}`, pwned, pwned, pwned), 0o644))
	m.give(sweepDir)

	// A group of mallory with a generator of root: its output must not get into the group.
	root := m.asRoot("", "run", "--group=theirs", "--generators=2", "--generator=1", "--linger=0s", "--web.listen-address=127.0.0.1:0", "--", "sh", "-c", "cat "+m.secret+" >/dev/null; echo generator-of-root")
	theirs := rundir.At(m.data, "theirs")
	m.must(os.RemoveAll(string(theirs)))
	m.must(os.Mkdir(string(theirs), 0o775))
	m.must(os.WriteFile(theirs.Path(rundir.MetaFile), []byte(`{"id":"theirs","tool":"sysbench","started_at":"2026-11-21T14:03:00Z","group":{"name":"theirs","generators":1,"members":[{}]}}`), 0o644))
	m.give(string(theirs))
	if _, err := rundir.At(m.data, "theirs-g1").Load(); err != nil {
		t.Fatalf("%v\n%s", err, root)
	}

	// Something other than a file in the place of each file.
	var ids []string
	for kind, replace := range m.replacements() {
		for i, name := range foreignFiles {
			dir := m.copyOf(whole, fmt.Sprintf("evil-%s-%d", kind, i))
			m.must(os.RemoveAll(dir.Path(name)))
			m.must(replace(dir.Path(name)))
			m.give(string(dir))
			ids = append(ids, dir.ID())
		}
	}
	// Locks that are never released, of an ended run and of an unclosed run.
	for _, id := range []string{"evil-held", "evil-held-open"} {
		dir := m.copyOf(whole, id)
		if id == "evil-held-open" {
			_, err := dir.Update(func(meta *rundir.Meta) { meta.ClosedAt, meta.EndedAt = nil, nil })
			m.must(err)
		}
		m.give(string(dir))
		lock, err := dir.Lock(".meta.lock", false)
		m.must(err)
		defer lock.Close()
		ids = append(ids, id)
	}
	m.must(os.Symlink(m.root, filepath.Join(rundir.Root(m.data), "evil-linked-run")))

	stuck := make(chan struct{}, 6) // at once
	var all sync.WaitGroup
	try := func(args ...string) {
		all.Go(func() {
			stuck <- struct{}{}
			defer func() { <-stuck }()
			m.asRoot("", args...)
		})
	}
	for _, id := range []string{"evilgroup", "evilcopy"} {
		try("group", "attach", id)
		try("report", id)
	}
	for _, id := range []string{"evilsweep", "last"} {
		try("sweep", "--resume", id)
		try("seek", "--resume", id)
	}
	archive := filepath.Join(m.root, "archive")
	m.must(os.Mkdir(archive, 0o755))
	try("archive", "push", "--archive="+archive)
	try("runs")
	try("history")
	try("runs", "--json")
	try("mark", "--run=evil-link-4", "a change")
	try("mark", "--run=evil-held", "a change")
	for _, id := range ids {
		try("report", id)
		try("export", id)
		try("compare", id, "whole")
		if strings.HasSuffix(id, "-1") || strings.HasSuffix(id, "-2") || strings.HasSuffix(id, "-0") {
			try("replay", "--linger=0s", "--speed=100", "--web.listen-address=127.0.0.1:0", "--data-dir="+m.data, id)
		}
	}
	all.Wait()

	// An agent of another user still follows the runs of others, and ends.
	_, stop := m.agent()
	if out, err := m.run(alice, "benchwatch run --run-id=alices --linger=0s -- sysbench run"); err != nil {
		t.Errorf("beside them: %v\n%s", err, out)
	}
	if meta, err := rundir.At(m.data, "alices").Load(); err != nil || !meta.Closed() {
		t.Errorf("beside them a run was not closed: %v", err)
	}
	stop()
	attach := exec.Command(filepath.Join(m.root, "benchwatch"), "group", "attach", "--data-dir="+m.data, "theirs")
	attach.WaitDelay = time.Second
	begun := time.AfterFunc(3*time.Second, func() { _ = attach.Process.Signal(syscall.SIGTERM) })
	defer begun.Stop()
	out, _ := attach.CombinedOutput() // of a group that can't be combined
	if text, err := os.ReadFile(theirs.Path(rundir.StdoutFile)); err == nil && strings.Contains(string(text), "generator-of-root") {
		t.Errorf("the output of root's generator is in a file of another user:\n%s\n%s", text, out)
	}
	m.check("all of them", string(out))
	if !exists(filepath.Join(archive, "index")) {
		t.Error("nothing was archived")
	}

	// An archive of mallory, with something other than a file in the place of each of its files.
	var files []string
	m.must(filepath.WalkDir(archive, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "whole") {
			files = append(files, strings.TrimPrefix(path, archive))
		}
		return err
	}))
	if len(files) < 2 {
		t.Fatalf("of the run the archive has %q", files)
	}
	for kind, replace := range m.replacements() {
		for i, name := range files {
			theirs := fmt.Sprintf("%s/archive-%s-%d", m.root, kind, i)
			if out, err := exec.Command("cp", "-rp", archive, theirs).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			m.must(os.Remove(theirs + name))
			m.must(replace(theirs + name))
			m.give(theirs)
			try("archive", "verify", "--archive="+theirs)
			try("archive", "pull", "--archive="+theirs, "--data-dir="+theirs+"-pulled", "whole")
		}
	}
	all.Wait()

	// Root removes the run, not the targets of its links.
	for _, id := range append(ids, "evil-linked-run") {
		try("runs", "rm", "--yes", id)
	}
	all.Wait()
	if left, err := rundir.List(m.data); err != nil || !slices.Contains(left, "whole") || !exists(filepath.Join(m.root, "benchwatch")) {
		t.Errorf("after runs rm: %v, %q", err, left)
	}
}

// TestForeignOpenRuns: an agent, also as root, follows active runs of another user. It writes and reads nothing through
// what replaces their files, and closes the other runs.
func TestForeignOpenRuns(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]user{"root": 0, "a user of its own": agentUser} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &foreign{machine: newMachine(t)}
			m.secret = filepath.Join(m.root, "secret")
			m.must(os.WriteFile(m.secret, []byte(secretText), 0o600))
			m.besideOpenRuns(u)
		})
	}
}

func (m *foreign) besideOpenRuns(u user) {
	if out, err := m.run(mallory, "benchwatch run --run-id=whole --linger=0s --web.listen-address=127.0.0.1:0 -- sysbench run"); err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	open := func(id string) rundir.Directory {
		dir := m.copyOf(rundir.At(m.data, "whole"), id)
		_, err := dir.Update(func(meta *rundir.Meta) { meta.ClosedAt, meta.EndedAt = nil, nil })
		m.must(err)
		return dir
	}
	for kind, replace := range m.replacements() {
		for i, name := range foreignFiles {
			dir := open(fmt.Sprintf("open-%s-%d", kind, i))
			m.must(os.RemoveAll(dir.Path(name)))
			m.must(replace(dir.Path(name)))
			m.give(string(dir))
		}
	}
	plain := open("open")
	m.give(string(plain))

	address, stop := m.agentOf(u)
	for _, runner := range []user{alice, 0} {
		id := fmt.Sprintf("of-%d", runner)
		if out, err := m.run(runner, "benchwatch run --run-id="+id+" --linger=0s -- sysbench run"); err != nil {
			m.t.Errorf("beside them: %v\n%s", err, out)
		}
		if meta, err := rundir.At(m.data, id).Load(); err != nil || !meta.Closed() {
			m.t.Errorf("beside them a run was not closed: %v", err)
		}
	}
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		if meta, err := plain.Load(); err == nil && meta.Closed() {
			break
		}
		if time.Now().After(deadline) {
			m.t.Fatal("the agent has not closed an open run of another user")
		}
	}
	text := m.get(address, "/metrics") + m.get(address, "/api/runs")
	stop()
	m.check("the agent", text)
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// lockAll takes a shared lock of every file in a folder that mallory can read and nobody has
// locked, until the test ends, and returns the files' names.
func (m *foreign) lockAll(dir string) (locked []string) {
	m.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine, and has mallory's rights
		if err := errors.Join(unix.Setfsgid(int(mallory)), unix.Setfsuid(int(mallory))); err != nil {
			m.t.Error(err)
			return
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			f, err := os.Open(path)
			if err != nil {
				return nil // not readable for others
			}
			m.t.Cleanup(func() { f.Close() })
			if unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}) == nil {
				locked = append(locked, filepath.Base(path))
			}
			return nil
		})
	}()
	<-done
	return locked
}

// TestForeignLocks: a user who locks every file that they can read stops neither the agent nor the
// runs and markers of others.
func TestForeignLocks(t *testing.T) {
	t.Parallel()
	m := &foreign{machine: newMachine(t)}
	grafana := &fakegrafana.Grafana{Token: "glsa_x"}
	server := httptest.NewServer(grafana)
	t.Cleanup(server.Close)
	config := filepath.Join(m.root, "benchwatch.yml")
	m.must(os.WriteFile(filepath.Join(m.root, "token"), []byte(grafana.Token), 0o644))
	m.must(os.WriteFile(config, fmt.Appendf(nil, "data_dir: %s\ngrafana: {url: '%s', token_file: token}\n", m.data, server.URL), 0o644))
	_, stop := m.agent("--config.file=" + config)
	if out, err := m.run(alice, "benchwatch run --run-id=first --linger=0s -- sysbench run"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stop()
	if locked := m.lockAll(m.data); !slices.Contains(locked, "agent.lock") || !slices.Contains(locked, rundir.MarkersFile) {
		t.Fatalf("locked are %q", locked)
	}
	_, stop = m.agent("--config.file=" + config)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		out, err := m.run(alice, "benchwatch run --run-id=second --linger=0s -- sh -c 'touch data/runs/second/begun; while [ ! -e data/runs/second/goes ]; do sleep 0.1; done'")
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		ended <- err
	}()
	dir := rundir.At(m.data, "second")
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !is(); <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	await("the tool has not begun", func() bool { return exists(dir.Path("begun")) })
	m.lockAll(m.data)
	if out, err := m.run(alice, "benchwatch mark --run=second change && touch data/runs/second/goes"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the run has not ended")
	}
	if meta, err := dir.Load(); err != nil || !meta.Closed() {
		t.Errorf("the run is not closed: %v", err)
	}
	await("the markers are not in Grafana", func() bool { // a region for each run, and the mark
		return len(grafana.All()) == 3
	})
}
