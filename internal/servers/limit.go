package servers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// limitCPU limits server n to a percentage of one core. With cgroups only the given threads are
// slowed, if any: a replica with slow appliers and fast network threads falls behind like a real
// one. Without the right to create cgroups, cpulimit alternately stops and continues the whole
// process; precise is then false.
func (g *Group) limitCPU(n, percent int, threads []string) (precise bool, err error) {
	pid := g.PID(n)
	if pid == 0 {
		return false, fmt.Errorf("server %d: %w", n, errNotRunning)
	}
	if err := g.unlimitCPU(n); err != nil {
		return false, err
	}
	if os.Getenv("BENCHWATCH_CGROUPS") != "no" {
		if err := g.limitByCgroup(n, pid, percent, threads); err == nil {
			return true, nil
		}
		g.openCgroup(n)
	}
	return false, g.cpulimit(n).start(program{
		args:     []string{"cpulimit", "--lazy", fmt.Sprintf("--pid=%d", pid), fmt.Sprintf("--limit=%d", percent)},
		attached: g.attached,
	})
}

// unlimitCPU removes the limit of server n. The cgroup stays until the server ends.
func (g *Group) unlimitCPU(n int) error {
	err := g.cpulimit(n).stop(2 * time.Second)
	g.openCgroup(n)
	_ = g.process(n).signal(syscall.SIGCONT) // cpulimit may have stopped it
	return err
}

// forgetLimit removes the cgroup of a server that has ended.
func (g *Group) forgetLimit(n int) error {
	err := g.cpulimit(n).stop(2 * time.Second)
	group := g.cgroup(n)
	if group == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var left error
	err = errors.Join(err, poll(ctx, func() bool {
		_ = os.Remove(filepath.Join(group, "threads"))
		left = os.Remove(group)
		return left == nil || errors.Is(left, fs.ErrNotExist)
	}))
	if err != nil {
		return errors.Join(err, left)
	}
	return os.Remove(g.cgroupFile(n))
}

func (g *Group) cpulimit(n int) process { return process(filepath.Join(g.folder(n), "cpulimit.pid")) }

// cgroupFile contains the path of server n's cgroup.
func (g *Group) cgroupFile(n int) string { return filepath.Join(g.folder(n), "cgroup") }

func (g *Group) cgroup(n int) string {
	text, err := os.ReadFile(g.cgroupFile(n))
	if err != nil {
		return ""
	}
	return string(text)
}

func (g *Group) limitByCgroup(n, pid, percent int, threads []string) error {
	quota := fmt.Sprint(percent * 1000) // of 100 ms
	enabled, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control")
	if err == nil {
		if !slices.Contains(strings.Fields(string(enabled)), "cpu") {
			return errors.New("the cpu controller is not enabled")
		}
		group := fmt.Sprintf("/sys/fs/cgroup/benchwatch-%d", pid)
		if err := g.makeCgroup(n, group); err != nil {
			return err
		}
		if err := put(filepath.Join(group, "cgroup.procs"), fmt.Sprint(pid)); err != nil || len(threads) == 0 {
			return errors.Join(err, put(filepath.Join(group, "cpu.max"), quota+" 100000"))
		}
		// The threads of a process can only move to groups below the process's own group.
		below := filepath.Join(group, "threads")
		if err := os.MkdirAll(below, 0o755); err != nil {
			return err
		}
		return errors.Join(
			put(filepath.Join(below, "cgroup.type"), "threaded"),
			put(filepath.Join(group, "cgroup.subtree_control"), "+cpu"),
			put(filepath.Join(below, "cgroup.threads"), threads...),
			put(filepath.Join(below, "cpu.max"), quota+" 100000"))
	}
	const v1 = "/sys/fs/cgroup/cpu"
	// Without this check, an unmounted /sys would accept all of this as ordinary files.
	if _, err := os.Stat(filepath.Join(v1, "cgroup.procs")); err != nil {
		return err
	}
	group := fmt.Sprintf("%s/benchwatch-%d", v1, pid)
	if err := g.makeCgroup(n, group); err != nil {
		return err
	}
	members := put(filepath.Join(group, "tasks"), threads...)
	if len(threads) == 0 {
		members = put(filepath.Join(group, "cgroup.procs"), fmt.Sprint(pid))
	}
	return errors.Join(members,
		put(filepath.Join(group, "cpu.cfs_period_us"), "100000"),
		put(filepath.Join(group, "cpu.cfs_quota_us"), quota))
}

func (g *Group) makeCgroup(n int, group string) error {
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	return os.WriteFile(g.cgroupFile(n), []byte(group), 0o644)
}

// openCgroup removes the limits of a server's cgroup.
func (g *Group) openCgroup(n int) {
	group := g.cgroup(n)
	if group == "" {
		return
	}
	for file, open := range map[string]string{"cpu.cfs_quota_us": "-1", "cpu.max": "max", "threads/cpu.max": "max"} {
		_ = put(filepath.Join(group, file), open) // each version of cgroups has its own files
	}
}

// put writes values to a file of the kernel, one at a time.
func put(file string, values ...string) error {
	for _, v := range values {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(v)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
