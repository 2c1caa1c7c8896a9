package rundir

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// reserveAhead is how much of a tool's output has its place on the disk before it
	// is written: minutes of any tool.
	reserveAhead = 1 << 20
	// lowSpace is left to the output of tools, on a small file system a share of it.
	lowSpace, lowShare = 64 << 20, 20
)

// Space is the room on the file system of a folder, in bytes: what an ordinary user
// can still write, and all of it.
type Space struct{ Free, Size uint64 }

// SpaceOf returns the room on the file system that has a path.
func SpaceOf(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, fmt.Errorf("free space of %s: %w", path, err)
	}
	return Space{Free: s.Bavail * uint64(s.Bsize), Size: s.Blocks * uint64(s.Bsize)}, nil
}

// runGrowth is about what a run with three servers writes in a second.
const runGrowth = 4 << 10

// Short returns what is wrong with the room for a run of the given length, empty if
// there is enough. An unknown length is 0.
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

// limit is what must be free for anything but the tool's output to be recorded.
func (s Space) limit() uint64 { return min(lowSpace, s.Size/lowShare) }

// Low reports whether the rest is for the output of tools.
func (s Space) Low() bool { return s.Free < s.limit() }

// Reservation is space on the disk for the growth of an output file, ahead of what the
// tool writes: other files that fill the disk do not take it. One goroutine uses it.
type Reservation struct {
	file *os.File
	end  int64 // up to here there is space
	lost bool
}

// Reserve begins to reserve space for an output file that another process appends to.
// On a file system that can't reserve, nothing is reserved.
func (d Directory) Reserve(name string) (*Reservation, error) {
	f, err := d.OpenOutput(name)
	if err != nil {
		return nil, err
	}
	r := &Reservation{file: f}
	r.Renew()
	return r, nil
}

// Renew reserves more if the file has grown, and less than usual if the disk is
// nearly full. It is called more often than a tool writes half of the reserve.
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
	// The disk is full. The tool still has what is reserved.
	r.lost = r.lost || r.end-info.Size() < 4096
}

// Lost reports whether the disk was full up to the end of the reserve, so that a part
// of the output may be missing.
func (r *Reservation) Lost() bool { return r.lost }

// Close gives back what is not used, if no process that could still write holds the
// lock of the tool: shortening the file then could cut its last lines.
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
