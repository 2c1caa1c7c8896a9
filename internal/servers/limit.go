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

// cgroups are the groups of one controller in the kernel.
type cgroups struct {
	root string
	v2   bool
}

// findCgroups returns the groups of a controller by its name in version 2. In version 1 the controller io is blkio.
func findCgroups(controller string) (cgroups, error) {
	if enabled, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control"); err == nil {
		if !slices.Contains(strings.Fields(string(enabled)), controller) {
			return cgroups{}, fmt.Errorf("the %s controller is not enabled", controller)
		}
		return cgroups{"/sys/fs/cgroup", true}, nil
	}
	root := "/sys/fs/cgroup/" + strings.Replace(controller, "io", "blkio", 1)
	// Without this check, an unmounted /sys would accept all of this as ordinary files.
	_, err := os.Stat(filepath.Join(root, "cgroup.procs"))
	return cgroups{root, false}, err
}

// cpuLimit returns what limits a group to a percentage of one core, by file.
func (c cgroups) cpuLimit(percent int) map[string]string {
	quota := fmt.Sprint(percent * 1000) // of 100 ms
	if c.v2 {
		return map[string]string{"cpu.max": quota + " 100000"}
	}
	return map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": quota}
}

// limit puts a process into a new group with limits by file. release puts it back; it may be called after the process
// has ended.
func (c cgroups) limit(pid int, name string, limits map[string]string) (release func() error, err error) {
	group := filepath.Join(c.root, fmt.Sprintf("benchwatch-%s-%d", name, pid))
	release = func() error {
		err := put(filepath.Join(c.root, "cgroup.procs"), fmt.Sprint(pid))
		if errors.Is(err, syscall.ESRCH) {
			err = nil
		}
		return errors.Join(err, os.Remove(group))
	}
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, err
	}
	if err := errors.Join(putAll(group, limits), put(filepath.Join(group, "cgroup.procs"), fmt.Sprint(pid))); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// LimitProcess limits a process to a percentage of one core by a cgroup. release removes the limit;
// it may be called after the process has ended.
func LimitProcess(pid, percent int) (release func() error, err error) {
	groups, err := findCgroups("cpu")
	if err != nil {
		return nil, err
	}
	return groups.limit(pid, "tool", groups.cpuLimit(percent))
}

// LimitDisk limits server n to this many reads and writes per second on the disk with its data; 0: unlimited. It needs
// the right to create cgroups with the controller io (version 1: blkio). release removes the limit.
func (g *Group) LimitDisk(n, reads, writes int) (release func() error, err error) {
	return g.limitDisk(n, []diskLimit{{"riops", "read_iops", reads}, {"wiops", "write_iops", writes}})
}

// LimitDiskWrites is LimitDisk for the bytes that a server writes per second.
func (g *Group) LimitDiskWrites(n, bytes int) (release func() error, err error) {
	return g.limitDisk(n, []diskLimit{{"wbps", "write_bps", bytes}})
}

// diskLimit is a limit of a disk by its names in both versions of cgroups.
type diskLimit struct {
	name, old string
	value     int
}

func (g *Group) limitDisk(n int, wanted []diskLimit) (release func() error, err error) {
	pid := g.PID(n)
	if pid == 0 {
		return nil, fmt.Errorf("server %d: %w", n, errNotRunning)
	}
	disk, err := diskOf(g.folder(n))
	if err != nil {
		return nil, err
	}
	groups, err := findCgroups("io")
	if err != nil {
		return nil, err
	}
	limits, all := map[string]string{}, disk
	for _, l := range wanted {
		if l.value > 0 {
			all += fmt.Sprintf(" %s=%d", l.name, l.value)
			limits["blkio.throttle."+l.old+"_device"] = fmt.Sprintf("%s %d", disk, l.value)
		}
	}
	if groups.v2 {
		limits = map[string]string{"io.max": all}
	}
	return groups.limit(pid, "disk", limits)
}

// diskOf returns the whole disk below a folder's file system as major:minor.
func diskOf(folder string) (string, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(folder, &s); err != nil {
		return "", err
	}
	number := fmt.Sprintf("%d:%d", s.Dev>>8&0xfff, s.Dev&0xff|s.Dev>>12&0xfff00)
	device, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		return "", fmt.Errorf("%s is not on a disk: %w", folder, err)
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(device), "dev"))
		return strings.TrimSpace(string(text)), err
	}
	return number, nil
}

// limitAppliers limits the appliers of server n, or all of it if it has none, to a percentage of one core. With cgroups
// only these threads are slowed: a replica with slow appliers and fast network threads falls behind like a real
// one. Without the right to create cgroups, cpulimit alternately stops and continues the whole
// process; precise is then false.
func (g *Group) limitAppliers(ctx context.Context, n, percent int) (precise bool, err error) {
	pid := g.PID(n)
	if pid == 0 {
		return false, fmt.Errorf("server %d: %w", n, errNotRunning)
	}
	var threads []string
	if statement := g.system.appliers(n); statement != "" {
		rows, err := g.ask(ctx, n, statement)
		if err != nil {
			return false, err
		}
		for _, row := range rows {
			threads = append(threads, row[0])
		}
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
	text, _ := os.ReadFile(g.cgroupFile(n)) // without a limit there is none
	return string(text)
}

func (g *Group) limitByCgroup(n, pid, percent int, threads []string) error {
	groups, err := findCgroups("cpu")
	if err != nil {
		return err
	}
	group := filepath.Join(groups.root, fmt.Sprintf("benchwatch-%d", pid))
	if err := errors.Join(os.MkdirAll(group, 0o755), os.WriteFile(g.cgroupFile(n), []byte(group), 0o644)); err != nil {
		return err
	}
	members := "tasks"
	if groups.v2 || len(threads) == 0 {
		if err := put(filepath.Join(group, "cgroup.procs"), fmt.Sprint(pid)); err != nil || len(threads) == 0 {
			return errors.Join(err, putAll(group, groups.cpuLimit(percent)))
		}
		// The threads of a process can only move to groups below the process's own group.
		below := filepath.Join(group, "threads")
		if err := errors.Join(os.MkdirAll(below, 0o755), put(filepath.Join(below, "cgroup.type"), "threaded"),
			put(filepath.Join(group, "cgroup.subtree_control"), "+cpu")); err != nil {
			return err
		}
		group, members = below, "cgroup.threads"
	}
	return errors.Join(put(filepath.Join(group, members), threads...), putAll(group, groups.cpuLimit(percent)))
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

// putAll writes a value to each of some files of a group.
func putAll(group string, values map[string]string) (err error) {
	for file, v := range values {
		err = errors.Join(err, put(filepath.Join(group, file), v))
	}
	return err
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
