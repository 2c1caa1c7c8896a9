package servers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stateFile marks a folder of this package and contains its state.
const stateFile = "servers.json"

// claim creates a folder, or takes an empty one or one of this package, and locks it until release
// is called.
func claim(ctx context.Context, dir string) (release func(), err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, stateFile)); err != nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty and holds no servers", dir)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	// The servers' own user must be able to enter it.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	return lock(ctx, dir)
}

// lock waits until other callers have finished with the folder.
func lock(ctx context.Context, dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, stateFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, func() bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil })
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is in use by another call: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// readState reads a folder's state into v. It reads nothing from a new folder.
func readState(dir string, v any) error {
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no servers", dir)
	} else if err != nil || len(text) == 0 {
		return err
	}
	return json.Unmarshal(text, v)
}

// writeState writes in place, since the lock is on this file.
func writeState(dir string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, stateFile), append(text, '\n'), 0o644)
}

// password returns the content of DIR/NAME.password and creates it if necessary. Only its owner can
// read the file.
func password(dir, name string) (string, error) {
	file := filepath.Join(dir, name+".password")
	text, err := os.ReadFile(file)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	secret := rand.Text()
	return secret, writeFile(file, secret+"\n", 0o600)
}

// FreePorts returns a base such that the ports base+1 to base+count are free, below the kernel's
// range for clients.
func FreePorts(count int) (base int, err error) {
	for range 50 {
		base := 20000 + mathrand.IntN(12000-count)
		if takenPort(base, count) == 0 {
			return base, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row between 20000 and 32000", count)
}

// takenPort returns the first of the ports base+1 to base+count that is in use, or 0.
func takenPort(base, count int) int {
	for port := base + 1; port <= base+count; port++ {
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			return port
		}
		l.Close()
	}
	return 0
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// startLimit is how long a server may take to become ready.
const startLimit = 2 * time.Minute
