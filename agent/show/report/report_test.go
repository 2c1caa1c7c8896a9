package report

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	_ "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/recorded"
)

var update = flag.Bool("update", false, "write the golden files anew")

func reportOf(hs ...*record.History) *Document {
	d := &Document{Made: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), Version: "1.2.3"}
	for _, h := range hs {
		d.Runs = append(d.Runs, New(h))
	}
	return d
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
}

// TestFormats guards the tables of a real run, to the letter.
func TestFormats(t *testing.T) {
	d := reportOf(recorded.Read(t, recorded.Galera(t)))
	var markdown, csv, data bytes.Buffer
	if err := d.Page().Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	if err := d.CSV(&csv); err != nil {
		t.Fatal(err)
	}
	if err := table.JSON(&data, d); err != nil {
		t.Fatal(err)
	}
	golden(t, "galera.md", markdown.Bytes())
	golden(t, "galera.csv", csv.Bytes())
	golden(t, "galera.json", data.Bytes())
}

// rendered returns the HTML and its parsed form.
func rendered(t testing.TB, d *Document) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := d.Page().HTML(&b); err != nil {
		t.Fatal(err)
	}
	return parsed(t, b.String())
}

func parsed(t testing.TB, page string) (string, *html.Node) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return page, root
}

// selfContained fails if a page could run or load anything.
func selfContained(t *testing.T, root *html.Node) {
	t.Helper()
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image", "foreignobject":
			t.Errorf("element %s", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "src", a.Key == "style":
				t.Errorf("attribute %s=%q", a.Key, a.Val)
			case a.Key == "href" && !strings.HasPrefix(a.Val, "#"):
				t.Errorf("link to %q", a.Val)
			}
		}
		if n.Data == "style" && strings.Contains(text(n), "url(") {
			t.Error("style loads something")
		}
	}
}

func text(root *html.Node) string {
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return strings.ReplaceAll(b.String(), "\u00a0", " ")
}

func elements(root *html.Node, element string) int {
	n := 0
	for d := range root.Descendants() {
		if d.Type == html.ElementNode && d.Data == element {
			n++
		}
	}
	return n
}

func TestHTML(t *testing.T) {
	_, root := rendered(t, reportOf(recorded.Read(t, recorded.Galera(t))))
	selfContained(t, root)
	all := text(root)
	for _, want := range []string{
		"1328.11", "17.01", "219.84", "flow control requested: 90 on n2 and 94 on n3", "hello <b>x",
		"Throughput", "Flow control", "Replication lag", "the run is short (15.0 s)",
		"coordinated omission", "10.11.19-MariaDB", "--config-file=/etc/bench/sysbench.cnf",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("missing %q", want)
		}
	}
	if n := elements(root, "figure"); n < 8 {
		t.Errorf("%d charts", n)
	}
}

// TestHostileText guards that foreign text from tools, servers and users is shown as text.
func TestHostileText(t *testing.T) {
	const evil = `</style></title><script>alert(1)</script><img src=x onerror=alert(1)> "'` + "`" + ` | [a](javascript:alert(1)) ` + "\x1b[2J\u202e\n# h\xff"
	dir := recorded.Galera(t)
	if _, err := dir.Update(func(m *rundir.Meta) {
		m.Title, m.Workload, m.Reason, m.Target, m.ToolVersion, m.Generator = evil, evil, evil, evil, evil, evil
		m.Labels = map[string]string{evil: evil}
		m.Command = []string{evil, evil}
		m.Outcome = rundir.Outcome(evil)
		m.Drain[evil] = rundir.Drain{TimedOut: true}
	}); err != nil {
		t.Fatal(err)
	}
	if err := marker.Append(dir, marker.Marker{Kind: marker.Point, Text: evil, Start: time.Unix(1795259745, 0)}); err != nil {
		t.Fatal(err)
	}
	header, err := json.Marshal(map[string]any{
		"target": evil, "engine": evil, "role": evil, "version": evil, "columns": []string{"db_queries_total", evil},
	})
	if err != nil {
		t.Fatal(err)
	}
	row, err := json.Marshal([]any{evil, time.Date(2026, 11, 21, 11, 15, 40, 0, time.UTC).Unix(), 0, 0, 0, "", 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(dir.Path(rundir.StatusFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "%s\n%s\n", header, row)
	f.Close()
	output, err := os.OpenFile(dir.Path(rundir.StdoutFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(output, "FATAL: %s\n", strings.ReplaceAll(evil, "\n", " "))
	output.Close()

	d := reportOf(recorded.Read(t, dir), recorded.Read(t, dir))
	_, root := rendered(t, d)
	selfContained(t, root)
	if all := text(root); strings.Count(all, "<script>alert(1)</script>") < 10 {
		t.Error("the text does not show")
	}
	var markdown bytes.Buffer
	if err := d.Page().Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", "\x1b", "\n# h", "](javascript", "\u202e"} {
		if at := strings.Index(strings.NewReplacer(`\<`, "", `\]`, "").Replace(markdown.String()), bad); at >= 0 {
			t.Errorf("Markdown holds %q", bad)
		}
	}
	for line := range strings.Lines(markdown.String()) {
		if strings.HasPrefix(line, "| ") && strings.Count(line, " | ") > 30 {
			t.Errorf("a cell breaks the table: %s", line)
		}
	}
	var csv bytes.Buffer
	if err := CSV(&csv, []review.Row{{Title: "=cmd|' /C calc'!A0", Labels: map[string]string{"x": "@SUM(1)"}}}); err != nil {
		t.Fatal(err)
	}
	if s := csv.String(); strings.Contains(s, ",=") || strings.Contains(s, ",@") {
		t.Errorf("a spreadsheet takes a cell for a formula: %s", s)
	}
}

// TestReportOfTenHours guards the size of a long run's report, and that a single
// second that stands out can still be seen in it.
func TestReportOfTenHours(t *testing.T) {
	const seconds = 36000
	var out strings.Builder
	out.WriteString("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 16\n\nThreads started!\n\n")
	for i := 1; i <= seconds; i++ {
		tps := 1000.0 + float64(i%100)
		if i == 23456 {
			tps = 3
		}
		fmt.Fprintf(&out, "[ %ds ] thds: 16 tps: %.2f qps: %.2f (r/w/o: %.2f/%.2f/0.00) lat (ms,95%%): %.2f err/s: 0.00 reconn/s: 0.00\n", i, tps, 2*tps, tps, tps, 10+float64(i%7))
	}
	dir := recorded.Galera(t)
	if err := os.WriteFile(dir.Path(rundir.StdoutFile), []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(dir.Path(rundir.StatusFile))
	if err != nil {
		t.Fatal(err)
	}
	var status bytes.Buffer
	begin := time.Date(2026, 11, 21, 11, 15, 39, 0, time.UTC)
	first := bytes.SplitAfter(lines, []byte("\n"))[:3]
	for i := range seconds / 4 { // a sample every 4 s keeps the test quick
		at := []byte(begin.Add(time.Duration(4*i) * time.Second).Format("2006-01-02T15:04:05"))
		for _, line := range first {
			status.Write(bytes.ReplaceAll(line, []byte("2026-11-21T11:15:39"), at))
		}
	}
	if err := os.WriteFile(dir.Path(rundir.StatusFile), status.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Update(func(m *rundir.Meta) {
		end := begin.Add(seconds * time.Second)
		m.EndedAt, m.ClosedAt = &end, &end
	}); err != nil {
		t.Fatal(err)
	}
	h := recorded.Read(t, dir)
	page, root := rendered(t, reportOf(h))
	selfContained(t, root)
	if len(page) > 5<<20 {
		t.Errorf("%d bytes", len(page))
	}
	charts := Charts(h)
	thinned := charts[0].Lines[0].thin(charts[0].From, charts[0].To, buckets)
	if low := minimum(thinned.Y); len(thinned.X) > 2*buckets+2 || low != 3 {
		t.Errorf("%d points, the lowest is %v", len(thinned.X), low)
	}
}

func minimum(values []float64) float64 {
	low := values[0]
	for _, v := range values {
		low = min(low, v)
	}
	return low
}

// withGenerator returns the record of the run of Galera whose generator had these values in each of 15 seconds.
func withGenerator(t *testing.T, columns string, values func(second int) string) *record.History {
	t.Helper()
	dir := recorded.Galera(t)
	lines := strings.Builder{}
	fmt.Fprintf(&lines, `{"target":"loadgen","engine":"procfs","interval":1,"columns":["host_cpu_cores",%s]}`+"\n", columns)
	for i := range 15 {
		fmt.Fprintf(&lines, `["loadgen",%d,0,0,0,"",2,%s]`+"\n", time.Date(2026, 11, 21, 11, 15, 39+i, 0, time.UTC).Unix(), values(i))
	}
	if _, err := dir.Update(func(m *rundir.Meta) {
		m.Servers.Machines = []rundir.Machine{{Host: "loadgen", Nodename: "loadgen", Roles: []rundir.HostRole{rundir.GeneratorHost}}}
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Path(host.File), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return recorded.Read(t, dir)
}

// TestGeneratorsLimit guards that a report names a saturated generator, and no other.
func TestGeneratorsLimit(t *testing.T) {
	for want, busy := range map[string]float64{"full 100 % of the time": 0.97, "it had CPU to spare": 0.4} {
		h := withGenerator(t, `"host_cpu_busy_ratio","host_cpu_iowait_ratio","host_cpu_steal_ratio"`, func(int) string { return fmt.Sprintf("%g,0.01,0.05", busy) })
		_, root := rendered(t, reportOf(h))
		all := text(root)
		for _, want := range []string{want, "other virtual machines took 5 %", "CPU of the generator"} {
			if !strings.Contains(all, want) {
				t.Errorf("busy %v: missing %q", busy, want)
			}
		}
	}
}

// TestToolsWait guards that a full machine is not called the limit of a tool that had CPU, and that a tool without CPU
// on an idle machine is seen, as under a quota.
func TestToolsWait(t *testing.T) {
	for _, c := range []struct {
		busy, waiting float64 // waiting: threads of the tool, of 8
		want          string
	}{
		{0.97, 0.08, "the tool itself was not short of CPU: it waited for a core for only 1 % of the clients' time"},
		{0.97, 0.8, "the tool waited for a core for 10 % of the clients' time, which is part of the latency"},
		{0.97, 6, "for 75 % of the clients' time: the numbers show a generator short of CPU"},
		{0.2, 6, "for 75 % of the clients' time: the numbers show a generator short of CPU"},
		{0.2, 0.08, "it had CPU to spare"},
	} {
		h := withGenerator(t, `"host_cpu_busy_ratio","host_tool_waiting_seconds_total"`, func(second int) string {
			return fmt.Sprintf("%g,%g", c.busy, c.waiting*float64(second))
		})
		_, root := rendered(t, reportOf(h))
		if all := text(root); !strings.Contains(all, c.want) {
			at := strings.Index(all, "the generator's machine")
			t.Errorf("busy %v, %v waiting: %q", c.busy, c.waiting, all[max(0, at):min(len(all), max(0, at)+200)])
		}
	}
}

// TestHosts guards the chart of the CPU of the run's own machines, and that a Prometheus that is down or answers
// nonsense only leads to a message.
func TestHosts(t *testing.T) {
	h := recorded.Read(t, recorded.Galera(t))
	h.Snapshot.Meta.Generator = "<i>db1"
	h.Snapshot.Meta.Servers = &rundir.Servers{Targets: []rundir.Server{
		{Target: "n1", Nodename: "<i>db1"}, {Target: "n2", Nodename: "d.b2"}, {Target: "n3", Nodename: "d.b2"}, {Target: "n4"},
	}}
	answer, status := "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prefix/api/v1/query_range" || !strings.Contains(r.FormValue("query"), `node_uname_info{nodename=~"<i>db1|d\\.b2"}`) || r.FormValue("step") != "1" {
			t.Errorf("asked %s", r.URL)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	at := h.At(5).Unix()
	for name, c := range map[string]struct {
		answer string
		status int
		charts int
		err    string
	}{
		"two hosts": {fmt.Sprintf(`{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"nodename":"<i>db1"},"values":[[%d,"51.5"],[%d.5,"NaN"],[%d,"99"]]},
			{"metric":{"nodename":"d.b2"},"values":[[%[1]d,"1"]]}]}}`, at, at+1, at+2), http.StatusOK, 1, ""},
		"none":      {`{"status":"success","data":{"resultType":"matrix","result":[]}}`, http.StatusOK, 0, ""},
		"refused":   {`{"status":"error","error":"parse error: unexpected"}`, http.StatusBadRequest, 0, "parse error"},
		"no answer": {`bad gateway`, http.StatusBadGateway, 0, "502"},
		"nonsense":  {`<html>`, http.StatusOK, 0, "not an answer"},
	} {
		answer, status = c.answer, c.status
		r := New(h)
		before := len(r.Charts)
		err := r.AddHosts(context.Background(), h, server.URL+"/prefix/")
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || len(r.Charts)-before != c.charts {
			t.Errorf("%s: %v, %d charts more", name, err, len(r.Charts)-before)
		}
		if c.charts == 1 {
			chart := r.Charts[before]
			if len(chart.Lines) != 2 || chart.Lines[0].Name != "<i>db1 (generator, server)" || chart.Lines[1].Name != "d.b2 (server)" || chart.Lines[0].Y[0] != 51.5 || math.Abs(chart.Lines[0].X[0]-5) > 1 {
				t.Errorf("lines %+v", chart.Lines)
			}
		}
	}
	r := New(h)
	h.Snapshot.Meta.Generator, h.Snapshot.Meta.Servers = "", nil
	if err := r.AddHosts(context.Background(), h, "http://127.0.0.1:1"); err != nil {
		t.Errorf("it asks for unknown hosts: %v", err)
	}
	h.Snapshot.Meta.Generator = "load1"
	server.Close()
	if err := r.AddHosts(context.Background(), h, strings.Replace(server.URL, "http://", "http://user:secret@", 1)); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}
