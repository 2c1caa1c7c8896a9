package generator

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/version"
	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// startTime is how long an answer may take, and the whole connection.
	startTime = time.Minute
	// roundTrips measure a clock: the shortest counts.
	roundTrips = 9
)

// session is a connection to a generator's machine.
type session struct {
	host    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *os.File
	answers chan answer // closed when the connection is
	failure error       // of the reader; set before answers is closed
	printed lastLines   // what ssh printed
	closing chan struct{}
	exited  chan struct{} // the process has ended
	once    sync.Once
	ended   sync.WaitGroup

	// scraped: an agent follows the runs there. offset is by how much its clock is
	// ahead, uncertainty half of the shortest round trip.
	scraped             bool
	offset, uncertainty time.Duration
}

// Error is why a generator can't be used, with what to do.
type Error struct {
	Host string
	Text string
	Hint string
}

func (e *Error) Error() string { return e.Host + ": " + e.Text }

// read passes the answers on until the connection ends or something else than answers
// comes: before the first one, the other side's shell may print a short banner.
func (s *session) read() {
	defer close(s.answers)
	lines := bufio.NewScanner(s.out)
	lines.Buffer(nil, longestMessage)
	banner := 0
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			if banner += len(lines.Bytes()) + 1; banner > longestBanner {
				s.failure = fmt.Errorf("it prints something else than the answers of benchwatch, more than %d KiB", longestBanner>>10)
				return
			}
			continue
		}
		select {
		case s.answers <- a:
		case <-s.closing:
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		s.failure = fmt.Errorf("it prints a line of more than %d MiB: that is no answer of benchwatch", longestMessage>>20)
	}
}

// connect opens a connection through the system's ssh, checks the version and measures
// the clock.
func connect(ctx context.Context, host string, c *rundir.Connection) (*session, error) {
	if host == "" || strings.HasPrefix(host, "-") {
		return nil, &Error{host, "is not the name of a machine", "name machines as ssh knows them: --on=gen1,gen2"}
	}
	s := &session{host: host, answers: make(chan answer), closing: make(chan struct{}), exited: make(chan struct{})}
	args := append([]string{}, c.SSH[1:]...)
	// ssh passes one string to the other side's shell.
	args = append(args, "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "--", host,
		table.ShellWord(c.Benchwatch)+" group serve")
	s.cmd = exec.Command(c.SSH[0], args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end the connection
	s.cmd.Stderr = &s.printed
	s.cmd.WaitDelay = 100 * time.Millisecond // what it started may have its standard error
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var out *os.File
	if s.out, out, err = os.Pipe(); err != nil {
		return nil, err
	}
	s.cmd.Stdout = out
	err = s.cmd.Start()
	out.Close()
	if err != nil {
		s.out.Close()
		return nil, &Error{host, err.Error(), "install an ssh client, or name one with --ssh"}
	}
	s.ended.Go(func() {
		_ = s.cmd.Wait() // the answers show how it ended
		close(s.exited)
	})
	s.ended.Go(s.read)
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := s.hello(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) hello(ctx context.Context) error {
	a, err := s.receive(ctx)
	if err != nil {
		hint := ""
		switch text := s.printed.text(); {
		case strings.Contains(text, "Host key verification failed"), strings.Contains(text, "REMOTE HOST IDENTIFICATION HAS CHANGED"):
			hint = "check the machine's host key, then connect once manually: ssh " + s.host
		case strings.Contains(text, "Permission denied"):
			hint = "benchwatch asks for no password: use a key or an agent that ssh " + s.host + " works with"
		case strings.Contains(text, "resolve hostname"):
			hint = "name machines as ssh knows them: --on=gen1,gen2"
		case strings.Contains(text, "not found"), strings.Contains(text, "No such file"):
			hint = "install benchwatch there, or name its path with --remote-benchwatch"
		case strings.Contains(text, "expected command"), strings.Contains(text, "unexpected"):
			hint = "install benchwatch " + version.Version + " there"
		}
		return &Error{s.host, err.Error(), hint}
	}
	if a.Version != version.Version {
		return &Error{s.host, fmt.Sprintf("benchwatch %s is there, %s here", orUnknown(a.Version), orUnknown(version.Version)), "install the same version on all machines"}
	}
	s.scraped = a.Scraped
	return s.measureClock(ctx)
}

func orUnknown(version string) string {
	if version == "" {
		return "of an unknown version"
	}
	return version
}

// measureClock asks for the time several times: what the shortest round trip brings is
// the closest.
func (s *session) measureClock(ctx context.Context) error {
	shortest := time.Duration(-1)
	for range roundTrips {
		before := time.Now()
		a, err := s.ask(ctx, &request{})
		if err != nil {
			return err
		}
		if took := time.Since(before); shortest < 0 || took < shortest {
			shortest = took
			s.offset, s.uncertainty = time.Unix(0, a.Clock).Sub(before.Add(took/2).Round(0)), took/2
		}
	}
	return nil
}

// ask sends a request and returns its answer. After an error, but of the other side
// itself, the connection is of no use.
func (s *session) ask(ctx context.Context, r *request) (answer, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	if len(line) >= longestMessage {
		return answer{}, &Error{s.host, fmt.Sprintf("the command line has %d bytes, at most %d are possible", len(line), longestMessage), ""}
	}
	// Who does not read blocks Write: then the end of ctx ends the connection.
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer context.AfterFunc(ctx, s.kill)()
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return answer{}, s.lost(cmp.Or(ctx.Err(), err))
	}
	a, err := s.receive(ctx)
	if err == nil && a.Error != "" {
		err = &Error{s.host, a.Error, a.Hint}
	}
	return a, err
}

// News implements mirror.Source.
func (s *session) News(ctx context.Context, dir rundir.Directory, have *mirror.Have) (mirror.News, error) {
	a, err := s.ask(ctx, &request{Run: dir.ID(), Have: have})
	return a.News, err
}

// receive returns the next answer.
func (s *session) receive(ctx context.Context) (answer, error) {
	select {
	case a, ok := <-s.answers:
		if !ok {
			return answer{}, s.lost(cmp.Or(ctx.Err(), s.failure, io.ErrUnexpectedEOF))
		}
		return a, nil
	case <-ctx.Done():
		s.kill()
		return answer{}, s.lost(ctx.Err())
	}
}

// errLost is matched by the errors of a connection that is of no use any more.
var errLost = errors.New("no connection")

type lostError struct{ text string }

func (e *lostError) Error() string        { return e.text }
func (e *lostError) Is(target error) bool { return target == errLost }

// lost returns why the connection is of no use: what ssh printed last, if anything.
func (s *session) lost(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		s.close() // so that all that it printed is there
	}
	if s.failure == nil || !errors.Is(err, s.failure) {
		if text := s.printed.text(); text != "" {
			return &lostError{text}
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &lostError{"no answer"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &lostError{"the connection was closed"}
	}
	return &lostError{err.Error()}
}

// closeTime is how long ssh may take to end by itself.
const closeTime = time.Second

// close ends the connection. What was started there continues.
func (s *session) close() {
	s.in.Close()
	select {
	case <-s.exited:
	case <-time.After(closeTime):
	}
	s.kill()
	s.ended.Wait()
}

// kill ends ssh, and what it started on this machine, at once.
func (s *session) kill() {
	s.once.Do(func() {
		close(s.closing)
		select {
		case <-s.exited:
		default:
			_ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL)
		}
		s.out.Close() // who left its process group may still have the other end
		s.in.Close()
	})
}

// lastLines keeps the end of what a program prints.
type lastLines struct {
	mu   sync.Mutex
	tail []byte
}

// Write implements io.Writer.
func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const kept = 4096
	l.tail = append(l.tail, p...)
	if n := len(l.tail) - kept; n > 0 {
		l.tail = append(l.tail[:0], l.tail[n:]...)
	}
	return len(p), nil
}

// text returns the last line that is not empty.
func (l *lastLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := ""
	for line := range bytes.Lines(l.tail) {
		line := strings.TrimPrefix(strings.TrimSpace(string(line)), "benchwatch: ")
		if line != "" && !strings.HasPrefix(line, "hint: ") {
			last = line
		}
	}
	return table.Clip(table.Plain(last), 300)
}
