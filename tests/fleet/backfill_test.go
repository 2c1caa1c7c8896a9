//go:build fleet

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// oldLog is a log of sysbench whose run began some time ago.
type oldLog struct {
	path    string
	began   time.Time
	seconds int
}

func newOldLog(t *testing.T, name string, ago time.Duration, seconds int) oldLog {
	t.Helper()
	l := oldLog{filepath.Join(t.TempDir(), name), time.Now().Add(-ago).Truncate(time.Second), seconds}
	var b strings.Builder
	b.WriteString("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\n\nThreads started!\n\n")
	for i := 1; i <= seconds; i++ {
		fmt.Fprintf(&b, "[ %ds ] thds: 16 tps: %.2f qps: %.2f (r/w/o: 1.00/1.00/0.00) lat (ms,95%%): 2.50 err/s: 0.00 reconn/s: 0.00\n", i, l.tps(i), 2*l.tps(i))
	}
	write(t, l.path, b.String())
	return l
}

func (l *oldLog) tps(i int) float64 { return float64(1000+i%97) + 0.25 }

// export runs `benchwatch export` on the log.
func (l *oldLog) export(t *testing.T, binary string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, append([]string{
		"export", "--data-dir=" + t.TempDir(), "--start=" + l.began.UTC().Format(time.RFC3339), l.path,
	}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("export %v: %v\n%s", args, err, out)
	}
}

// check guards that the run is there, each value once and without labels of the engine,
// and that its series end with it.
func (l *oldLog) check(t *testing.T, p agents.Prometheus, limit time.Duration) {
	t.Helper()
	end := l.began.Add(time.Duration(l.seconds) * time.Second)
	sum := 0.0
	for i := 1; i <= l.seconds; i++ {
		sum += l.tps(i)
	}
	run := `{run=~"` + l.began.UTC().Format("20060102T150405Z") + `.*"`
	agents.Wait(t, limit, "the run of "+l.path, func() error {
		for expression, want := range map[string][]float64{
			`count_over_time(benchwatch_run_operations_per_second` + run + `,op="transaction"}[1h] @ %d)`: {float64(l.seconds)},
			`sum_over_time(benchwatch_run_operations_per_second` + run + `,op="transaction"}[1h] @ %d)`:   {sum},
			`benchwatch_run_info` + run + `,tool="sysbench",threads="16"} @ %d`:                           {1},
			`benchwatch_run_operations_per_second` + run + `,op="transaction"} @ %d offset -2s`:           nil,
			run + `,__name__=~".+"} @ %d offset -10s`:                                                     nil,
		} {
			at := end.Unix()
			v, err := p.Query(fmt.Sprintf(expression, at))
			if err != nil {
				return err
			}
			if !slices.EqualFunc(v, want, equal) {
				return fmt.Errorf("%s is %v, want %v", fmt.Sprintf(expression, at), v, want)
			}
		}
		return nil
	})
	found, err := instant(p.Address, run+`,__name__=~".+"}`, end.UnixMilli())
	if err != nil || len(found) == 0 {
		t.Errorf("%d series, %v", len(found), err)
	}
	for series := range found {
		if strings.Contains(series, replicaLabel) || strings.Contains(series, "tenant_id") {
			t.Errorf("%s has a label of Thanos", series)
		}
	}
}

// TestBackfill guards that runs of the past come into Thanos: as blocks in the bucket
// and by remote write.
func TestBackfill(t *testing.T) {
	if !slices.Contains(chosen(t), thanosName) {
		t.Skip("FLEET_ENGINES is without thanos")
	}
	root, err := servers.Repository()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "benchwatch")
	if err := agents.Build(binary, "."); err != nil {
		t.Fatal(err)
	}
	th := startThanos(t, root)

	t.Run("blocks", func(t *testing.T) {
		l := newOldLog(t, "lastweek.log", 7*24*time.Hour, 1800)
		folder := t.TempDir()
		l.export(t, binary, "--format=blocks", "--output="+folder)
		th.upload(t, folder)
		th.upload(t, folder) // again changes nothing
		l.check(t, th.Prometheus, time.Minute)
		if all, err := os.ReadDir(folder); err != nil || len(all) == 0 {
			t.Error("the blocks are gone", err)
		}
	})
	t.Run("remote write", func(t *testing.T) {
		now := newOldLog(t, "now.log", 10*time.Minute, 300)
		now.export(t, binary, "--remote-write="+th.write) // samples that are newer
		l := newOldLog(t, "thismorning.log", 5*time.Hour, 1800)
		for range 2 { // again changes nothing
			l.export(t, binary, "--remote-write="+th.write)
		}
		now.check(t, th.Prometheus, time.Minute)
		// A receiver is queried for samples older than all its blocks only when its next block has them.
		l.check(t, th.Prometheus, 5*time.Minute)
	})
}
