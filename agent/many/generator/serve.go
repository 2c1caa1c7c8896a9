package generator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/version"
	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// The types below are sent over the connection to a generator's machine, one JSON object per line:
// requests to Serve's standard input, one answer to each from its standard output. No part of a
// command line passes through a shell.

// request is one of these: read the clock, prepare a run, start or end one, send it a signal, or
// return its new data by the protocol of package mirror.
type request struct {
	// Prepare starts a `benchwatch run` that waits for its start.
	Prepare *Job `json:"prepare,omitempty"`
	// Run is the id of the run to which the fields below refer.
	Run string `json:"run,omitempty"`
	// StartAt is when its tool starts by that machine's clock, in nanoseconds.
	StartAt int64 `json:"start_at,omitempty"`
	// Have describes the copy of the run.
	Have mirror.Have `json:"have"`
	// Signal is sent to its tool.
	Signal int `json:"signal,omitempty"`
	// Abandon cancels the start and ends the run. A run whose tool has not started is deleted.
	Abandon bool `json:"abandon,omitempty"`
}

// Job is a run to prepare.
type Job struct {
	Group      string `json:"group"`
	Generator  int    `json:"generator"`
	Generators int    `json:"generators"`
	// Arguments are flags of `benchwatch run` in addition to the group's flags.
	Arguments []string `json:"arguments"`
	Command   []string `json:"command"`
}

// answer is the result of a request, or an error.
type answer struct {
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Version is benchwatch's version, sent first without a request.
	Version string `json:"version,omitempty"`
	// Clock is the machine's wall clock in nanoseconds.
	Clock int64 `json:"clock,omitempty"`
	// Scraped: an agent follows the runs there.
	Scraped bool `json:"scraped,omitempty"`
	mirror.News
}

// mirrored are the files of a run that are copied. They do not include markers, since the group has
// its own.
var mirrored = slices.Concat(mirror.Outputs, mirror.Records)

// longestBanner is the maximum output of the other side's shell, in bytes.
const longestBanner = 256 << 10

// Server answers, on a generator's machine, the machine that starts a group. What it starts
// continues after the server ends.
type Server struct {
	DataDir string
	Tools   tool.Set
	// Run is the program and the first arguments of a `benchwatch run`.
	Run []string
}

// Serve answers requests until in ends.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	to := json.NewEncoder(out)
	_, scraped := rundir.Agent(s.DataDir)
	if err := to.Encode(answer{Version: version.Version, Scraped: scraped}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mirror.LongestAnswer)
	for lines.Scan() {
		var r request
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			a.Error = "a request that is no JSON: " + err.Error()
		} else {
			a = s.answer(ctx, &r)
		}
		a.Clock = time.Now().UnixNano()
		if err := to.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (s *Server) answer(ctx context.Context, r *request) (a answer) {
	fail := func(err error) answer {
		hint := ""
		if own, ok := errors.AsType[*hinted](err); ok {
			hint = own.hint
		}
		return answer{Error: err.Error(), Hint: hint}
	}
	if r.Prepare != nil {
		if err := s.prepare(ctx, r.Prepare); err != nil {
			return fail(err)
		}
		return a
	}
	if r.Run == "" {
		return a // the clock
	}
	if err := rundir.CheckID(r.Run); err != nil {
		return fail(err)
	}
	dir := rundir.At(s.DataDir, r.Run)
	if _, err := os.Lstat(string(dir)); err == nil && !rundir.Own(string(dir)) {
		return fail(fmt.Errorf("run %s belongs to another user", r.Run)) // it names processes
	}
	var err error
	switch {
	case r.StartAt != 0:
		at := time.Unix(0, r.StartAt).UTC()
		_, err = dir.Update(func(m *rundir.Meta) {
			if m.IsGenerator() {
				m.Group.StartAt = &at
			}
		})
	case r.Abandon:
		_, err = dir.Update(func(m *rundir.Meta) {
			if m.IsGenerator() && m.PID == 0 {
				m.Group.StartAt = nil
			}
		})
		err = errors.Join(err, signalRun(dir, syscall.SIGTERM))
	case r.Signal != 0:
		err = signalRun(dir, syscall.Signal(r.Signal))
	default:
		a.News, err = s.news(ctx, dir, r)
	}
	if errors.Is(err, fs.ErrNotExist) && dir.Removed() {
		return answer{News: mirror.News{Gone: true}}
	}
	if err != nil {
		return fail(err)
	}
	return a
}

// hinted is an error with a remedy.
type hinted struct {
	text, hint string
}

func (h *hinted) Error() string { return h.text }

// prepare starts a `benchwatch run` in its own session and waits until it is ready to start its
// tool.
func (s *Server) prepare(ctx context.Context, j *Job) error {
	if err := rundir.CheckGroup(j.Group, j.Generators); err != nil {
		return err
	}
	dir := rundir.At(s.DataDir, rundir.GeneratorID(j.Group, j.Generator))
	if _, err := dir.Load(); err == nil {
		return &hinted{fmt.Sprintf("generator %d of group %s has a run already", j.Generator, j.Group), "choose another --group"}
	}
	logs := filepath.Join(s.DataDir, "groups")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	path := filepath.Join(logs, dir.ID()+".log")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // not a link of another user
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{}, s.Run[1:]...)
	args = append(args, "--data-dir="+s.DataDir, "--group="+j.Group, fmt.Sprintf("--generators=%d", j.Generators),
		fmt.Sprintf("--generator=%d", j.Generator), "--await-start", "--linger=0s")
	args = append(args, j.Arguments...)
	args = append(append(args, "--"), j.Command...)
	cmd := exec.Command(s.Run[0], args...)
	cmd.Stdout, cmd.Stderr = nil, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the connection
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start benchwatch run: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process, which outlives this one
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return lastNotice(log, err)
		case <-tick.C:
			if m, err := dir.Load(); err == nil && m.Group != nil && m.Group.Ready {
				return nil
			}
		}
	}
}

// lastNotice returns the last output of a failed `benchwatch run`.
func lastNotice(log *os.File, err error) error {
	data, _ := io.ReadAll(io.NewSectionReader(log, 0, 1<<16))
	h := &hinted{text: "benchwatch run ended before its start"}
	if err != nil {
		h.text += ": " + err.Error()
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "benchwatch: "); ok && !strings.HasPrefix(text, "note: ") {
			h.text = table.Clip(text, 300)
		} else if hint, ok := strings.CutPrefix(line, "hint: "); ok {
			h.hint = hint
		}
	}
	return h
}

// news returns the data of a run that the other side lacks.
func (s *Server) news(ctx context.Context, dir rundir.Directory, r *request) (mirror.News, error) {
	meta, err := dir.Load()
	if err != nil {
		return mirror.News{}, err
	}
	if meta.Closed() || !dir.Busy(&meta) {
		// Its wrapper may have been killed.
		if meta, err = live.CloseOrphan(ctx, dir, s.Tools); err != nil {
			return mirror.News{}, err
		}
	}
	return mirror.Read(dir, &meta, mirrored, &r.Have)
}

// signalRun sends a signal to a run: to its wrapper, which records that it was asked to end, or,
// without a wrapper, to the tool and its children.
func signalRun(dir rundir.Directory, sig syscall.Signal) error {
	meta, err := dir.Load()
	if err != nil || meta.Closed() {
		return err
	}
	if meta.Group != nil && meta.Group.Wrapper.Alive() {
		return unix.Kill(meta.Group.Wrapper.PID, sig)
	}
	if meta.PID > 1 && dir.Running(&meta) && meta.ToolAlive() {
		return unix.Kill(-meta.PID, sig)
	}
	return nil
}
