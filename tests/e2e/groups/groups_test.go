//go:build e2e

package groups

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Four sysbench processes on four machines are one run. Its transactions are the sum of theirs, and
// as many as the server counted.
func TestGroupIsTheSumOfItsGenerators(t *testing.T) {
	l := newLab(t)
	before := status(t, "Com_commit")
	c := benchwatch(t.Context(), append(l.flags("four"), append([]string{"--"}, load(8)...)...)...)
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, c.err.String())
	}
	commits := status(t, "Com_commit") - before
	skew := regexp.MustCompile(`all generators started within ([0-9.]+) ms`).FindStringSubmatch(c.err.String())
	if skew == nil {
		t.Fatalf("no skew in\n%s", c.err.String())
	}
	t.Logf("start skew %s ms", skew[1])

	sum, summaries := 0.0, regexp.MustCompile(`(?m)^    transactions: +(\d+)`)
	latest, earliest := 0.0, math.Inf(1)
	for i := 1; i <= generators; i++ {
		id := rundir.GeneratorID("four", i)
		out, err := os.ReadFile(l.dir(id).Path(rundir.StdoutFile))
		if err != nil {
			t.Fatal(err)
		}
		there, err := os.ReadFile(rundir.At(l.Data(i), id).Path(rundir.StdoutFile))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out, there) {
			t.Errorf("the copy of %s has %d bytes, the run %d", id, len(out), len(there))
		}
		m := summaries.FindSubmatch(out)
		if m == nil {
			t.Fatalf("no summary in\n%s", out)
		}
		n, _ := strconv.ParseFloat(string(m[1]), 64)
		sum += n
		own := l.load(t, id)
		began := float64(own.StartedAt.UnixNano()) / 1e9
		latest, earliest = max(latest, began), min(earliest, began)
	}
	r := l.report(t, "four")[0]
	if got := r.count("transaction"); got != sum {
		t.Errorf("the group has %.0f transactions, its generators %.0f", got, sum)
	}
	if sum == 0 || math.Abs(commits-sum) > sum/100 {
		t.Errorf("the generators report %.0f transactions, the server %.0f commits", sum, commits)
	}
	t.Logf("%.0f transactions, %.0f commits", sum, commits)
	// All machines have this one's clock, so the printed skew can be checked.
	if printed, _ := strconv.ParseFloat(skew[1], 64); math.Abs(printed-(latest-earliest)*1000) > 2 {
		t.Errorf("skew %s ms is printed, the runs began within %.1f ms", skew[1], (latest-earliest)*1000)
	}
	meta := l.load(t, "four")
	if meta.Outcome != rundir.Succeeded || meta.Threads != 2*generators || len(meta.Group.Members) != generators {
		t.Errorf("%s, %d threads, %+v", meta.Outcome, meta.Threads, meta.Group)
	}
	for i, m := range meta.Group.Members {
		if m.ClockOffsetSeconds == nil || math.Abs(*m.ClockOffsetSeconds) > 0.02 || m.StartSeconds == nil {
			t.Errorf("generator %d: %+v", i+1, m)
		}
	}
	text := strings.Join(r.Observed, "\n")
	if !strings.Contains(text, "the servers committed") {
		t.Errorf("no comparison with the server's commits in\n%s", text)
	}
	t.Log(text)
	compared := benchwatch(t.Context(), "compare", "--config.file="+l.config, "four", rundir.GeneratorID("four", 1))
	if err := compared.Run(); err != nil || !strings.Contains(compared.out.String(), "tps") {
		t.Errorf("compare: %v\n%s%s", err, compared.out.String(), compared.err.String())
	}
	listed := benchwatch(t.Context(), "runs", "--config.file="+l.config)
	if err := listed.Run(); err != nil || !strings.Contains(listed.out.String(), "4 generators") {
		t.Errorf("runs: %v\n%s", err, listed.out.String())
	}
}

// A killed generator is named within seconds, and no line is lost or duplicated.
func TestKilledGenerator(t *testing.T) {
	for _, who := range []string{"tool", "wrapper", "connection"} {
		t.Run(who, func(t *testing.T) {
			l := newLab(t)
			c := benchwatch(t.Context(), append(l.flags("kill", "--on-failure=continue"), append([]string{"--"}, load(8)...)...)...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			id := rundir.GeneratorID("kill", 3)
			there := rundir.At(l.Data(3), id)
			l.waitReports(t, there, 2)
			meta, err := there.Load()
			if err != nil {
				t.Fatal(err)
			}
			killed := time.Now()
			switch who {
			case "tool":
				kill(t, meta.PID)
			case "wrapper":
				kill(t, meta.Group.Wrapper.PID)
			case "connection":
				if err := l.Disconnect(3); err != nil {
					t.Fatal(err)
				}
				if err := l.Start(t.Context(), 3, true); err != nil {
					t.Fatal(err)
				}
			}
			if who == "tool" {
				waitFor(t, "the group names the generator", func() error {
					m, err := l.dir("kill").Load()
					if err == nil && (len(m.Group.Members) < 3 || m.Group.Members[2].Outcome == "") {
						err = errors.New("not named")
					}
					return err
				})
				t.Logf("named after %s", time.Since(killed))
			}
			err = c.Wait()
			if failed := err != nil; failed != (who == "tool") {
				t.Errorf("%v\n%s", err, c.err.String())
			}
			for i := 1; i <= generators; i++ {
				l.sameBytes(t, "kill", i)
			}
			m := l.load(t, "kill")
			want := ""
			switch who {
			case "tool":
				want = "generator 3 (gen3) failed: ended by SIGKILL"
				if !strings.Contains(c.err.String(), want) {
					t.Errorf("no %q in\n%s", want, c.err.String())
				}
			case "connection":
				if text := c.err.String(); !strings.Contains(text, "generator 3 (gen3): connected again") {
					t.Errorf("no word of the connection in\n%s", text)
				}
			}
			if m.Reason != want {
				t.Errorf("reason %q, want %q", m.Reason, want)
			}
			r := l.report(t, "kill")[0]
			sum := 0.0
			for i := 1; i <= generators; i++ {
				own := l.report(t, rundir.GeneratorID("kill", i))[0]
				sum += own.count("transaction")
			}
			if got := r.count("transaction"); got != sum {
				t.Errorf("the group has %.0f transactions, its generators %.0f", got, sum)
			}
		})
	}
}

// The process that started a group is killed; another one attaches to the group, and its exit status follows from the
// requirements of the run.
func TestAttach(t *testing.T) {
	l := newLab(t)
	c := benchwatch(t.Context(), append(l.flags("again", "--require=tps>1000000"), append([]string{"--"}, load(8)...)...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	l.waitReports(t, l.dir(rundir.GeneratorID("again", 1)), 2)
	kill(t, c.Process.Pid)
	_ = c.Wait()
	attached := benchwatch(t.Context(), "group", "attach", "--config.file="+l.config, "--web.listen-address=127.0.0.1:0", "again")
	_ = attached.Run()
	if status, text := attached.ProcessState.ExitCode(), attached.err.String(); status != 3 || !strings.Contains(text, "tps>1000000 is not met") {
		t.Fatalf("exit status %d\n%s", status, text)
	}
	for i := 1; i <= generators; i++ {
		l.sameBytes(t, "again", i)
	}
	if m := l.load(t, "again"); m.Outcome != rundir.Succeeded {
		t.Errorf("%s: %s", m.Outcome, m.Reason)
	}
}

// Ctrl-C ends the tools on all machines.
func TestInterrupt(t *testing.T) {
	l := newLab(t)
	c := benchwatch(t.Context(), append(l.flags("stop"), append([]string{"--"}, load(120)...)...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	l.waitReports(t, l.dir(rundir.GeneratorID("stop", 4)), 2)
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if m := l.load(t, "stop"); m.Outcome != rundir.Interrupted {
		t.Errorf("%s: %s\n%s", m.Outcome, m.Reason, c.err.String())
	}
	for i := 1; i <= generators; i++ {
		m, err := rundir.At(l.Data(i), rundir.GeneratorID("stop", i)).Load()
		if err != nil || m.Outcome != rundir.Interrupted {
			t.Errorf("generator %d: %v %s", i, err, m.Outcome)
		}
	}
}

// An impossible set-up gives one clear line per machine, and nothing is started.
func TestBadMachines(t *testing.T) {
	l := newLab(t)
	other := filepath.Join(t.TempDir(), "benchwatch")
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-ldflags=-X github.com/prometheus/common/version.Version=0.0.9", "-o", other, ".")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config, err := os.ReadFile(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	refused := filepath.Join(t.TempDir(), "config")
	text := strings.ReplaceAll(strings.ReplaceAll(string(config), "accept-new", "yes"), l.Dir+"/known_hosts", "/dev/null")
	if err := os.WriteFile(refused, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags   []string
		command []string
		want    []string
	}{
		"unknown host":      {[]string{"--on=gen1,no-such-host.invalid"}, load(5), []string{"no-such-host.invalid: ", "hint: name machines as ssh knows them"}},
		"host key":          {[]string{"--ssh=ssh -F " + refused}, load(5), []string{"gen1: Host key verification failed", "hint: check the machine's host key"}},
		"no benchwatch":     {[]string{"--remote-benchwatch=/no/such/benchwatch"}, load(5), []string{"gen1: ", "hint: install benchwatch there"}},
		"other version":     {[]string{"--remote-benchwatch=" + other}, load(5), []string{"gen1: benchwatch 0.0.9 is there", "hint: install the same version on all machines"}},
		"missing tool":      {nil, []string{"no-such-tool"}, []string{"gen1: no-such-tool was not found in $PATH"}},
		"an option as host": {[]string{"--on=-oProxyCommand=touch\x20pwned"}, load(5), []string{"is not the name of a machine"}},
		"a name twice":      {[]string{"--run-id=other"}, load(5), []string{"name the same run"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := l.flags("bad")
			for _, flag := range c.flags {
				if name, _, _ := strings.Cut(flag, "="); name == "--on" || name == "--ssh" {
					for i := range args {
						if strings.HasPrefix(args[i], name+"=") {
							args[i] = flag
						}
					}
					continue
				}
				args = append(args, flag)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			run := benchwatch(ctx, append(append(args, "--"), c.command...)...)
			err := run.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 125 && exit.ExitCode() != 2 {
				t.Errorf("%v\n%s", err, run.err.String())
			}
			for _, want := range c.want {
				if !strings.Contains(run.err.String(), want) {
					t.Errorf("no %q in\n%s", want, run.err.String())
				}
			}
			for i := 1; i <= generators; i++ {
				if ids, err := rundir.List(l.Data(i)); err != nil || len(ids) > 0 {
					t.Errorf("generator %d: runs %v, %v", i, ids, err)
				}
			}
			if ids, err := rundir.List(l.data); err != nil || len(ids) > 0 {
				t.Errorf("runs %v, %v", ids, err)
			}
		})
	}
}

// Arguments reach the tool as they are, through whatever shell.
func TestArgumentsAreNotForAShell(t *testing.T) {
	l := newLab(t)
	argument := `$(touch pwned) 'a' "b" ; \ {i}/{n} *`
	c := benchwatch(t.Context(), append(l.flags("words", "--title=a 'title' $HOME"), "--", "printf", "%s\n", argument)...)
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, c.err.String())
	}
	for i := 1; i <= generators; i++ {
		out, err := os.ReadFile(l.dir(rundir.GeneratorID("words", i)).Path(rundir.StdoutFile))
		want := strings.ReplaceAll(strings.ReplaceAll(argument, "{i}", strconv.Itoa(i)), "{n}", strconv.Itoa(generators)) + "\n"
		if d := cmp.Diff(want, string(out)); err != nil || d != "" {
			t.Error(err, d)
		}
		if m := l.load(t, rundir.GeneratorID("words", i)); m.Title != fmt.Sprintf("a 'title' $HOME, generator %d of %d", i, generators) {
			t.Errorf("title %q", m.Title)
		}
	}
}

// Generators of one group may have different numbers of threads: it has all of them.
func TestThreadsOfEachGenerator(t *testing.T) {
	l := newLab(t)
	args := append(l.flags("unequal"), "--")
	for _, a := range load(3) {
		args = append(args, strings.Replace(a, "--threads=2", "--threads={i}", 1))
	}
	c := benchwatch(t.Context(), args...)
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, c.err.String())
	}
	if m := l.load(t, "unequal"); m.Threads != 10 || !strings.Contains(m.Title, "10 threads") {
		t.Errorf("%d threads, %q", m.Threads, m.Title)
	}
}

// Each step of a sweep can be a group: one table.
func TestSweepOverGroups(t *testing.T) {
	l := newLab(t)
	args := []string{"sweep", "--config.file=" + l.config, "--on=" + l.hosts(), "--ssh=ssh -F " + l.Config(), "--cluster=db", "--set=threads=1,2", "--cooldown=0s", "--format=csv", "--"}
	for _, a := range load(4) {
		args = append(args, strings.Replace(a, "--threads=2", "--threads={threads}", 1))
	}
	c := benchwatch(t.Context(), args...)
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, c.err.String())
	}
	rows := strings.Split(strings.TrimSpace(c.out.String()), "\n")
	if len(rows) != 3 {
		t.Fatalf("want a head and two rows:\n%s", c.out.String())
	}
	t.Logf("\n%s", c.out.String())
	ids, err := rundir.List(l.data)
	if err != nil {
		t.Fatal(err)
	}
	groups := 0
	for _, id := range ids {
		if m := l.load(t, id); m.IsGroup() {
			groups++
			if m.Outcome != rundir.Succeeded {
				t.Errorf("%s: %s", id, m.Reason)
			}
		}
	}
	if groups != 2 || len(ids) != 2*(generators+1) {
		t.Errorf("%d groups among %d runs", groups, len(ids))
	}
}

// Without ssh: each generator is started by itself, and `group attach` combines them.
func TestGroupWithoutSSH(t *testing.T) {
	l := newLab(t)
	at := time.Now().Add(3 * time.Second).Format(time.RFC3339Nano)
	var runs []*command
	for i := 1; i <= 2; i++ {
		c := benchwatch(t.Context(), append([]string{"run", "--data-dir=" + l.data, "--group=job", "--generators=2", "--start-at=" + at, "--linger=0s", "--web.listen-address=127.0.0.1:0", "--"}, load(5)...)...)
		c.Env = append(os.Environ(), "JOB_COMPLETION_INDEX="+strconv.Itoa(i-1))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, c)
	}
	l.waitReports(t, l.dir(rundir.GeneratorID("job", 1)), 0)
	attached := benchwatch(t.Context(), "group", "attach", "--data-dir="+l.data, "--web.listen-address=127.0.0.1:0", "job")
	if err := attached.Run(); err != nil {
		t.Fatalf("%v\n%s", err, attached.err.String())
	}
	for _, c := range runs {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, c.err.String())
		}
	}
	m := l.load(t, "job")
	if skew, ok := m.Group.Skew(); m.Outcome != rundir.Succeeded || !ok || skew > 1 { // of processes on a busy machine
		t.Errorf("%s, skew %v %v", m.Outcome, skew, ok)
	}
	r := l.report(t, "job", rundir.GeneratorID("job", 1), rundir.GeneratorID("job", 2))
	if got, sum := r[0].count("transaction"), r[1].count("transaction")+r[2].count("transaction"); got != sum || sum == 0 {
		t.Errorf("the group has %.0f transactions, its generators %.0f", got, sum)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// waitReports waits until a run has so many reports.
func (l *lab) waitReports(t *testing.T, dir rundir.Directory, n int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d reports of %s", n, dir.ID()), func() error {
		out, err := os.ReadFile(dir.Path(rundir.StdoutFile))
		if err == nil && bytes.Count(out, []byte("thds:")) < n {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
}

// sameBytes checks that the copy of a generator's output, and its part of the group's journal,
// equal the tool's output.
func (l *lab) sameBytes(t *testing.T, group string, i int) {
	t.Helper()
	id := rundir.GeneratorID(group, i)
	there, err := os.ReadFile(rundir.At(l.Data(i), id).Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile(l.dir(id).Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(there), string(here)); d != "" {
		t.Errorf("copy of %s: %s", id, d)
	}
	journal, err := os.ReadFile(l.dir(group).Path(rundir.StdoutFile))
	if err != nil {
		t.Fatal(err)
	}
	var own strings.Builder
	for line := range strings.Lines(string(journal)) {
		if text, ok := strings.CutPrefix(line, strconv.Itoa(i)+"> "); ok {
			own.WriteString(text)
		}
	}
	if d := cmp.Diff(string(there), own.String()); d != "" {
		t.Errorf("journal of %s: %s", id, d)
	}
}
