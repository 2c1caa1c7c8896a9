package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/ssh"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// OptionCommand is the option of a machine that ssh reads: the command that connects, with its options.
const OptionCommand = "command"

// Files that a sample needs, and those that are read once a minute: names, links and facts. Shells replace
// * and [].
const (
	sampleFiles = "/proc/stat /proc/uptime /proc/meminfo /proc/vmstat /proc/diskstats /proc/net/dev /proc/net/snmp /proc/net/netstat /proc/schedstat" +
		" /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory /proc/sys/net/netfilter/nf_conntrack_count /proc/sys/net/netfilter/nf_conntrack_max"
	factFiles = "/proc/sys/kernel/hostname /proc/sys/kernel/osrelease /etc/os-release /proc/self/mountinfo /proc/sys/vm/swappiness /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/ip_local_port_range" +
		" /proc/sys/net/ipv4/tcp_tw_reuse /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor" +
		" /sys/kernel/mm/transparent_hugepage/enabled /sys/devices/system/node/node[0-9]*/cpulist /sys/class/net/*/queues/rx-*/rps_cpus /sys/class/net/*/speed" +
		" /sys/block/*/size /sys/block/*/device/model /sys/block/*/queue/rotational /sys/block/*/queue/scheduler /sys/block/*/queue/write_cache"
	// sampleLines leaves out what is long and not used, such as a number for each interrupt.
	sampleLines = "^(cpu|ctxt |btime |pswp|Tcp|some |[0-9]| +[0-9]| *[^ ]+: *[0-9])"
)

// script answers each line of its input, a request and a number, with the lines of files after their
// names, then with the number. It is one line without single quotes or backslashes, so that a shell of
// another kind passes it to sh as it is.
const script = `LC_ALL=C; export LC_ALL; echo ` + ready + `; while read -r q n; do case $q in ` +
	`s) grep -sE "` + sampleLines + `" ` + sampleFiles + `;; ` +
	`f) grep -sE "` + sampleLines + `" ` + sampleFiles + `; grep -s "" ` + factFiles + `; grep -s "^model name" /proc/cpuinfo /dev/null;; ` +
	`esac 2>/dev/null; echo "` + end + ` $n"; done`

const (
	ready, end = "benchwatch-ready", "end"
	// connectTime limits the time for connecting, silence the time for an answer; later answers are dropped.
	connectTime = 20 * time.Second
	silence     = 10 * time.Second
	// longestBanner bounds what the other side's shell prints before the script runs.
	longestBanner = 64 << 10
)

// sshProber reads the /proc of another machine through one session of the system's ssh. What runs
// there is one shell, which waits for requests and ends with the session.
type sshProber struct {
	host    string
	command []string

	session  *ssh.Connection // nil: none
	since    time.Time       // start of the session, then its last answer
	isReady  bool
	banner   string // first line before the script ran
	received []byte
	unended  int // bytes of an answer whose end has not been received
	number   int // of the last request
	factsAt  time.Time
	facts    engine.Settings
	links    map[string]float64 // speeds in bytes per second

	nodename, release string
	previous          *reading
}

func newSSHProber(t engine.Target) (*sshProber, error) {
	p := &sshProber{host: t.Address, command: strings.Fields(t.Options[OptionCommand])}
	if len(p.command) == 0 {
		p.command = []string{"ssh"}
	}
	if err := ssh.CheckHost(p.host); err != nil {
		return nil, fmt.Errorf("%q %w", p.host, err)
	}
	return p, nil
}

// Close implements engine.Prober. It ends the session.
func (p *sshProber) Close() error {
	if p.session != nil {
		p.session.Close()
		p.session = nil
	}
	return nil
}

// Probe implements engine.Prober. Connecting may take several ticks.
func (p *sshProber) Probe(ctx context.Context) (*engine.Status, error) {
	request := "s"
	if p.session == nil || time.Since(p.factsAt) >= linkEvery {
		request = "f"
	}
	files, err := p.ask(ctx, request)
	if err != nil {
		return nil, err
	}
	r := newReading()
	if err := r.fill(files); err != nil {
		return nil, fmt.Errorf("%s has no readable /proc/stat: only Linux can be read by ssh: %w", p.host, err)
	}
	if request == "f" {
		p.factsAt, p.links = time.Now(), speeds(files, r)
		p.nodename, p.release = word(files, "/proc/sys/kernel/hostname"), word(files, "/proc/sys/kernel/osrelease")
	}
	if r.nodename, r.release = p.nodename, p.release; request == "f" {
		p.facts = facts(files, r, p.links)
	}
	r.setSpeeds(p.links)
	if before := p.previous; before != nil && max(r.booted-before.booted, before.booted-r.booted) <= 2 {
		r.booted = before.booted // the kernel computes it from its clock, rounded
	}
	if uptime, ok := number(files, "/proc/uptime"); ok {
		r.at = r.booted + uptime
	}
	r.setWaiting(files)
	out := r.status(p.previous)
	p.previous = r
	return out, nil
}

// Settings implements engine.Configured: the same settings as for the agent's own machine, at most a minute old.
func (p *sshProber) Settings(context.Context) (engine.Settings, error) {
	if p.facts == nil {
		return nil, errors.New("not connected")
	}
	return maps.Clone(p.facts), nil
}

// ask sends a request and returns its answer.
func (p *sshProber) ask(ctx context.Context, request string) (copied, error) {
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	p.number++
	p.setDeadline(ctx)
	if _, err := p.session.In.Write([]byte(request + " " + strconv.Itoa(p.number) + "\n")); err != nil {
		return nil, p.lost(err)
	}
	files := copied{}
	for {
		line, err := p.line(maxAnswer)
		if err != nil {
			return nil, p.waiting(err, silence, errSilent)
		}
		if p.unended += len(line); p.unended > maxAnswer {
			return nil, p.lost(engine.ErrTooMuch)
		}
		name, rest, found := bytes.Cut(line, []byte(":"))
		if found {
			key := string(name)
			files[key] = append(append(files[key], rest...), '\n')
			continue
		}
		if number, ok := bytes.CutPrefix(line, []byte(end+" ")); ok {
			p.since, p.unended = time.Now(), 0
			if string(number) == strconv.Itoa(p.number) {
				return files, nil
			}
			clear(files) // of a request whose time was over
		}
	}
}

// connect starts a session if there is none, and waits until the script runs there.
func (p *sshProber) connect(ctx context.Context) error {
	if p.session == nil {
		session, err := ssh.Start(p.command, p.host, "exec sh -c '"+script+"'")
		if err != nil {
			return fmt.Errorf("start ssh: %w", err)
		}
		p.session, p.since, p.isReady, p.banner, p.received, p.unended, p.previous = session, time.Now(), false, "", nil, 0, nil
	}
	p.setDeadline(ctx)
	for printed := 0; !p.isReady; {
		line, err := p.line(longestBanner)
		if err != nil {
			return p.waiting(err, connectTime, errConnecting)
		}
		if p.isReady = string(line) == ready; p.isReady {
			break
		}
		if printed += len(line); p.banner == "" {
			p.banner = table.Clip(table.Plain(string(bytes.TrimSpace(line))), 200)
		}
		if printed > longestBanner {
			return p.lost(engine.ErrTooMuch)
		}
	}
	return nil
}

func (p *sshProber) setDeadline(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = p.session.Out.SetReadDeadline(deadline) // pipes have deadlines
	}
}

// line returns the next line without its end, of at most this many bytes.
func (p *sshProber) line(longest int) ([]byte, error) {
	for {
		if i := bytes.IndexByte(p.received, '\n'); i >= 0 {
			line := p.received[:i]
			p.received = p.received[i+1:]
			return line, nil
		}
		if len(p.received) > longest {
			return nil, engine.ErrTooMuch
		}
		p.received = slices.Grow(p.received, 16<<10)
		n, err := p.session.Out.Read(p.received[len(p.received):cap(p.received)])
		p.received = p.received[:len(p.received)+n]
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// errConnecting and errSilent are the errors of a tick after which the session continues.
var errConnecting, errSilent = errors.New("still connecting"), errors.New("no answer yet")

// waiting returns the error for a tick without an answer. A session that is silent for longer than
// limit is ended.
func (p *sshProber) waiting(err error, limit time.Duration, reason error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return p.lost(err)
	case time.Since(p.since) > limit:
		return p.lost(reason)
	}
	return fmt.Errorf("ssh %s: %w", p.host, reason)
}

// lost ends the session and returns the reason: the last output of ssh, or else of the shell there.
func (p *sshProber) lost(err error) error {
	session, banner, wasReady := p.session, p.banner, p.isReady
	_ = p.Close() // it has no error; all output has arrived afterwards
	p.isReady, p.factsAt, p.facts = false, time.Time{}, nil
	text := table.Clip(table.Plain(session.Printed()), 300)
	switch {
	case errors.Is(err, engine.ErrTooMuch) && (wasReady || banner == ""):
	case text != "":
		if hint := ssh.Hint(p.host, text); hint != "" {
			text += "; " + hint
		}
		return fmt.Errorf("ssh %s: %s", p.host, text)
	case !wasReady && banner != "":
		return fmt.Errorf("ssh %s: the shell there does not run sh, it printed %q", p.host, banner)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("ssh %s: the session ended", p.host)
	}
	return fmt.Errorf("ssh %s: %w", p.host, err)
}

// copied are files of another machine by their paths.
type copied map[string][]byte

func (c copied) read(name string) ([]byte, error) {
	text, found := c[name]
	if !found {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return text, nil
}

// glob returns the files and folders that match, as far as files in them were copied.
func (c copied) glob(pattern string) []string {
	found := map[string]bool{}
	depth := strings.Count(pattern, "/") + 1
	for name := range c {
		parts := strings.SplitN(name, "/", depth+1)
		head := strings.Join(parts[:min(depth, len(parts))], "/")
		if ok, err := path.Match(pattern, head); ok && err == nil {
			found[head] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
