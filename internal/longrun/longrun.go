// Package longrun writes run directories of any length, for tests and benchmarks of their readers.
package longrun

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Run describes the content of a run directory.
type Run struct {
	ID string
	// Intervals is the number of one-second intervals. During the first Ticks of them the Targets
	// and the machine are sampled, too.
	Intervals, Ticks, Targets int
}

// Start is when the runs began.
var Start = time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

// Throughput returns the transactions per second of an interval. It is Spike once, at two thirds of
// the run.
func (r *Run) Throughput(second int) float64 {
	if second == r.Intervals*2/3 {
		return Spike
	}
	return math.Round(100*(900+50*math.Sin(float64(second)/900)+float64(second*7919%100)/10)) / 100
}

// Spike is an exceptional throughput.
const Spike = 4321

// Write writes the directory of a run that has ended.
func (r *Run) Write(dataDir string) (rundir.Directory, error) {
	end := Start.Add(time.Duration(r.Intervals) * time.Second)
	dir, claim, err := rundir.CreateWith(dataDir, rundir.Meta{
		ID: r.ID, Title: "a long run",
		Benchmark: rundir.Benchmark{Tool: "sysbench", ReportIntervalSeconds: 1, Threads: 16},
		Timing:    rundir.Timing{StartedAt: Start, ClockStartedAt: &Start},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	}, func(d rundir.Directory) error {
		if err := r.writeOutput(d.Path(rundir.StdoutFile)); err != nil {
			return err
		}
		return r.writeSamples(d)
	})
	if err == nil {
		claim.Release()
	}
	return dir, err
}

func (r *Run) writeOutput(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	fmt.Fprint(w, "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\n"+
		"Report intermediate results every 1 second(s)\n\nThreads started!\n\n")
	total := 0.0
	for i := 1; i <= r.Intervals; i++ {
		tps := r.Throughput(i)
		total += tps
		fmt.Fprintf(w, "[ %ds ] thds: 16 tps: %.2f qps: %.2f (r/w/o: %.2f/%.2f/%.2f) lat (ms,95%%): %.2f err/s: 0.00 reconn/s: 0.00\n",
			i, tps, 20*tps, 14*tps, 4*tps, 2*tps, 16000/tps)
	}
	fmt.Fprintf(w, "SQL statistics:\n    transactions:                        %.0f (%.2f per sec.)\n\nGeneral statistics:\n"+
		"    total time:                          %d.0000s\n    total number of events:              %.0f\n\n",
		total, total/float64(max(1, r.Intervals)), r.Intervals, total)
	return w.Flush()
}

// writeSamples records the servers with all values without labels in the shared vocabulary.
func (r *Run) writeSamples(d rundir.Directory) error {
	recorder := record.NewRecorder(d, Start)
	defer recorder.Close()
	targets := make([]engine.Target, r.Targets)
	for i := range targets {
		targets[i] = engine.Target{Name: fmt.Sprintf("db%d", i+1), Engine: "mysql", Cluster: "blue"}
	}
	metrics := slices.DeleteFunc(measure.Metrics(), func(m *measure.Metric) bool {
		return len(m.Labels) > 0 || m == engine.Up || m == engine.RestartsTotal
	})
	metrics = metrics[:min(80, len(metrics))]
	for second := 1; second <= r.Ticks; second++ {
		at := Start.Add(time.Duration(second) * time.Second)
		f := engine.Frame{Tick: at, Interval: time.Second}
		for i := range targets {
			status := &engine.Status{Version: "8.4.3", Flavour: "mysql", Role: "primary"}
			for n, m := range metrics {
				v := float64(second * 7919 % (10 + n))
				if m.Kind == measure.Counter {
					v += float64(second * (1000 + n))
				}
				status.Set(m, v)
			}
			f.Samples = append(f.Samples, engine.Sample{
				Target: &targets[i], Tick: at, Asked: at.Add(time.Millisecond), Answered: at.Add(3 * time.Millisecond), Status: status,
			})
		}
		if err := recorder.Record(f); err != nil {
			return err
		}
	}
	return nil
}
