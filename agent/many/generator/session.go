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
	// answerTime limits the time for an answer, and for connecting.
	answerTime = time.Minute
	// closeTime is how long ssh may take to end by itself.
	closeTime = time.Second
	// roundTrips is the number of exchanges that measure a clock; the shortest counts.
	roundTrips = 9
)

// session is a connection to a generator's machine. One goroutine uses it.
type session struct {
	host    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *os.File
	lines   *bufio.Scanner // of out
	banner  int            // bytes of lines that were not answers
	printed lastLines      // output of ssh on standard error
	exited  chan struct{}  // the process has ended
	killed  sync.Once

	// scraped: an agent follows the runs there. offset is how far its clock is ahead, uncertainty
	// half of the shortest round trip.
	scraped             bool
	offset, uncertainty time.Duration
}

// Error is why a generator can't be used, with a remedy.
type Error struct {
	Host string
	Text string
	Hint string
}

func (e *Error) Error() string { return e.Host + ": " + e.Text }

// connect opens a connection through the system's ssh, checks the version and measures
// the clock.
func connect(ctx context.Context, host string, c *rundir.Connection) (*session, error) {
	if host == "" || strings.HasPrefix(host, "-") {
		return nil, &Error{host, "is not the name of a machine", "name machines as ssh knows them: --on=gen1,gen2"}
	}
	s := &session{host: host, exited: make(chan struct{})}
	args := append([]string{}, c.SSH[1:]...)
	// ssh passes a single string to the other side's shell.
	args = append(args, "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "--", host,
		table.ShellWord(c.Benchwatch)+" group serve")
	s.cmd = exec.Command(c.SSH[0], args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end the connection
	s.cmd.Stderr = &s.printed
	s.cmd.WaitDelay = 100 * time.Millisecond // its children may keep standard error open
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var out *os.File
	if s.out, out, err = os.Pipe(); err != nil {
		return nil, err
	}
	s.lines = bufio.NewScanner(s.out)
	s.lines.Buffer(nil, mirror.LongestAnswer)
	s.cmd.Stdout = out
	err = s.cmd.Start()
	out.Close()
	if err != nil {
		s.out.Close()
		return nil, &Error{host, err.Error(), "install an ssh client, or name one with --ssh"}
	}
	go func() {
		_ = s.cmd.Wait() // the answers show how it ended
		close(s.exited)  // close waits for it
	}()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
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
		const unknown = "of an unknown version"
		return &Error{
			s.host, fmt.Sprintf("benchwatch %s is there, %s here", cmp.Or(a.Version, unknown), cmp.Or(version.Version, unknown)),
			"install the same version on all machines",
		}
	}
	s.scraped = a.Scraped
	return s.measureClock(ctx)
}

// measureClock asks for the time repeatedly. The shortest round trip gives the best value.
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

// ask sends a request and returns its answer. After a mirror.AwayError the connection is closed.
func (s *session) ask(ctx context.Context, r *request) (answer, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	if len(line) >= mirror.LongestAnswer {
		return answer{}, &Error{s.host, fmt.Sprintf("the command line has %d bytes, at most %d are possible", len(line), mirror.LongestAnswer), ""}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, s.kill) // without a reader, Write blocks
	_, err = s.in.Write(append(line, '\n'))
	stop()
	if err != nil {
		return answer{}, s.lost(ctx, err)
	}
	a, err := s.receive(ctx)
	if err == nil && a.Error != "" {
		err = &Error{s.host, a.Error, a.Hint}
	}
	return a, err
}

// errNoAnswer is matched by the errors of a machine that prints something other than answers.
var errNoAnswer = errors.New("no answer of benchwatch")

// receive returns the next answer. Before the first one, the other side's shell may print a short
// banner.
func (s *session) receive(ctx context.Context) (answer, error) {
	defer context.AfterFunc(ctx, s.kill)()
	for s.lines.Scan() {
		var a answer
		if json.Unmarshal(s.lines.Bytes(), &a) == nil {
			return a, nil
		}
		if s.banner += len(s.lines.Bytes()) + 1; s.banner > longestBanner {
			return answer{}, s.lost(ctx, fmt.Errorf("it prints something else than the answers of benchwatch, more than %d KiB: %w", longestBanner>>10, errNoAnswer))
		}
	}
	if errors.Is(s.lines.Err(), bufio.ErrTooLong) {
		return answer{}, s.lost(ctx, fmt.Errorf("it prints a line of more than %d MiB: %w", mirror.LongestAnswer>>20, errNoAnswer))
	}
	return answer{}, s.lost(ctx, errors.New("the connection was closed"))
}

// lost closes the connection and returns the reason: the last output of ssh, if that may be the
// cause.
func (s *session) lost(ctx context.Context, err error) error {
	ended := ctx.Err()
	s.close() // so that all of its output has arrived
	switch text := s.printed.text(); {
	case errors.Is(err, errNoAnswer):
	case text != "":
		err = errors.New(text)
	case errors.Is(ended, context.DeadlineExceeded):
		err = errors.New("no answer")
	case ended != nil:
		err = ended
	}
	return &mirror.AwayError{Err: err}
}

// close closes the connection. What was started there continues.
func (s *session) close() {
	s.in.Close()
	select {
	case <-s.exited:
	case <-time.After(closeTime):
	}
	s.kill()
	<-s.exited
}

// kill ends ssh and its local children at once.
func (s *session) kill() {
	s.killed.Do(func() {
		select {
		case <-s.exited:
		default:
			_ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL)
		}
		s.out.Close() // a process that left its process group may have the other end open
		s.in.Close()
	})
}

// lastLines keeps the end of a program's output.
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

// text returns the last non-empty line.
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
