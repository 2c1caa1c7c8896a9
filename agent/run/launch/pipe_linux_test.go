package launch

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestPipeOnAFullDisk guards that a run does not count as succeeded if its piped output could not
// be written.
func TestPipeOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("can't mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	for _, size := range []int{1 << 10, 4 << 20} {
		dir, claim, err := rundir.Create(disk, rundir.Meta{Timing: rundir.Timing{StartedAt: time.Now()}})
		if err != nil {
			t.Fatal(err)
		}
		defer claim.Release()
		err = Pipe(context.Background(), dir, strings.NewReader(strings.Repeat("x", size)), nil)
		meta, loadErr := dir.Load()
		switch lost := size > 1<<20; {
		case !lost && (err != nil || loadErr != nil || meta.Outcome != rundir.Lost || meta.OutputLost):
			t.Errorf("%d bytes: %v, %v, %s", size, err, loadErr, meta.Outcome)
		case lost && !errors.Is(err, syscall.ENOSPC):
			t.Errorf("%d bytes: %v", size, err)
		case lost && loadErr == nil && meta.Outcome == rundir.Succeeded:
			t.Errorf("%d bytes: succeeded", size)
		}
	}
}
