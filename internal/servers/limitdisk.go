package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// LimitDisk limits server n to this many reads and writes per second on the disk with its data; 0:
// unlimited. It needs the right to create cgroups with the controller io (version 1: blkio).
func (g *Group) LimitDisk(n, reads, writes int) error {
	pid := g.PID(n)
	if pid == 0 {
		return fmt.Errorf("server %d: %w", n, errNotRunning)
	}
	disk, err := diskOf(g.folder(n))
	if err != nil {
		return err
	}
	if err := g.UnlimitDisk(n); err != nil {
		return err
	}
	limits := map[string]string{}
	root := "/sys/fs/cgroup/blkio"
	if enabled, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control"); err == nil {
		if !slices.Contains(strings.Fields(string(enabled)), "io") {
			return errors.New("the io controller is not enabled")
		}
		root = "/sys/fs/cgroup"
		text := disk
		for name, v := range map[string]int{"riops": reads, "wiops": writes} {
			if v > 0 {
				text += fmt.Sprintf(" %s=%d", name, v)
			}
		}
		limits["io.max"] = text
	} else {
		for name, v := range map[string]int{"read": reads, "write": writes} {
			if v > 0 {
				limits["blkio.throttle."+name+"_iops_device"] = fmt.Sprintf("%s %d", disk, v)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
		return err
	}
	group := filepath.Join(root, fmt.Sprintf("benchwatch-disk-%d", pid))
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(g.diskCgroup(n), []byte(group), 0o644); err != nil {
		return err
	}
	for file, text := range limits {
		if err := put(filepath.Join(group, file), text); err != nil {
			return errors.Join(err, g.UnlimitDisk(n))
		}
	}
	return put(filepath.Join(group, "cgroup.procs"), fmt.Sprint(pid))
}

// UnlimitDisk reverses LimitDisk.
func (g *Group) UnlimitDisk(n int) error {
	group, err := os.ReadFile(g.diskCgroup(n))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if pid := g.PID(n); pid != 0 {
		if err := put(filepath.Join(filepath.Dir(string(group)), "cgroup.procs"), fmt.Sprint(pid)); err != nil {
			return err
		}
	}
	if err := os.Remove(string(group)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Remove(g.diskCgroup(n))
}

// diskCgroup contains the path of the cgroup that limits server n's disk.
func (g *Group) diskCgroup(n int) string { return filepath.Join(g.folder(n), "disk-cgroup") }

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

// LimitProcess limits a process to a percentage of one core by a cgroup. release removes the limit;
// it may be called after the process has ended.
func LimitProcess(pid, percent int) (release func() error, err error) {
	group, quota := fmt.Sprintf("/sys/fs/cgroup/benchwatch-tool-%d", pid), map[string]string{"cpu.max": fmt.Sprintf("%d 100000", percent*1000)}
	if enabled, err := os.ReadFile("/sys/fs/cgroup/cgroup.subtree_control"); err != nil {
		group = fmt.Sprintf("/sys/fs/cgroup/cpu/benchwatch-tool-%d", pid)
		quota = map[string]string{"cpu.cfs_quota_us": fmt.Sprint(percent * 1000)} // of 100 ms
	} else if !slices.Contains(strings.Fields(string(enabled)), "cpu") {
		return nil, errors.New("the cpu controller is not enabled")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(group), "cgroup.procs")); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, err
	}
	release = func() error {
		err := put(filepath.Join(filepath.Dir(group), "cgroup.procs"), fmt.Sprint(pid))
		if errors.Is(err, syscall.ESRCH) {
			err = nil
		}
		return errors.Join(err, os.Remove(group))
	}
	for file, text := range quota {
		if err := put(filepath.Join(group, file), text); err != nil {
			return nil, errors.Join(err, release())
		}
	}
	if err := put(filepath.Join(group, "cgroup.procs"), fmt.Sprint(pid)); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}
