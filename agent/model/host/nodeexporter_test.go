package host

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// probe asks once.
func probe(t *testing.T, p engine.Prober) *engine.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := p.Probe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, engineName, address string) engine.Prober {
	t.Helper()
	p, err := Open(engine.Target{Engine: engineName, Address: address}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// startExporter starts Debian's node_exporter and returns its address.
func startExporter(t *testing.T, arguments ...string) string {
	t.Helper()
	path, err := exec.LookPath("prometheus-node-exporter")
	if err != nil {
		t.Skip("prometheus-node-exporter is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := exec.Command(path, append(arguments, "--web.listen-address="+address, "--no-collector.systemd")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	deadline := time.Now().Add(60 * time.Second)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return "http://" + address + "/metrics"
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestNodeExporterAgreesWithProcfs guards that a node_exporter on this machine and procfs
// give the same values: counters that grow in one lie between two of the other.
func TestNodeExporterAgreesWithProcfs(t *testing.T) {
	exporter, own := open(t, NodeExporter, startExporter(t)), open(t, Procfs, "")
	probe(t, own)
	probe(t, exporter)
	before := probe(t, own)
	between := probe(t, exporter)
	after := probe(t, own)
	if between.Nodename == "" || between.Nodename != before.Nodename || between.Version != before.Version {
		t.Errorf("%s %s, by procfs %s %s", between.Nodename, between.Version, before.Nodename, before.Version)
	}
	if d := between.Uptime - before.Uptime; d < -5*time.Second || d > 30*time.Second {
		t.Errorf("up %v, by procfs %v", between.Uptime, before.Uptime)
	}
	agree(t, before, between, after)
}

// agree fails unless another source's reading between two of procfs has the same values.
func agree(t *testing.T, before, between, after *engine.Status) {
	t.Helper()
	counters := 0
	for i := range before.Values {
		v := &before.Values[i]
		end, ok := after.Get(v.Metric, v.Labels...)
		got, found := between.Get(v.Metric, v.Labels...)
		if !ok || v.Metric == BusiestCoreShare || v.Metric == BusiestDiskShare || v.Metric == busiestNetwork {
			continue
		}
		if !found {
			t.Errorf("no %s", v.Name())
			continue
		}
		if v.Metric.Kind == measure.Counter {
			counters++
			// Both round to a hundredth of a second for each core and mode.
			slack := 0.2
			if got < v.V-slack || got > end+slack {
				t.Errorf("%s is %v, by procfs %v before and %v after", v.Name(), got, v.V, end)
			}
		}
	}
	for i := range between.Values {
		v := &between.Values[i]
		if _, ok := before.Get(v.Metric, v.Labels...); !ok && v.Metric != BusiestCoreShare && v.Metric != busiestNetwork && v.Metric != cpuWaiting {
			t.Errorf("procfs has no %s", v.Name())
		}
	}
	if counters < 15 {
		t.Errorf("%d counters", counters)
	}
	for _, m := range []*measure.Metric{BusiestCoreShare, BusiestDiskShare} {
		for name, s := range map[string]*engine.Status{"procfs": after, "the other": between} {
			if v, ok := s.Get(m); ok && (v < 0 || v > 1) {
				t.Errorf("%s: %s is %v", name, m.Name, v)
			}
		}
	}
}

// TestNodeExporterWithoutACollector: a node_exporter with a disabled collector refuses a request for it; then
// everything is read.
func TestNodeExporterWithoutACollector(t *testing.T) {
	p := open(t, NodeExporter, startExporter(t, "--no-collector.pressure"))
	s := probe(t, p)
	if _, ok := s.Get(cpuUser); !ok {
		t.Error("no CPU")
	}
	if v, ok := s.Get(pressureCPU); ok {
		t.Errorf("pressure %v", v)
	}
}

// TestForeignExporter guards what a user reads if the URL leads to something else.
func TestForeignExporter(t *testing.T) {
	for body, want := range map[string]string{
		"up 1\n":       "is it a node_exporter?",
		"<html>hello":  "is it a node_exporter?",
		"":             "is it a node_exporter?",
		"\x00node_cpu": "is it a node_exporter?",
		"node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} x\n": "does not come from a node_exporter",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
		p := open(t, NodeExporter, server.URL)
		_, err := p.Probe(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", body, err)
		}
		server.Close()
	}
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat("x", 1023) + "\n")
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}))
	p := open(t, NodeExporter, endless.URL)
	if _, err := p.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), engine.ErrTooMuch.Error()) {
		t.Errorf("an endless answer: %v", err)
	}
	p.Close()
	endless.Close()
	redirect := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound))
	defer redirect.Close()
	if _, err := open(t, NodeExporter, redirect.URL).Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect: %v", err)
	}
}

// FuzzParse: whatever an answer is, it is read or refused.
func FuzzParse(f *testing.F) {
	f.Add([]byte("node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 1\n# TYPE node_time_seconds gauge\nnode_time_seconds 1e9\nnode_disk_io_time_seconds_total{device=\"sda\"} 3"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := parse(body); err == nil {
			r.status(nil)
			r.status(r)
		}
	})
}
