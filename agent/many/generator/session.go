package generator

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/base/ssh"
	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// answerTime limits the time for an answer, and for connecting.
	answerTime = time.Minute
	// roundTrips is the number of exchanges that measure a clock; the shortest counts.
	roundTrips = 9
)

// session is a connection to a generator's machine. One goroutine uses it.
type session struct {
	*ssh.Connection
	host   string
	lines  *bufio.Scanner // of the command's output
	banner int            // bytes of lines that were not answers

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
	if err := ssh.CheckHost(host); err != nil {
		return nil, &Error{host, err.Error(), "name machines as ssh knows them: --on=gen1,gen2"}
	}
	// ssh passes a single string to the other side's shell.
	connection, err := ssh.Start(c.SSH, host, table.ShellWord(c.Benchwatch)+" group serve")
	if err != nil {
		return nil, &Error{host, err.Error(), "install an ssh client, or name one with --ssh"}
	}
	s := &session{Connection: connection, host: host, lines: bufio.NewScanner(connection.Out)}
	s.lines.Buffer(nil, mirror.LongestAnswer)
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := s.hello(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) hello(ctx context.Context) error {
	a, err := s.receive(ctx)
	if err != nil {
		text := s.printed()
		hint := ssh.Hint(s.host, text)
		switch {
		case hint != "":
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
		return answer{}, &Error{s.host,
			fmt.Sprintf("the command line has %d bytes, at most %d are possible", len(line), mirror.LongestAnswer), ""}
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, s.Kill) // without a reader, Write blocks
	_, err = s.In.Write(append(line, '\n'))
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
	defer context.AfterFunc(ctx, s.Kill)()
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
	s.Close() // so that all of its output has arrived
	switch text := s.printed(); {
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

// printed returns the last output of ssh on standard error.
func (s *session) printed() string { return table.Clip(table.Plain(s.Printed()), 300) }
