//go:build e2e

package monitoring

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// startCluster starts a source and its replicas and creates sysbench's tables.
func startCluster(t *testing.T, members int) *servers.Group {
	t.Helper()
	dir := filepath.Join(env.Dir, strings.ReplaceAll(t.Name(), "/", "-"), fmt.Sprint(members))
	must(t, os.MkdirAll(filepath.Dir(dir), 0o711))
	g, err := servers.Start(t.Context(), dir, servers.MariaDB, servers.Options{Servers: members, Attached: true})
	must(t, err)
	t.Cleanup(func() { must(t, g.Stop(t.Context())) })
	if out, err := exec.Command("sysbench", writing(g, 1, "prepare")[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("prepare tables: %v\n%s", err, out)
	}
	return g
}

// writing returns a sysbench that writes to the source of a group.
func writing(g *servers.Group, seconds int, verb string) []string {
	return []string{"sysbench", "--config-file=" + filepath.Join(g.Dir, "sysbench.cnf"), "oltp_update_index", "--tables=1", "--table-size=1000",
		"--threads=2", "--rate=200", "--report-interval=1", fmt.Sprintf("--time=%d", seconds), verb}
}

// streamed collects which servers the stream of the page has for each run.
func streamed(t *testing.T, address string) func(run string) []string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/events", nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	var mu sync.Mutex
	seen := map[string][]string{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data, _ := strings.CutPrefix(lines.Text(), "data: ")
			var row struct {
				Table string
				Run   string
				Cells [][2]json.RawMessage
			}
			if json.Unmarshal([]byte(data), &row) != nil || row.Table != "servers" {
				continue
			}
			mu.Lock()
			for _, c := range row.Cells {
				var name [3]string
				if json.Unmarshal(c[0], &name) == nil && !slices.Contains(seen[row.Run], name[1]) {
					seen[row.Run] = append(seen[row.Run], name[1])
				}
			}
			mu.Unlock()
		}
	}()
	t.Cleanup(func() { <-done }) // ended with the test's context
	return func(run string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(seen[run]))
	}
}

// Two runs at the same time on two clusters that one agent samples have their own servers
// each, and a run on neither has none: in the record, the metrics, the page, the report and
// the export.
func TestTwoClusters(t *testing.T) {
	red, blue := startCluster(t, 2), startCluster(t, 1)
	var config strings.Builder
	config.WriteString("targets:\n")
	for _, c := range []struct {
		name  string
		group *servers.Group
	}{{"red", red}, {"blue", blue}} {
		for n := 1; n <= c.group.N; n++ {
			fmt.Fprintf(&config, "  - {name: %s%d, engine: mysql, cluster: %s, address: '%s', user: monitor, password_file: %s/monitor.password}\n",
				c.name, n, c.name, c.group.Address(n), c.group.Dir)
		}
	}
	a := env.StartAgent(t, config.String())
	stream := streamed(t, a.Address)
	want := map[string][]string{"on-red": {"red1", "red2"}, "on-blue": {"blue1"}, "on-neither": nil}
	all := slices.Concat(want["on-red"], want["on-blue"])
	commands := map[string][]string{
		"on-red": writing(red, 6, "run"), "on-blue": writing(blue, 6, "run"),
		"on-neither": cpu(6),
	}
	wrappers := map[string]*agents.Process{}
	for id, command := range commands {
		wrappers[id] = a.Run(t, id, command...)
	}
	host, err := os.Hostname()
	must(t, err)
	// identity compares the two info series of each run.
	identity := func(when string) {
		t.Helper()
		for id, names := range want {
			agents.Wait(t, 20*time.Second, "identity of "+id+" "+when, func() error {
				e := a.Scrape(t)
				var got []string
				for _, m := range e.Series("benchwatch_run_target_info", "run", id) {
					for _, l := range m.Label {
						if l.GetName() == "target" {
							got = append(got, l.GetValue())
						}
					}
				}
				if slices.Sort(got); !slices.Equal(got, names) {
					return fmt.Errorf("servers %v", got)
				}
				_, err := e.Value("benchwatch_run_host_info", "run", id, "role", "server", "nodename", host)
				if (err == nil) != (len(names) > 0) {
					return fmt.Errorf("server's host: %w", err)
				}
				_, err = e.Value("benchwatch_run_host_info", "run", id, "role", "generator", "nodename", host)
				return err
			})
		}
	}
	identity("live")
	agents.Wait(t, 20*time.Second, "rows of all servers", func() error {
		for id, names := range want {
			if got := stream(id); !slices.Equal(got, names) {
				return fmt.Errorf("%s: %v", id, got)
			}
		}
		return nil
	})
	for id, w := range wrappers {
		if status := w.Status(t, 60*time.Second); status != 0 {
			t.Errorf("%s: exit status %d", id, status)
		}
		notice := strings.Contains(w.Output(t), "its servers are not known")
		if notice != (want[id] == nil) {
			t.Errorf("%s: notice %v", id, notice)
		}
	}
	for id, names := range want {
		meta := a.Closed(t, id, 30*time.Second)
		if _, ok := meta.Drain["red2"]; ok != (id == "on-red") || len(meta.Drain) > 1 {
			t.Errorf("%s: drain %v", id, meta.Drain)
		}
		dir := rundir.At(a.DataDir, id)
		foreign := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
		texts := map[string]string{}
		for _, file := range []string{rundir.StatusFile, record.SettingsFile, rundir.MetaFile, rundir.MarkersFile} {
			text, err := os.ReadFile(dir.Path(file))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
		texts["page"], err = agents.Get("http://" + a.Address + "/api/runs/" + id + "/history")
		must(t, err)
		for what, args := range map[string][]string{
			"report": {"report", id, "--format=html"}, "markdown": {"report", id, "--format=markdown"}, "export": {"export", id, "--format=openmetrics"},
			"csv": {"export", id, "--format=csv"},
		} {
			out, err := exec.Command(env.Binary, append(args, "--data-dir="+a.DataDir)...).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", id, what, err, out)
			}
			texts[what] = string(out)
		}
		for what, text := range texts {
			for _, name := range foreign {
				if strings.Contains(text, name) {
					t.Errorf("%s: %s contains %s", id, what, name)
				}
			}
		}
		for _, name := range names {
			for _, what := range []string{rundir.StatusFile, record.SettingsFile, rundir.MetaFile, "page", "report", "markdown", "export"} {
				if !strings.Contains(texts[what], name) {
					t.Errorf("%s: %s lacks %s", id, what, name)
				}
			}
			if !strings.Contains(texts["export"], fmt.Sprintf("benchwatch_run_target_info{run=%q,target=%q,cluster=%q,engine=\"mysql\"}", id, name, strings.TrimRight(name, "12"))) {
				t.Errorf("%s: the export lacks %s's benchwatch_run_target_info", id, name)
			}
		}
		if !strings.Contains(texts["export"], fmt.Sprintf("benchwatch_run_host_info{run=%q,nodename=%q,role=\"generator\"}", id, host)) {
			t.Errorf("%s: the export lacks its benchwatch_run_host_info", id)
		}
		for _, what := range []string{"report", "markdown", "page", rundir.MetaFile} {
			if got := strings.Contains(texts[what], "does not show where it connects to"); got != (names == nil) {
				t.Errorf("%s: notice in %s: %v", id, what, got)
			}
		}
	}
	identity("kept")
	a.Kill(t)
	a.Again(t)
	identity("after a restart")
}
