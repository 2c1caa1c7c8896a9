package rundir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// smallDisk returns a folder on a separate file system.
func smallDisk(t *testing.T) string {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("can't mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	return disk
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestReservation guards that another file that fills the disk leaves space for the tool's output, that insufficient
// space is detected, and that the rest is released.
func TestReservation(t *testing.T) {
	disk := smallDisk(t)
	dir, claim, err := Create(disk, Meta{ID: "r", Timing: Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	reserved, err := dir.Reserve(StdoutFile)
	if err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	if _, err := io.Copy(filler, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	if space, err := SpaceOf(string(dir)); err != nil || !space.Low() {
		t.Errorf("space %+v, %v", space, err)
	}
	tool, err := dir.OpenOutput(StdoutFile)
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close()
	line := bytes.Repeat([]byte("x"), 1024)
	for i := range 1000 { // of the 1024 that are reserved
		if _, err := tool.Write(line); err != nil {
			t.Fatalf("line %d of the tool: %v", i, err)
		}
		if i%100 == 0 {
			reserved.Renew()
		}
	}
	if reserved.Renew(); reserved.Lost() {
		t.Error("output is lost while there is space")
	}
	for err == nil {
		_, err = tool.Write(line)
	}
	if reserved.Renew(); !errors.Is(err, syscall.ENOSPC) || !reserved.Lost() {
		t.Errorf("the tool's error is %v; lost: %v", err, reserved.Lost())
	}
	if err := filler.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := reserved.Close(dir); err != nil {
		t.Fatal(err)
	}
	code := 0
	m := Meta{End: End{ExitCode: &code, OutputLost: reserved.Lost()}}
	if m.Conclude(Output{Complete: true}); m.Outcome != Failed || m.Reason == "" {
		t.Errorf("%s: %q", m.Outcome, m.Reason)
	}
}

// TestReserveIsGivenBack guards that a run takes no more space than it wrote, and that
// nothing is cut while a process could still write.
func TestReserveIsGivenBack(t *testing.T) {
	disk := smallDisk(t)
	dir, claim, err := Create(disk, Meta{ID: "r", Timing: Timing{StartedAt: time.Now()}})
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	free := func() uint64 {
		space, err := SpaceOf(disk)
		if err != nil {
			t.Fatal(err)
		}
		return space.Free
	}
	before := free()
	for _, running := range []bool{false, true} {
		reserved, err := dir.Reserve(StdoutFile)
		if err != nil {
			t.Fatal(err)
		}
		if taken := before - free(); taken < reserveAhead {
			t.Errorf("%d bytes are reserved", taken)
		}
		if running {
			lock, err := dir.Lock(ToolLock, true)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
		}
		if err := reserved.Close(dir); err != nil {
			t.Fatal(err)
		}
		if kept := before-free() >= reserveAhead; kept != running {
			t.Errorf("the tool runs: %v; the reserve is kept: %v", running, kept)
		}
	}
}

func TestShortSpace(t *testing.T) {
	for _, c := range []struct {
		free, size uint64
		length     time.Duration
		short      bool
	}{
		{1 << 30, 100 << 30, 0, false},
		{63 << 20, 100 << 30, 0, true},
		{100 << 20, 100 << 30, time.Hour, false},
		{100 << 20, 100 << 30, 10 * time.Hour, true},
		{6 << 20, 100 << 20, time.Minute, false},
	} {
		if got := (Space{Free: c.free, Size: c.size}).Short(c.length); (got != "") != c.short {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
