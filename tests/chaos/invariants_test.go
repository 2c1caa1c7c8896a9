//go:build chaos

package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
)

// check asserts every invariant of docs/reliability.md. All runs have ended.
func (l *lab) check() {
	l.t.Helper()
	l.grafana.SetFault(nil)
	l.closed()
	l.outputUntouched()
	l.countersNeverFall()
	l.othersKeepPace()
	l.scrapesAreFast()
	l.footprintIsFlat()
	l.markersOnce()
	l.secretsNowhere()
	l.equalHoweverRead()
	l.terminate()
}

// closed waits until every run is over.
func (l *lab) closed() {
	l.t.Helper()
	for _, id := range l.ids() {
		meta := l.agent.Closed(l.t, id, l.limit(90*time.Second))
		length := meta.EndedAt.Sub(meta.StartedAt)
		if length < 0 || meta.ClosedAt.Before(*meta.EndedAt) {
			l.t.Errorf("run %s: started %s, ended %s, closed %s", id, meta.StartedAt, meta.EndedAt, meta.ClosedAt)
		}
	}
	// The agent has read what it has written.
	l.until(20*time.Second, "no live run", func() error {
		for _, m := range l.agent.Scrape(l.t)["benchwatch_run_active"].GetMetric() {
			return fmt.Errorf("%v", m.GetLabel())
		}
		return nil
	})
}

func (l *lab) ids() []string {
	l.t.Helper()
	ids, err := rundir.List(l.agent.DataDir)
	l.must(err)
	return ids
}

// outputUntouched: the tool's output is untouched.
func (l *lab) outputUntouched() {
	l.t.Helper()
	for _, r := range l.runs {
		if r.play.Lines > 0 {
			continue // its counters show that it is complete
		}
		stdout, stderr := r.expected(l.t)
		dir := rundir.At(l.agent.DataDir, r.id)
		for name, want := range map[string][]byte{dir.Path(rundir.StdoutFile): stdout, dir.Path(rundir.StderrFile): stderr} {
			got, err := os.ReadFile(name)
			l.must(err)
			if r.full && l.agent.Meta(l.t, r.id).Outcome == rundir.Failed {
				// Its writes failed, as without benchwatch, and it reported that.
				got, _, _ = bytes.Cut(got, []byte("replay: "))
				want = want[:min(len(got), len(want))]
			}
			if !bytes.Equal(got, want) {
				l.t.Errorf("%s of %s: %d bytes differ from the %d that the tool wrote", name, r.play.Name, len(got), len(want))
			}
		}
		shown, err := os.ReadFile(r.shown)
		l.must(err)
		if !bytes.Equal(shown, stdout) && (!r.killed && !r.full || !bytes.HasPrefix(stdout, shown)) {
			l.t.Errorf("run %s of %s: the wrapper showed %d bytes that differ from the %d of the tool", r.id, r.play.Name, len(shown), len(stdout))
		}
	}
}

// countersNeverFall: a counter of a run never falls.
func (l *lab) countersNeverFall() {
	l.t.Helper()
	l.fault(agents.FallenCounter)
}

// othersKeepPace: servers that answer are sampled each second, whatever others do.
func (l *lab) othersKeepPace() {
	l.t.Helper()
	l.fault(agents.OldSample)
	total.most("oldest sample, ms", int(l.watch.Stats().OldestSample.Milliseconds()))
}

// scrapesAreFast: of a hundred scrapes, or fewer, at most one takes more than 100 ms, and none takes a second.
func (l *lab) scrapesAreFast() {
	l.t.Helper()
	l.fault(agents.FailedScrape)
	s := l.watch.Stats()
	if slow := l.watch.Faults(agents.SlowScrape); len(slow) > max(1, s.Timed/100) || s.Slowest > time.Second {
		l.t.Errorf("%d of %d scrapes took more than %v, the slowest %v\n%s",
			len(slow), s.Timed, agents.MaxScrape, s.Slowest.Round(time.Millisecond), strings.Join(slow[:min(len(slow), 10)], "\n"))
	}
	total.add("scrapes", s.Scrapes)
	total.add("scrapes timed", s.Timed)
	total.add("scrapes above 100 ms", len(l.watch.Faults(agents.SlowScrape)))
	total.most("slowest scrape, ms", int(s.Slowest.Milliseconds()))
}

func (l *lab) fault(kind string) {
	l.t.Helper()
	if all := l.watch.Faults(kind); len(all) > 0 {
		l.t.Errorf("%s: %d times\n%s", kind, len(all), strings.Join(all[:min(len(all), 10)], "\n"))
	}
}

// counted waits until the counters of a run agree with its output, after the tool has printed everything and before it
// ends. An incomplete last line, and a block of lines that the next line would end, may count or not.
func (l *lab) counted(r *run) {
	l.t.Helper()
	dir := rundir.At(l.agent.DataDir, r.id)
	meta, err := dir.Load()
	l.must(err)
	feed := ingest.NewFeed(registry.Tools.ByName(meta.Tool), &meta)
	l.must(feed.ReadAll(l.t.Context(), dir))
	least := l.expectedCounters(r, feed.Snapshot(meta, time.Now()))
	feed.Close(time.Now())
	most := l.expectedCounters(r, feed.Snapshot(meta, time.Now()))
	if !l.endsLine(dir) {
		clear(least)
	}
	l.until(30*time.Second, "counters of "+r.play.Name, func() error {
		for series, n := range most {
			have, _ := l.watch.Counter(series)
			if have < least[series] || have > n {
				return fmt.Errorf("%s is %g, the log has %g to %g", series, have, least[series], n)
			}
		}
		return nil
	})
	// No counter was higher before, so the count over all restarts equals the log.
	l.countersNeverFall()
	total.add("runs whose counters equal the log", 1)
}

func (l *lab) expectedCounters(r *run, snap ingest.Snapshot) map[string]float64 {
	want := map[string]float64{
		"benchwatch_run_lines_total result=report run=" + r.id:  float64(snap.Lines.Reported),
		"benchwatch_run_lines_total result=ignored run=" + r.id: float64(snap.Lines.Ignored),
	}
	for op, n := range snap.Totals {
		want["benchwatch_run_operations_total op="+op+" run="+r.id] = n
	}
	return want
}

func (l *lab) endsLine(dir rundir.Directory) bool {
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile} {
		text, err := os.ReadFile(dir.Path(name))
		l.must(err)
		if len(text) > 0 && text[len(text)-1] != '\n' {
			return false
		}
	}
	return true
}

// equalHoweverRead: live, restarted and offline are equal, and a run needs nothing but its
// directory.
func (l *lab) equalHoweverRead() {
	l.t.Helper()
	if len(l.ids()) == 0 {
		l.t.Fatal("no run")
	}
	live, pages := l.series(), l.histories()
	l.terminate()
	l.until(20*time.Second, "runs read again", func() error {
		if again := l.series(); !maps.Equal(live, again) {
			return errors.New(cmp.Diff(live, again))
		}
		return nil
	})
	if d := cmp.Diff(pages, l.histories()); d != "" {
		l.t.Errorf("pages after a restart:\n%s", d)
	}
	copied := *l.agent
	copied.DataDir = filepath.Join(l.t.TempDir(), "copy")
	for _, id := range l.ids() {
		to := rundir.At(copied.DataDir, id)
		l.must(os.CopyFS(string(to), os.DirFS(string(rundir.At(l.agent.DataDir, id)))))
	}
	copied.Config, copied.Address, copied.Env, copied.Within = filepath.Join(copied.DataDir, "benchwatch.yml"), agents.FreeAddress(l.t), nil, nil
	copied.Configure(l.t, "")
	copied.Again(l.t)
	other := *l
	other.agent = &copied
	other.until(20*time.Second, "runs read elsewhere", func() error {
		if elsewhere := other.series(); !maps.Equal(live, elsewhere) {
			return errors.New(cmp.Diff(live, elsewhere))
		}
		return nil
	})
	copied.Kill(l.t)
	for _, id := range l.ids() {
		l.offline(id, live)
	}
}

// offline compares what commands read from a run with what the agent exposed.
func (l *lab) offline(id string, live map[string]float64) {
	l.t.Helper()
	dir := rundir.At(l.agent.DataDir, id)
	meta, err := dir.Load()
	l.must(err)
	snap, err := ingest.Read(l.t.Context(), dir, registry.Tools)
	l.must(err)
	if snap.Summary != nil {
		for _, c := range snap.Summary.Counts {
			series := "benchwatch_run_summary_operations_total op=" + c.Operation + " run=" + id
			if v, ok := live[series]; c.Operation != "error" && c.Operation != "reconnect" && (!ok || v != float64(c.N)) {
				l.t.Errorf("%s is %g (%v), the output has %d", series, v, ok, c.N)
			}
		}
	}
	if v := live["benchwatch_run_result result="+string(meta.Outcome)+" run="+id]; v != 1 {
		l.t.Errorf("run %s: %s is not exposed", id, meta.Outcome)
	}
	seen, twice := map[string]bool{}, ""
	repeated := l.repeatedIntervals(dir, &meta)
	for line := range bytes.Lines(l.benchwatch("export", "--format=csv", id)) {
		if seen[string(line)] {
			repeated--
			twice += string(line)
		}
		seen[string(line)] = true
	}
	if repeated < 0 {
		l.t.Errorf("run %s: exported twice:\n%s", id, twice)
	}
	total.add("intervals compared", max(0, len(seen)-1))
	l.statusWhole(id)
}

// repeatedIntervals counts the intervals that the tool itself printed again with the same values,
// as YCSB does of a run without operations.
func (l *lab) repeatedIntervals(dir rundir.Directory, meta *rundir.Meta) (n int) {
	l.t.Helper()
	t := registry.Tools.ByName(meta.Tool)
	if t == nil {
		return 0
	}
	p, seen := t.NewParser(meta.Description()), map[string]bool{}
	for name, stream := range map[string]tool.Stream{rundir.StdoutFile: tool.Stdout, rundir.StderrFile: tool.Stderr} {
		text, err := os.ReadFile(dir.Path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a log has one stream
			l.t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			p.Parse(tool.Line{Stream: stream, Text: bytes.TrimSuffix(line, []byte("\n"))}, func(r *tool.Report) {
				if r.Kind != tool.Interval {
					return
				}
				of := fmt.Sprintf("%v", *r.Clone())
				if seen[of] {
					n++
				}
				seen[of] = true
			})
		}
	}
	return n
}

// statusWhole reads the record of the servers: each line is complete, and no second occurs twice.
func (l *lab) statusWhole(id string) {
	l.t.Helper()
	name := rundir.At(l.agent.DataDir, id).Path(rundir.StatusFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	l.must(err)
	damaged, seen := 0, map[string]bool{}
	for line := range bytes.Lines(text) {
		if !json.Valid(line) {
			damaged++ // a kill may cut a line, which the next one ends
		} else if line[0] == '[' && seen[string(line)] { // heads are written anew by each agent
			l.t.Errorf("%s: twice: %.200s", name, line)
		}
		seen[string(line)] = true
	}
	total.add("status lines", len(seen))
	if limit := 2 + len(seen)/20; damaged > limit {
		l.t.Errorf("%s: %d of %d lines are damaged", name, damaged, len(seen))
	}
}

// series returns the series of all runs about their outcome.
func (l *lab) series() map[string]float64 {
	l.t.Helper()
	all := map[string]float64{}
	var e agents.Exposition
	l.until(20*time.Second, "a scrape", func() error {
		text, err := agents.Get("http://" + l.agent.Address + "/metrics")
		if err == nil {
			e, err = agents.Parse(text)
		}
		return err
	})
	for name, family := range e {
		if !strings.HasPrefix(name, "benchwatch_run_") && name != "benchwatch_marker_timestamp_seconds" || name == "benchwatch_run_record_failures_total" {
			continue
		}
		for _, m := range family.Metric {
			key := name
			ofRun := false
			for _, label := range m.GetLabel() {
				key += " " + label.GetName() + "=" + label.GetValue()
				ofRun = ofRun || label.GetName() == "run" && label.GetValue() != ""
			}
			if ofRun {
				all[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return all
}

// faults are counted by each process for itself.
var faults = regexp.MustCompile(`"faults":\d+`)

// histories returns what the page shows for each run.
func (l *lab) histories() map[string]string {
	l.t.Helper()
	all := map[string]string{}
	for _, id := range l.ids() {
		all[id] = faults.ReplaceAllString(l.get("/api/runs/"+id+"/history"), "")
	}
	return all
}

// markersOnce: each marker is in Grafana exactly once, with the content of its queue.
func (l *lab) markersOnce() {
	l.t.Helper()
	l.grafana.writeToken(l) // a token that was refused is tried again
	l.grafana.busy.Wait()   // what hangs may still be carried out
	// An agent that could not reach Grafana waits up to a minute, and looks for
	// duplicates 30 seconds after a doubtful answer.
	l.until(150*time.Second, "each marker once", func() error {
		return errors.Join(l.onceByIdentity(), l.onceByText())
	})
	total.add("markers", len(l.grafana.All()))
}

// onceByIdentity compares Grafana with the queues.
func (l *lab) onceByIdentity() error {
	byID := map[string]int{}
	regions := map[string]int{}
	for _, a := range l.grafana.All() {
		for _, tag := range a.Tags {
			if id, ok := strings.CutPrefix(tag, "marker:"); ok {
				byID[id]++
			}
			if id, ok := strings.CutPrefix(tag, "run:"); ok && slices.Contains(a.Tags, "kind:run") {
				regions[id]++
				if a.TimeEnd <= a.Time {
					regions[id] += 1000 // not complete
				}
			}
		}
	}
	queued := 0
	for _, dir := range append(l.dirs(), rundir.Directory(l.agent.DataDir)) {
		all, err := marker.Read(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		queued += len(all)
		for _, m := range all {
			if byID[m.ID] != 1 {
				return fmt.Errorf("marker %s %q is in Grafana %d times", m.ID, m.Text, byID[m.ID])
			}
		}
	}
	for _, id := range l.ids() {
		if regions[id] != 1 {
			return fmt.Errorf("run %s is in Grafana %d times", id, regions[id])
		}
	}
	if have, want := len(l.grafana.All()), queued+len(l.ids()); have != want {
		return fmt.Errorf("Grafana has %d markers, the queues have %d", have, want)
	}
	return nil
}

func (l *lab) dirs() (dirs []rundir.Directory) {
	for _, id := range l.ids() {
		dirs = append(dirs, rundir.At(l.agent.DataDir, id))
	}
	return dirs
}

// onceByText compares Grafana with what was sent.
func (l *lab) onceByText() error {
	count := map[string]int{}
	for _, a := range l.grafana.All() {
		first, _, _ := strings.Cut(a.Text, "<br>")
		count[first]++
	}
	for _, text := range l.texts {
		if count[text] != 1 {
			return fmt.Errorf("%q is in Grafana %d times", text, count[text])
		}
	}
	return nil
}

// secretsNowhere: no secret is stored or served.
func (l *lab) secretsNowhere() {
	l.t.Helper()
	blanked := false
	look := func(where string, text []byte) {
		if i := bytes.Index(text, []byte(l.secret)); i >= 0 {
			l.t.Errorf("a secret is in %s: …%s…", where, text[max(0, i-80):min(len(text), i+10)])
		}
		blanked = blanked || bytes.Contains(text, []byte("--mysql-password="))
		total.add("places searched for secrets", 1)
	}
	// All folders of the scenario: data, logs of agents and wrappers, configuration.
	l.must(filepath.WalkDir(filepath.Dir(l.dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		switch filepath.Ext(path) {
		case ".token", ".password": // where users keep them
			return nil
		}
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	}))
	l.must(filepath.WalkDir(l.agent.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	}))
	paths := []string{"/", "/metrics", "/api/runs", "/api/agent", "/api/measures"}
	for _, id := range l.ids() {
		paths = append(paths, "/api/runs/"+id, "/api/runs/"+id+"/history", "/api/runs/"+id+"/findings", "/runs/"+id+"/report", "/runs/"+id+"/export")
		for _, command := range [][]string{{"report", "--format=markdown"}, {"export", "--format=json"}} {
			look(strings.Join(command, " "), l.benchwatch(append(command, id)...))
		}
	}
	for _, path := range paths {
		look(path, []byte(l.get(path)))
	}
	look("runs", l.benchwatch("runs"))
	for _, a := range l.grafana.All() {
		text, err := json.Marshal(a)
		l.must(err)
		look("Grafana", text)
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", l.agent.Cmd.Process.Pid))
	l.must(err)
	look("the agent's command line", cmdline)
	if len(l.runs) > 0 && !blanked {
		l.t.Error("no command line with a secret was stored: the search proves nothing")
	}
}

// footprintIsFlat: memory, descriptors and goroutines return to their previous levels.
func (l *lab) footprintIsFlat() {
	l.t.Helper()
	const goroutines, descriptors, mebibytes = 10, 10, 48
	// A log that was removed is followed for a minute after its last line, if its run has not ended.
	l.until(90*time.Second, "as few resources as before", func() error {
		now := l.agent.Scrape(l.t).Footprint(l.t)
		if now.Goroutines > l.idle.Goroutines+goroutines || now.Descriptors > l.idle.Descriptors+descriptors || now.MiB > l.idle.MiB+mebibytes {
			return fmt.Errorf("%v, at the beginning %v", now, l.idle)
		}
		return nil
	})
	total.most("most resident memory after a scenario, MiB", int(l.agent.Scrape(l.t).Footprint(l.t).MiB))
}

// maxEnd is how long SIGTERM may take, excluding time without a CPU or the disk.
const maxEnd = 2 * time.Second

// endsOnSIGTERM: SIGTERM ends the agent within 2 seconds. Afterwards it does not run.
func (l *lab) endsOnSIGTERM() {
	l.t.Helper()
	began := time.Now()
	l.agent.Signal(l.t, syscall.SIGTERM)
	starved := l.watch.Starved(func() {
		select {
		case <-l.agent.Exited:
		case <-time.After(l.limit(20 * time.Second)):
		}
	})
	took := time.Since(began)
	if status := l.agent.Status(l.t, time.Second); status != 0 {
		l.t.Errorf("the agent exited with %d", status)
	}
	if took-starved > maxEnd {
		l.t.Errorf("SIGTERM ended the agent after %v, of which it was without a CPU or the disk for %v", took.Round(time.Millisecond), starved.Round(time.Millisecond))
	}
	total.add("agents terminated", 1)
}
