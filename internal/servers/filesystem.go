package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Filesystem is a file system of its own in a file, for which the caller needs to be root: it can be full, and its writes
// can be held up, without harm to others.
type Filesystem struct{ Dir, image string }

// NewFilesystem makes a file system of so many bytes and mounts it at a new folder.
func NewFilesystem(ctx context.Context, dir string, bytes int64) (*Filesystem, error) {
	f := &Filesystem{Dir: dir, image: dir + ".img"}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	if err := os.WriteFile(f.image, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(f.image, bytes); err != nil {
		return nil, err
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", f.image}, {"mount", "-o", "loop", f.image, dir}} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", command[0], err, out)
		}
	}
	return f, os.Chmod(dir, 0o711)
}

// Freeze holds up all writes until Thaw.
func (f *Filesystem) Freeze() error { return f.run("fsfreeze", "-f", f.Dir) }

// Thaw reverses Freeze.
func (f *Filesystem) Thaw() error { return f.run("fsfreeze", "-u", f.Dir) }

// Fill uses all of its space until Free.
func (f *Filesystem) Fill() error {
	file, err := os.Create(f.filling())
	if err != nil {
		return err
	}
	defer file.Close()
	var space syscall.Statfs_t
	if err := syscall.Statfs(f.Dir, &space); err != nil {
		return err
	}
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, int64(space.Bavail)*space.Bsize*9/10); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return nil
}

// Free reverses Fill.
func (f *Filesystem) Free() error { return os.Remove(f.filling()) }

func (f *Filesystem) filling() string { return filepath.Join(f.Dir, "filling") }

// Close unmounts it and removes its file.
func (f *Filesystem) Close() error {
	_ = f.Thaw() // it may not be frozen
	return errors.Join(f.run("umount", f.Dir), os.Remove(f.image))
}

func (f *Filesystem) run(command ...string) error {
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command[0], err, out)
	}
	return nil
}
