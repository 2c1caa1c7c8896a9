package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

// forms are all forms in which a run's values are printed.
func forms(t *testing.T, h *record.History) map[string]string {
	t.Helper()
	d, all := reportOf(h), map[string]string{}
	write := func(name string, to func(io.Writer) error) {
		var b bytes.Buffer
		if err := to(&b); err != nil {
			t.Fatal(err)
		}
		all[name] = strings.Join(strings.Fields(b.String()), " ") // without the breaks of lines
	}
	write("text", func(w io.Writer) error { return d.Page().Text(w, terminal.Terminal{Width: 100}) })
	write("markdown", d.Page().Markdown)
	write("html", d.Page().HTML)
	write("json", func(w io.Writer) error { return json.NewEncoder(w).Encode(d) })
	write("csv", d.CSV)
	c := compare.Compare([]compare.Group{{Name: "a", Runs: []review.Row{d.Runs[0].Row}}, {Name: "b", Runs: []review.Row{d.Runs[0].Row}}}, nil)
	write("comparison", func(w io.Writer) error { return (&ComparisonPage{Comparison: c}).Page().Text(w, terminal.Terminal{}) })
	write("comparison's csv", c.CSV)
	return all
}

// TestStarvedAgent is a real run of five seconds on a machine without a free core. The agent took two samples, so the
// report showed the servers' 5,723 queries/s of one second beside the tool's 18,728.
func TestStarvedAgent(t *testing.T) {
	h := recorded.Read(t, recorded.Starved(t))
	for form, text := range forms(t, h) {
		for _, wrong := range []string{"5723", "359.58", "109.7", "30.65"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s has %s of one second", form, wrong)
			}
		}
		if !strings.HasPrefix(form, "comparison") && !strings.Contains(text, "18728") {
			t.Errorf("%s lacks the tool's queries", form)
		}
		if form != "csv" && !strings.HasPrefix(form, "comparison") && !strings.Contains(text, "db1 was sampled for 2 of 5 s") {
			t.Errorf("%s does not say how much was sampled:\n%s", form, text)
		}
	}
	if r := New(h); len(r.Costs) > 0 || len(r.Limits.Findings) > 0 {
		t.Errorf("costs %v, limits %v", r.Costs, r.Limits.Findings)
	}
}

// TestSilentServer guards that the reason of a server that never answered is given, not that the agent had no time.
func TestSilentServer(t *testing.T) {
	dir := recorded.Sysbench(t, []float64{50, 50, 50})
	if _, err := dir.Update(func(m *rundir.Meta) {
		m.Servers = &rundir.Servers{Source: rundir.ServersMatched, Targets: []rundir.Server{{Target: "db1", Engine: "mysql", Connected: true}}}
	}); err != nil {
		t.Fatal(err)
	}
	const why = "nothing is listening on 127.0.0.1:3999: connection refused"
	lines := `{"target":"db1","engine":"mysql","interval":1,"columns":[]}` + "\n"
	for second := range 2 {
		lines += fmt.Sprintf(`["db1",%d,0,%q]`+"\n", recorded.Start.Unix()+int64(second), why)
	}
	if err := os.WriteFile(dir.Path(rundir.StatusFile), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	r := New(recorded.Read(t, dir))
	for name, text := range map[string]string{"trust": fmt.Sprint(r.Trust), "limits": fmt.Sprint(r.Limits.Missing), "observed": fmt.Sprint(r.Observed)} {
		if !strings.Contains(text, "db1 did not answer: "+why) || strings.Contains(text, "missed") || strings.Contains(text, "sampled for") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// counting is a server that executes 100 statements a second.
type counting struct{ now func() time.Time }

func (c counting) Probe(context.Context) (*engine.Status, error) {
	s := &engine.Status{Version: "10.11"}
	s.Set(engine.QueriesTotal, 100*c.now().Sub(recorded.Start).Seconds())
	return s, nil
}

func (counting) Close() error { return nil }

// TestSamplerStops has a sampler sample some seconds of a run only.
func TestSamplerStops(t *testing.T) {
	const seconds = 60
	for _, c := range []struct {
		from, to int
		sampled  string
		printed  bool
	}{
		{-2, seconds + 2, "60 of 60 s", true},
		{-2, 40, "41 of 60 s", true},
		{20, seconds, "39 of 60 s", true},
		{-2, 20, "21 of 60 s", false},
		{50, seconds + 2, "9 of 60 s", false},
		{seconds + 1, seconds + 3, "0 of 60 s", false},
	} {
		rates := make([]float64, seconds)
		for i := range rates {
			rates[i] = 50
		}
		dir := recorded.Sysbench(t, rates)
		if _, err := dir.Update(func(m *rundir.Meta) {
			m.Servers = &rundir.Servers{Source: rundir.ServersMatched, Targets: []rundir.Server{{Target: "db1", Engine: "mysql", Connected: true}}}
		}); err != nil {
			t.Fatal(err)
		}
		sample(t, dir, c.from, c.to)
		h := recorded.Read(t, dir)
		if got := h.Servers[0].Coverage.String(); got != c.sampled {
			t.Errorf("sampled from %d to %d: %s, want %s (missed %d)", c.from, c.to, got, c.sampled, h.Servers[0].Missed)
		}
		for form, text := range forms(t, h) {
			if form == "csv" { // has no servers
				continue
			}
			if printed := strings.Contains(text, "100") && strings.Contains(strings.ToLower(text), "queries"); form == "markdown" && printed != c.printed {
				t.Errorf("sampled from %d to %d: %s has the server's rate: %v", c.from, c.to, form, printed)
			}
			if said := strings.Contains(text, "sampled for "+c.sampled); !strings.HasPrefix(form, "comparison") && said != (c.to-c.from < seconds) {
				t.Errorf("sampled from %d to %d: %s says so: %v", c.from, c.to, form, said)
			}
		}
	}
}

// sample has a real sampler record from one second of a run to another one.
func sample(t *testing.T, dir rundir.Directory, from, to int) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() time.Time { return recorded.Start.Add(time.Duration(from)*time.Second + time.Since(began)) }
		s := engine.NewSampler([]engine.Target{{Name: "db1", Engine: "mysql"}}, func(engine.Target) (engine.Prober, error) { return counting{now}, nil },
			time.Second, engine.Options{Logger: slog.New(slog.DiscardHandler), Now: now})
		frames, _ := s.Subscribe(100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		r := record.NewRecorder(dir, recorded.Start)
		defer r.Close()
		for f := range frames {
			if err := r.Record(f); err != nil {
				t.Error(err)
			}
			if now().After(recorded.Start.Add(time.Duration(to) * time.Second)) {
				cancel()
				break
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestCostsOfTheSampledSeconds guards that a cost divides by the transactions of the seconds in
// which the server was sampled.
func TestCostsOfTheSampledSeconds(t *testing.T) {
	rates := make([]float64, 60)
	for i := range rates {
		rates[i] = 50
		if i >= 40 {
			rates[i] = 5
		}
	}
	dir := recorded.Sysbench(t, rates)
	lines := `{"target":"n1","engine":"mysql","interval":1,"columns":["db_bytes_total{direction=\"sent\"}"]}` + "\n"
	for second := range 40 {
		lines += fmt.Sprintf(`["n1",%d,0,0,0,"",%d]`+"\n", recorded.Start.Unix()+int64(second), 5000*second)
	}
	if err := os.WriteFile(dir.Path(rundir.StatusFile), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	r := New(recorded.Read(t, dir))
	if len(r.Costs) != 1 || r.Costs[0].Value < 99 || r.Costs[0].Value > 101 {
		t.Errorf("%+v, want 100 bytes per transaction", r.Costs)
	}
}
