package engine

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkSampler50 samples 50 targets of ten clusters, ten of them dead, at 20 Hz. It reports the
// cost of one tick of the sampler itself: CPU, memory, and the delay in asking the living targets.
func BenchmarkSampler50(b *testing.B) {
	const interval = 50 * time.Millisecond
	var ts []Target
	for i := range 50 {
		ts = append(ts, Target{Name: strconv.Itoa(i), Cluster: fmt.Sprint("c", i/5)})
	}
	s := NewSampler(ts, func(t Target) (Prober, error) {
		i, err := strconv.Atoi(t.Name)
		return &numbered{n: i}, err
	}, interval, Options{Logger: slog.New(slog.DiscardHandler)})
	frames, _ := s.Subscribe(10)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-frames

	var late []time.Duration
	before := cpuTime(b)
	b.ReportAllocs()
	for b.Loop() {
		f := <-frames
		for i := range f.Samples {
			if f.Samples[i].Up() {
				late = append(late, f.Samples[i].Asked.Sub(f.Tick))
			}
		}
	}
	used := cpuTime(b) - before
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	slices.Sort(late)
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/tick")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-late-µs")
	b.ReportMetric(float64(m.HeapInuse)/1e6, "heap-MB")
	b.ReportMetric(0, "ns/op")
}

func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// numbered answers at once, except for every fifth one, which never answers.
type numbered struct {
	n    int
	tick uint64
}

func (p *numbered) Probe(ctx context.Context) (*Status, error) {
	if p.n%5 == 4 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	p.tick++
	status := &Status{Replicating: true, Position: seqno{"c", p.tick * 100}}
	for range 60 {
		status.Set(QueriesTotal, float64(p.tick))
	}
	return status, nil
}

func (p *numbered) Close() error { return nil }
