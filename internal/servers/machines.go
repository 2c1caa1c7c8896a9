package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Machines are the hosts gen1, gen2 and so on for ssh: one sshd each on loopback, with its own key
// and data directory. All of them are this machine.
type Machines struct {
	Dir string
	N   int
}

// StartMachines starts n machines in a new folder, on the ports after port. path is the PATH of
// their shells. With attached they end with the caller.
func StartMachines(ctx context.Context, dir string, n, port int, path string, attached bool) (*Machines, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	m := &Machines{dir, n}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start machines: %w", err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // required by sshd
		return nil, fmt.Errorf("start machines: %w", err)
	}
	if err := m.key(ctx, "key"); err != nil {
		return nil, err
	}
	var config strings.Builder
	for i := 1; i <= n; i++ {
		if err := m.key(ctx, fmt.Sprintf("host%d", i)); err != nil {
			return nil, err
		}
		fmt.Fprintf(&config, "Host gen%d\n  HostName 127.0.0.1\n  Port %d\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking accept-new\n",
			i, port+i, m.file("key"), m.file("known_hosts"))
		sshd := fmt.Sprintf(
			"Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nUsePAM no\nStrictModes "+
				"no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups "+
				"100\nSetEnv BENCHWATCH_DATA_DIR=%s PATH=%s\n",
			port+i, m.file(fmt.Sprintf("host%d", i)), m.file("key.pub"), m.Data(i), path)
		if err := writeFile(m.file(fmt.Sprintf("sshd%d", i)), sshd, 0o644); err != nil {
			return nil, err
		}
	}
	if err := writeFile(m.Config(), config.String(), 0o644); err != nil {
		return nil, err
	}
	for i := 1; i <= n; i++ {
		if err := m.Start(ctx, i, attached); err != nil {
			return nil, errors.Join(err, m.Stop())
		}
	}
	return m, nil
}

// OpenMachines returns the machines in a folder.
func OpenMachines(dir string) (*Machines, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	hosts, err := filepath.Glob(filepath.Join(dir, "sshd*.pid"))
	if err != nil || len(hosts) == 0 {
		return nil, fmt.Errorf("no machines in %s", dir)
	}
	return &Machines{dir, len(hosts)}, nil
}

func (m *Machines) file(name string) string { return filepath.Join(m.Dir, name) }

// Config returns the path of the configuration for ssh -F.
func (m *Machines) Config() string { return m.file("config") }

// Data returns the data directory of a machine.
func (m *Machines) Data(i int) string { return m.file(fmt.Sprintf("gen%d", i)) }

func (m *Machines) key(ctx context.Context, name string) error {
	out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", m.file(name)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make a key for ssh: %w: %s", err, out)
	}
	return nil
}

func (m *Machines) process(i int) process { return process(m.file(fmt.Sprintf("sshd%d.pid", i))) }

// Start starts a machine's sshd and waits until it answers.
func (m *Machines) Start(ctx context.Context, i int, attached bool) error {
	config := m.file(fmt.Sprintf("sshd%d", i))
	if err := m.process(i).start(program{args: []string{"sshd", "-D", "-e", "-f", config},
		log: config + ".log", attached: attached}); err != nil {
		return err
	}
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	port, err := strconv.Atoi(strings.TrimPrefix(first, "Port "))
	if err != nil {
		return err
	}
	err = m.process(i).await(ctx, 20*time.Second, config+".log", func(ctx context.Context) bool {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(port))
		return err == nil && c.Close() == nil
	})
	if err != nil {
		return fmt.Errorf("sshd %d: %w", i, err)
	}
	return nil
}

// Disconnect ends a machine's sshd with all of its connections. Processes started through them
// continue.
func (m *Machines) Disconnect(i int) error {
	pid := m.process(i).pid()
	if pid == 0 {
		return nil
	}
	for _, child := range descendants(pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); err == nil && strings.HasPrefix(string(name), "sshd") {
			if p, err := os.FindProcess(child); err == nil {
				_ = p.Kill()
			}
		}
	}
	return m.process(i).stop(10 * time.Second)
}

// Sessions returns the number of processes of the connections to a machine.
func (m *Machines) Sessions(i int) int {
	if pid := m.process(i).pid(); pid != 0 {
		return len(descendants(pid))
	}
	return 0
}

// descendants returns the children of a process, and their children.
func descendants(pid int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var all []int
	for word := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			all = append(append(all, child), descendants(child)...)
		}
	}
	return all
}

// Stop ends all machines.
func (m *Machines) Stop() error {
	var errs []error
	for i := 1; i <= m.N; i++ {
		errs = append(errs, m.Disconnect(i))
	}
	return errors.Join(errs...)
}
