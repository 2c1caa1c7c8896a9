package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// reserveAhead is how much space is reserved on the disk ahead of a tool's output: enough for
	// minutes of any tool.
	reserveAhead = 1 << 20
	// lowSpace is kept free for the output of tools; on a small file system, a share of it.
	lowSpace, lowShare = 64 << 20, 20
)

// Space is the space on the file system of a folder, in bytes: what an ordinary user can still
// write, and the total.
type Space struct{ Free, Size uint64 }

// SpaceOf returns the space on the file system of path.
func SpaceOf(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, fmt.Errorf("free space of %s: %w", path, err)
	}
	return Space{Free: s.Bavail * uint64(s.Bsize), Size: s.Blocks * uint64(s.Bsize)}, nil
}

// Size returns the space on the disk of all files in the folder, in bytes. What can't be read counts as nothing.
func (d Directory) Size() (size int64) {
	_ = filepath.WalkDir(string(d), func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && unix.Lstat(path, &st) == nil {
			size += st.Blocks * 512
		}
		return nil
	})
	return size
}

// runGrowth is roughly what a run with three servers writes per second.
const runGrowth = 4 << 10

// Short describes insufficient space for a run of the given length; empty if there is enough. An
// unknown length is 0.
func (s Space) Short(length time.Duration) string {
	need := uint64(length.Seconds()) * runGrowth
	const mebi = 1 << 20
	switch {
	case s.Low():
		return fmt.Sprintf("the disk with the runs has only %d MiB left: nothing but the tool's output is recorded", s.Free/mebi)
	case s.Free < need+s.limit():
		return fmt.Sprintf("the disk with the runs has %d MiB left, and a run of %v may need %d MiB: servers are not recorded to its end", s.Free/mebi, length, need/mebi)
	}
	return ""
}

// limit is the free space required to record anything but the tool's output.
func (s Space) limit() uint64 { return min(lowSpace, s.Size/lowShare) }

// Low reports whether the remaining space is for the output of tools only.
func (s Space) Low() bool { return s.Free < s.limit() }

// Reservation is disk space for the growth of an output file, reserved ahead of the tool's writes
// so that other files can't take it. Only one goroutine may use it.
type Reservation struct {
	file *os.File
	end  int64 // space is reserved up to here
	lost bool
}

// Reserve starts reserving space for an output file to which another process appends. On a file
// system without support it reserves nothing.
func (d Directory) Reserve(name string) (*Reservation, error) {
	f, err := d.OpenOutput(name)
	if err != nil {
		return nil, err
	}
	r := &Reservation{file: f}
	r.Renew()
	return r, nil
}

// Renew reserves more if the file has grown, and less than usual if the disk is nearly full. Call
// it before a tool can write half of the reserve.
func (r *Reservation) Renew() {
	info, err := r.file.Stat()
	if err != nil || r.end-info.Size() > reserveAhead/2 {
		return
	}
	for ahead := int64(reserveAhead); ahead >= 4096; ahead /= 4 {
		end := info.Size() + ahead
		if end <= r.end {
			return
		}
		err := allocate(r.file, end)
		if err == nil {
			r.end = end
			return
		}
		if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
			return
		}
	}
	// The disk is full. The tool can still use the reserve.
	r.lost = r.lost || r.end-info.Size() < 4096
}

// Lost reports whether the disk was full up to the end of the reserve, so that some output may be
// missing.
func (r *Reservation) Lost() bool { return r.lost }

// Close releases unused space, unless a process that could still write holds the tool's lock:
// truncating the file then could cut its last lines.
func (r *Reservation) Close(d Directory) error {
	defer r.file.Close()
	if d.held(ToolLock) {
		return nil
	}
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	return r.file.Truncate(info.Size())
}
