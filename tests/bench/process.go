package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// daemon is a program under measurement.
type daemon struct {
	cmd     *exec.Cmd
	address string
}

// startDaemon starts a program and waits until path answers at address.
func startDaemon(address, path, name string, args ...string) (*daemon, error) {
	d := &daemon{cmd: exec.Command(name, args...), address: address}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err := d.get(path)
		if err == nil {
			return d, nil
		}
		if time.Now().After(deadline) {
			d.stop()
			return nil, fmt.Errorf("%s does not answer: %w", filepath.Base(name), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(os.Interrupt)
	ended := make(chan struct{})
	go func() {
		_ = d.cmd.Wait() // its status does not matter
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = d.cmd.Process.Kill()
		<-ended
	}
}

// get reads a page as Prometheus would.
func (d *daemon) get(path string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+d.address+path, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", errors.New(res.Status)
	}
	return string(body), nil
}

// usage is CPU seconds so far and resident bytes now.
func (d *daemon) usage() (cpu float64, resident int, err error) {
	stat, err := statOf(d.cmd.Process.Pid)
	return stat.CPUTime(), stat.ResidentMemory(), err
}

func cpuOfProcess(pid int) (float64, error) {
	stat, err := statOf(pid)
	return stat.CPUTime(), err
}

func statOf(pid int) (procfs.ProcStat, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return p.Stat()
}

// cpuOf returns the CPU seconds of a program that runs to its end.
func cpuOf(name string, args ...string) (float64, error) {
	cmd := exec.Command(name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, stderr.String())
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// agent starts an agent with a configuration, whose data directory is new.
func (b *bench) agent(config string) (*daemon, string, error) {
	dir, err := os.MkdirTemp(b.dir, "agent")
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "benchwatch.yml")
	if err := os.WriteFile(file, []byte("data_dir: "+dir+"/data\n"+config), 0o600); err != nil {
		return nil, "", err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	d, err := startDaemon(address, "/-/ready", b.binary, "agent", "--config.file="+file, "--web.listen-address="+address, "--log.level=error")
	return d, file, err
}

// targets names n targets over the three servers.
func (b *bench) targets(n int) string {
	var s strings.Builder
	s.WriteString("targets:\n")
	for i := range n {
		b.target(&s, fmt.Sprintf("t%d", i+1), fmt.Sprintf("127.0.0.1:%d", b.port+i%3+1))
	}
	return s.String()
}

func (b *bench) target(s *strings.Builder, name, address string) {
	fmt.Fprintf(s, "  - {name: %s, engine: mysql, address: '%s', user: monitor, password_file: %s/monitor.password}\n", name, address, b.servers)
}
