package retention

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestFullDisk guards that old runs are removed from a disk without a free block or a free inode, also by processes that
// are killed, and that runs which must stay do so.
func TestFullDisk(t *testing.T) {
	for name, fill := range map[string]func(t *testing.T, disk string){"blocks": fillBlocks, "inodes": fillInodes} {
		t.Run(name, func(t *testing.T) {
			disk := t.TempDir()
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16m,nr_inodes=2000"); err != nil {
				t.Skipf("can't mount a small disk: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
			random := rand.New(rand.NewPCG(9, 41))
			s := newStandIn(t, disk, random, 400)
			rule := Rule{MaxSize: 2 << 20}
			want := s.rest(t, rule)
			fill(t, disk)
			if err := CheckClock(disk, clock.System, false); err != nil {
				t.Errorf("the clock is doubted: %v", err)
			}
			for kills := 0; kills < 5 && !s.apply(t, rule, time.Duration(random.IntN(10_000))*time.Microsecond); kills++ {
				s.checkWhole(t)
			}
			s.apply(t, rule, 0)
			s.checkWhole(t)
			if ids, err := rundir.List(disk); err != nil || strings.Join(ids, " ") != strings.Join(want, " ") {
				t.Errorf("%d runs are left, want %d: %v", len(ids), len(want), err)
			}
			if left, _ := filepath.Glob(filepath.Join(rundir.Root(disk), ".removed-*")); len(left) > 0 {
				t.Errorf("half removed: %s", left)
			}
			must(t, os.WriteFile(filepath.Join(disk, "again"), make([]byte, 1<<20), 0o600))
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func fillBlocks(t *testing.T, disk string) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "filler"))
	must(t, err)
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
}

func fillInodes(t *testing.T, disk string) {
	t.Helper()
	for i := 0; ; i++ {
		switch err := os.WriteFile(filepath.Join(disk, "filler"+strconv.Itoa(i)), nil, 0o600); {
		case errors.Is(err, syscall.ENOSPC):
			return
		case err != nil || i > 5000:
			t.Fatalf("filling the disk: %d files, %v", i, err)
		}
	}
}
