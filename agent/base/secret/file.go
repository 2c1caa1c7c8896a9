package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// MaxFile is the maximum size in bytes of a file that a user configures.
	MaxFile = 4 << 20
	// fileTime is the maximum time for reading one file. The agent has to end within 2 s of
	// SIGTERM.
	fileTime = 1500 * time.Millisecond
)

// ErrFolder is wrapped by the error for a folder where a file is required.
var ErrFolder = errors.New("is a folder")

// ErrSlow is wrapped by the error for a file that does not deliver its content in time, such as a
// FIFO without a writer or a file on a mount that does not answer.
var ErrSlow = errors.New("no content within " + fileTime.String())

// use is what to do with a file.
type use struct {
	name    string
	regular bool // refuse other kinds of files
	exists  bool // do not read it
}

// access is one use of a file. It can hang forever on a mount.
type access struct {
	done chan struct{}
	data []byte
	err  error
}

var (
	accessMu sync.Mutex
	accesses = map[use]*access{} // in progress: a file that hangs costs one goroutine
	// pipes are the contents of FIFOs read so far. Every reader gets all of the content, as with a
	// regular file.
	pipes sync.Map
	// positions are the places where the configuration names files; see Configured.
	positions sync.Map
)

// Configured records where a file is configured, such as "benchwatch.yml:3: grafana.token_file".
// Errors about the file then begin with this position.
func Configured(name, position string) { positions.Store(name, position) }

// ReadFile reads a file of at most MaxFile bytes that the configuration or a flag names. It returns
// within two seconds, whatever kind of file it is. The error names the file and where it is
// configured, and wraps fs.ErrNotExist or ErrSlow if that is the cause.
func ReadFile(name string) ([]byte, error) { return accessFile(use{name: name}) }

// ReadRegular is ReadFile for a file that is read more than once. It refuses FIFOs and devices.
func ReadRegular(name string) ([]byte, error) { return accessFile(use{name: name, regular: true}) }

// FileExists returns an error that wraps fs.ErrNotExist if the file does not exist, ErrFolder if it
// is a folder. It returns nil for a file that only another user can read.
func FileExists(name string) error {
	_, err := accessFile(use{name: name, exists: true})
	return err
}

func accessFile(u use) ([]byte, error) {
	accessMu.Lock()
	a := accesses[u]
	if a == nil {
		a = &access{done: make(chan struct{})}
		accesses[u] = a
		go func() {
			a.data, a.err = u.run()
			accessMu.Lock()
			delete(accesses, u)
			accessMu.Unlock()
			close(a.done)
		}()
	}
	accessMu.Unlock()
	err := ErrSlow
	select {
	case <-a.done:
		err = a.err
	case <-time.After(fileTime):
	}
	if err == nil {
		return a.data, nil
	}
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		err = fmt.Errorf("read %s: %w", u.name, err)
	}
	if at, ok := positions.Load(u.name); ok && !u.exists {
		err = fmt.Errorf("%s: %w", at, err)
	}
	return nil, err
}

func (u use) run() ([]byte, error) {
	if !u.regular && !u.exists {
		return readFile(u.name)
	}
	switch info, err := os.Stat(u.name); {
	case err != nil && (u.regular || errors.Is(err, fs.ErrNotExist)):
		return nil, err
	case u.regular && !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case u.regular:
		return readFile(u.name)
	case err == nil && info.IsDir():
		return nil, ErrFolder
	}
	return nil, nil
}

// readFile opens a FIFO without waiting for its writer, since nothing could interrupt that wait.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	isPipe := info.Mode().Type() == fs.ModeNamedPipe
	if data, ok := pipes.Load(name); ok && isPipe {
		return data.([]byte), nil
	}
	deadline := time.Now().Add(fileTime)
	_ = f.SetReadDeadline(deadline) // a regular file has none
	for {
		data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && len(data) <= MaxFile:
			return nil, ErrSlow
		case err != nil:
			return nil, err
		case len(data) > MaxFile:
			return nil, fmt.Errorf("it is longer than %d bytes", MaxFile)
		case len(data) > 0 || !isPipe:
			if isPipe {
				pipes.Store(name, data)
			}
			return data, nil
		case time.Now().After(deadline): // a FIFO without a writer
			return nil, ErrSlow
		}
		time.Sleep(20 * time.Millisecond)
	}
}
