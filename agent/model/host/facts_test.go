package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// TestFacts guards the facts that every Linux has.
func TestFacts(t *testing.T) {
	p := open(t, Procfs, "")
	probe(t, p)
	facts, err := p.(engine.Configured).Settings(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kernel", "cpu_cores", "memory_bytes", "vm.swappiness", "net.core.somaxconn"} {
		if facts[name] == "" {
			t.Errorf("no %s in %v", name, facts)
		}
	}
	if facts["filesystem_/"] == "" {
		t.Errorf("no file system of / in %v", facts)
	}
	if got := chosen("always [madvise] never"); got != "madvise" {
		t.Errorf("%q is chosen", got)
	}
}

// TestFileSystems guards that only disks count, each once, and / always.
func TestFileSystems(t *testing.T) {
	got := fileSystems(`22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda1 rw,discard
28 27 254:0 /var/lib /mnt/part rw,relatime - ext4 /dev/vda1 rw,discard
29 27 254:16 / /data rw,noatime - xfs /dev/vdb rw,logbufs=8
30 1 0:40 / /dev/shm rw - tmpfs tmpfs rw
half a line
`)
	want := map[string]string{"/": "ext4 on /dev/vda1 rw,relatime,discard", "/data": "xfs on /dev/vdb rw,noatime,logbufs=8"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := fileSystems("27 1 0:90 / / rw,relatime - overlay overlay rw"); got["/"] != "overlay on overlay rw,relatime" {
		t.Errorf("in a container: %v", got)
	}
}

// TestReceiveQueues guards which interfaces have one queue alone.
func TestReceiveQueues(t *testing.T) {
	net := t.TempDir()
	for path, mask := range map[string]string{"eth0/queues/rx-0": "0", "eth1/queues/rx-0": "00000000,0000000f", "eth2/queues/rx-0": "0", "eth2/queues/rx-1": "0", "lo/queues/rx-0": "0"} {
		folder := filepath.Join(net, path)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "rps_cpus"), []byte(mask+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(map[string]string{"eth0": OneQueue, "eth1": "1, RPS", "eth2": "2"}, receiveQueues(new(files), net)); d != "" {
		t.Error(d)
	}
}

// TestProcessLimits guards that the limits belong to that process.
func TestProcessLimits(t *testing.T) {
	cmd := exec.Command("sh", "-c", "ulimit -n 77; echo; read line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got := ProcessLimits(cmd.Process.Pid); got[OpenFiles] != "77" || got[Processes] == "" {
		t.Errorf("%v", got)
	}
	in.Close()
	_ = cmd.Wait() // read fails at the end of its input
	if got := ProcessLimits(cmd.Process.Pid); got != nil {
		t.Errorf("of a process that has ended: %v", got)
	}
}
