//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// Prometheus has a run of three seconds, live and as a summary. The live series end with the
// run, marked as stale, and not five minutes later.
func TestShortRunInPrometheus(t *testing.T) {
	const id = "three-seconds"
	a := startAgent(t, env.Targets())
	p := agents.StartPrometheus(t, a.Agent)
	wrapper := a.Run(t, id, env.Load(3)...)
	if status := wrapper.Status(t, 30*time.Second); status != 0 {
		t.Fatalf("benchwatch run exited with %d", status)
	}
	a.Closed(t, id, 30*time.Second)
	a.gone(t, id)
	log := readLog(t, a.DataDir, id)
	agents.Wait(t, 10*time.Second, "summary in Prometheus", func() error {
		v, err := p.Query(fmt.Sprintf(`benchwatch_run_summary_operations_total{run=%q,op="transaction"}`, id))
		if err == nil && (len(v) != 1 || v[0] != log.total) {
			err = fmt.Errorf("have %v, want %g", v, log.total)
		}
		return err
	})
	samples, err := p.Query(fmt.Sprintf(`count_over_time(benchwatch_run_operations_per_second{run=%q,op="transaction"}[1m])`, id))
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != 1 || samples[0] < 1 {
		t.Errorf("live samples of throughput: %v", samples)
	}
	agents.Wait(t, 10*time.Second, "live series ended in Prometheus", func() error {
		v, err := p.Query(fmt.Sprintf(`benchwatch_run_active{run=%q}`, id))
		if err == nil && len(v) != 0 {
			err = fmt.Errorf("still there: %v", v)
		}
		return err
	})
}

// A condition that Prometheus evaluates ends a run, and one that it refuses keeps a run from
// starting.
func TestAbortByPrometheus(t *testing.T) {
	a := startAgent(t, env.Targets())
	p := agents.StartPrometheus(t, a.Agent)
	config, err := os.OpenFile(a.Config, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = fmt.Fprintf(config, "\nprometheus: {url: 'http://%s'}\n", p.Address)
	must(t, errors.Join(err, config.Close()))

	const id = "by-prometheus"
	const condition = `promql:benchwatch_run_operations_per_second{run="by-prometheus",op="transaction"} > 0 for 1s`
	wrapper := agents.StartCommand(t, a.Command([]string{"--run-id=" + id, "--abort-when=" + condition}, env.Load(120)...))
	if status := wrapper.Status(t, 60*time.Second); status != 5 {
		t.Fatalf("benchwatch run exited with %d:\n%s", status, wrapper.Output(t))
	}
	a.Closed(t, id, 30*time.Second)
	meta, err := rundir.At(a.DataDir, id).Load()
	must(t, err)
	if meta.Outcome != rundir.Aborted || !strings.HasPrefix(meta.Reason, condition+": ") || !strings.Contains(meta.Reason, " of benchwatch_run_operations_per_second{") {
		t.Errorf("%s: %s", meta.Outcome, meta.Reason)
	}

	const refused = "refused"
	wrapper = agents.StartCommand(t, a.Command([]string{"--run-id=" + refused, "--abort-when=promql:up =="}, env.Load(120)...))
	if status := wrapper.Status(t, 30*time.Second); status == 0 || !strings.Contains(wrapper.Output(t), "parse error") {
		t.Errorf("benchwatch run exited with %d:\n%s", status, wrapper.Output(t))
	}
	if _, err := rundir.At(a.DataDir, refused).Load(); err == nil {
		t.Error("a run was made")
	}
}
