package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Namespace is a separate network that has only a loopback. Programs in it and outside reach each other through Links
// alone, so that they can be cut off from each other.
type Namespace struct{ file *os.File }

// NewNamespace makes a network, for which the caller needs to be root. It exists until it is closed
// and the programs in it have ended.
func NewNamespace() (*Namespace, error) {
	n := &Namespace{}
	err := onOwnThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		return raiseLoopback()
	})
	return n, err
}

// onOwnThread runs f on a thread that ends with it, and with it what f changed of the thread.
func onOwnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback)
}

// Close ends it for the caller.
func (n *Namespace) Close() error { return n.file.Close() }

// do runs f in the network; without one, in the caller's.
func (n *Namespace) do(f func() error) error {
	if n == nil {
		return f()
	}
	return onOwnThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// Start runs f. The servers that it starts are in the network, as all are that are started meanwhile.
func (n *Namespace) Start(f func() error) error {
	onLauncher := func(do func() error) error {
		done := make(chan error)
		launcher() <- func() { done <- do() }
		return <-done
	}
	var home *os.File
	err := onLauncher(func() (err error) {
		if home, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET)
	})
	if err != nil {
		return err
	}
	defer home.Close()
	return errors.Join(f(), onLauncher(func() error { return unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) }))
}

// Link forwards TCP connections from a loopback address in one network to one in another. The
// network nil is the caller's.
type Link struct {
	to       *Namespace
	address  string
	listener net.Listener
	parts    sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	conns  map[net.Conn]bool
	resume chan struct{} // closed when it is not paused
}

// NewLink listens on an address in one network and connects to an address in the other.
func NewLink(from *Namespace, listen string, to *Namespace, address string) (*Link, error) {
	l := &Link{to: to, address: address, conns: map[net.Conn]bool{}, resume: make(chan struct{})}
	close(l.resume)
	err := from.do(func() (err error) {
		l.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", listen)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	l.parts.Go(l.accept)
	return l, nil
}

// Address is where it listens.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Pause holds back all data until Resume. Connections stay open.
func (l *Link) Pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume = make(chan struct{})
}

// Resume reverses Pause.
func (l *Link) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.resume:
	default:
		close(l.resume)
	}
}

// pausable is a writer that waits while the link is paused.
type pausable struct {
	*Link
	io.Writer
}

func (p pausable) Write(data []byte) (int, error) {
	p.mu.Lock()
	resume := p.resume
	p.mu.Unlock()
	<-resume
	return p.Writer.Write(data)
}

// Close ends the link and its connections.
func (l *Link) Close() {
	l.Resume()
	_ = l.listener.Close()
	l.Cut()
	l.parts.Wait()
}

// Cut ends all connections. New ones are closed at once, until Mend.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.conns {
		_ = c.Close()
	}
}

// Mend reverses Cut.
func (l *Link) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
}

func (l *Link) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.parts.Go(func() { l.forward(c) })
	}
}

// hold remembers a connection for Cut, or closes it.
func (l *Link) hold(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = c.Close()
		return false
	}
	l.conns[c] = true
	return true
}

func (l *Link) release(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = c.Close()
	delete(l.conns, c)
}

func (l *Link) forward(from net.Conn) {
	if !l.hold(from) {
		return
	}
	defer l.release(from)
	var to net.Conn
	err := l.to.do(func() (err error) {
		to, err = (&net.Dialer{}).DialContext(context.Background(), "tcp", l.address)
		return err
	})
	if err != nil || !l.hold(to) {
		return
	}
	defer l.release(to)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(pausable{l, from}, to) // a cut ends it with an error
		_ = from.Close()
	})
	_, _ = io.Copy(pausable{l, to}, from)
	_ = to.Close()
	back.Wait()
}
