//go:build bench

package bench

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"

	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/internal/longrun"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// BenchmarkLong measures the memory and the time of the commands and the page that read the longest runs: one of 10
// million intervals, and one of a week with three servers, whose page the agent shows.
func BenchmarkLong(b *testing.B) {
	data := b.TempDir()
	for _, r := range []longrun.Run{{ID: "intervals", Intervals: 10_000_000}, {ID: "week", Intervals: 604_800, Ticks: 604_800, Targets: 3}} {
		if _, err := r.Write(data); err != nil {
			b.Fatal(err)
		}
		for _, command := range []string{"report", "export --format=csv", "export --format=json", "export", "export --format=blocks --output=" + b.TempDir()} {
			name, _, _ := strings.Cut(strings.ReplaceAll(command, " --format=", "-"), " ")
			b.Run("run="+r.ID+"/command="+name, func(b *testing.B) {
				builds(func(program, binary string) {
					measure(b, program, func(b *testing.B) values {
						return peakOf(b, binary, append(strings.Fields(command), r.ID, "--data-dir="+data)...)
					})
				})
			})
		}
	}
	b.Run("run=week/command=page", func(b *testing.B) {
		builds(func(program, binary string) {
			measure(b, program, func(b *testing.B) values {
				address := freeAddress(b)
				d := start(b, address, "/metrics", binary, "agent", "--data-dir="+data, "--web.listen-address="+address)
				before := d.usage()
				d.get("/api/runs/week/history")
				after := d.usage()
				proc, err := procfs.NewProc(d.cmd.Process.Pid)
				if err != nil {
					b.Fatal(err)
				}
				status, err := proc.NewStatus()
				return values{"MiB": float64(must(b, status, err).VmHWM) / (1 << 20), "cpu-s": after - before}
			})
		})
	})
}

// peakOf returns the maximum resident memory of a program and its CPU time. It discards the output.
func peakOf(b *testing.B, binary string, args ...string) values {
	b.Helper()
	cmd := exec.Command(binary, args...)
	var messages strings.Builder
	cmd.Stderr = &messages
	if err := errors.Join(servers.StartAttached(cmd), cmd.Wait()); err != nil {
		b.Fatalf("%s: %v: %s", filepath.Base(binary), err, messages.String())
	}
	state := cmd.ProcessState
	return values{"MiB": float64(state.SysUsage().(*syscall.Rusage).Maxrss) / 1024, "cpu-s": (state.UserTime() + state.SystemTime()).Seconds()}
}
