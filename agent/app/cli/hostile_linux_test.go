package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// evil is text that would harm a terminal, a page, Markdown, a spreadsheet and Prometheus' format.
const evil = "=1+2|<script>alert(1)</script>\x1b]0;owned\x07\x1b[2J\u202e[a](javascript:x)`\"'\\"

// TestHostileOutput: the texts of a tool, a user or a run of another user do no harm where they are shown. The tool's
// output on the terminal is unchanged.
func TestHostileOutput(t *testing.T) {
	root := t.TempDir()
	tool := "#!/bin/sh\ncat output\ncat output >&2\nexit 1\n"
	output := evil + "\nFATAL: " + evil + "\n[ 1s ] thds: 4 tps: 10.00 qps: 10.00 (r/w/o: 0.00/10.00/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00\n" + strings.Repeat(evil, 20000) + "\n"
	for name, text := range map[string]string{"sysbench": tool, "output": output} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (out, err string) {
		cmd := exec.Command("benchwatch", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "PATH="+root+":"+os.Getenv("PATH"), "BENCHWATCH_DATA_DIR="+filepath.Join(root, "data"))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		data, _ := cmd.Output() // some fail
		return string(data), stderr.String()
	}
	plain := func(what, text string) {
		t.Helper()
		for _, r := range text {
			forPrograms := strings.Contains(what, "json") || strings.Contains(what, "openmetrics") || strings.Contains(what, "parse")
			if r != '\n' && r != '\t' && unicode.IsControl(r) || r == '\u202e' && !forPrograms {
				t.Fatalf("%s has %U: %.300q", what, r, text)
			}
		}
	}
	out, notices := run("run", "--run-id=r", "--linger=0s", "--drain-timeout=1s", "--title="+evil, "--label=note="+evil, "--", "sysbench", evil, "run")
	if out != output {
		t.Errorf("the tool's output changed: %d bytes of %d", len(out), len(output))
	}
	plain("notices", strings.ReplaceAll(notices, output, ""))
	if data, err := os.ReadFile(filepath.Join(root, "data/runs/r", rundir.StdoutFile)); err != nil || string(data) != output {
		t.Errorf("the tool's output is stored as %d bytes of %d: %v", len(data), len(output), err)
	}
	run("mark", "--run=r", "--tag=a="+evil, evil)
	for _, args := range [][]string{
		{"runs"}, {"compare", "r", "r"}, {"compare", "--format=markdown", "r", "r"}, {"report", "--format=markdown", "r"}, {"report", "--format=html", "r"},
		{"parse", "--tool=sysbench", "output"}, {"export", "--format=openmetrics", "r"}, {"runs", "--json"}, {"report", "--format=json", "r"}, {"export", "--format=json", "r"},
		{"report", evil}, {"runs", "rm", "--yes", evil}, {"run", "--tool=" + evil, "--", "true"}, {"run", "--cluster=" + evil, "--", "true"}, {evil}, {"status", "--config.file=" + evil},
	} {
		out, err := run(args...)
		what := fmt.Sprintf("%.40q", args)
		plain(what, out)
		plain(what+" (stderr)", err)
		if markup := strings.Contains(what, "html") || strings.Contains(what, "markdown"); markup && strings.Contains(strings.ReplaceAll(out, `\<`, ""), "<script>alert") {
			t.Errorf("%s has a script", what)
		}
	}
	for _, args := range [][]string{{"report", "--format=csv", "r"}, {"export", "--format=csv", "r"}} {
		out, _ := run(args...)
		plain(args[0], out)
		r := csv.NewReader(strings.NewReader(out))
		r.FieldsPerRecord = -1
		records, err := r.ReadAll()
		if err != nil || len(records) < 2 {
			t.Fatalf("%q: %v, %d records", args, err, len(records))
		}
		for _, record := range records {
			for _, cell := range record {
				if strings.IndexAny(cell, "=+@") == 0 {
					t.Errorf("%q: a formula %q", args, cell)
				}
			}
		}
	}
}

// TestFileModes: with no umask at all, only the owner can read the tool's output, and
// nobody else can write anything.
func TestFileModes(t *testing.T) {
	root := t.TempDir()
	cmd := exec.Command("sh", "-c", "umask 000; exec benchwatch run --run-id=r --linger=0s --drain-timeout=1s --data-dir=data -- sh -c 'echo x; echo y >&2'")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(root, "data"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		mode := info.Mode().Perm()
		inRun := strings.HasPrefix(path, filepath.Join(root, "data/runs/r"))
		switch name := d.Name(); {
		case name == rundir.StdoutFile || name == rundir.StderrFile:
			if mode != 0o600 {
				t.Errorf("%s is %s", path, mode)
			}
		case inRun && mode&0o022 != 0:
			t.Errorf("%s is %s", path, mode)
		}
		return nil
	})
	if err != nil || files < 5 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestSlowReaders: connections of clients that never read the answers are closed, and other clients are answered
// meanwhile.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	address, _ := serveAgent(t, "127.0.0.1:0", nil)
	begun := time.Now()
	ask := strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 5000)
	var slow []*net.TCPConn
	for range 8 {
		conn := send(t, address, "").(*net.TCPConn)
		if err := conn.SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, ask) }() // until it is closed
		slow = append(slow, conn)
	}
	for range 20 {
		if status, _ := answerOf(t, send(t, address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), time.Minute); status != http.StatusOK {
			t.Fatalf("a scrape beside slow readers got %d", status)
		}
	}
	// Ten seconds after the buffers are full, which takes a busy machine longer.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i, conn := range slow {
		for isOpen(t, conn) {
			if <-tick.C; time.Since(begun) > 100*time.Second {
				t.Fatalf("connection %d is not closed after %s", i, time.Since(begun))
			}
		}
	}
}

// isOpen reports whether the other side has not closed a connection, without reading
// from it.
func isOpen(t *testing.T, conn *net.TCPConn) bool {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	var infoErr error
	if err := raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil || infoErr != nil {
		t.Fatal(err, infoErr)
	}
	return info.State == unix.BPF_TCP_ESTABLISHED
}

// TestPageHeaders: no page of another origin can frame the agent's pages, and these
// load nothing from elsewhere.
func TestPageHeaders(t *testing.T) {
	t.Parallel()
	address, _ := serveAgent(t, "127.0.0.1:0", nil)
	for _, path := range []string{"/", "/page.js", "/page.css", "/api/runs", "/api/nothing"} {
		res, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		policy := res.Header.Get("Content-Security-Policy")
		if path == "/" && (!strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http")) {
			t.Errorf("%s: %q", path, policy)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: a browser may guess what it is", path)
		}
	}
}
