package ingest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/prefix"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// stamps are prefixes with the time of line n.
var stamps = map[string]func(n int, line string) string{
	"docker compose": func(_ int, line string) string { return "bench-1  | " + line },
	"kubectl --prefix --timestamps": func(n int, line string) string {
		return "[pod/b/bench] " + at(n).Format("2006-01-02T15:04:05.000000000Z07:00") + " " + line
	},
	"GitHub Actions": func(n int, line string) string { return at(n).Format("2006-01-02T15:04:05.0000000Z") + " " + line },
	"GitLab CI":      func(n int, line string) string { return at(n).Format("2006-01-02T15:04:05.000000Z") + " 00O " + line },
	"journalctl": func(n int, line string) string {
		return at(n).Local().Format("Jan _2 15:04:05") + " vm bench[123]: " + line
	},
	"short-iso": func(n int, line string) string {
		return at(n).Local().Format("2006-01-02T15:04:05-0700") + " vm bench[123]: " + line
	},
	"ts":     func(n int, line string) string { return at(n).Local().Format("Jan _2 15:04:05") + " " + line },
	"ts %.s": func(n int, line string) string { return fmt.Sprintf("%d.000000 ", at(n).Unix()) + line },
	"json-file": func(n int, line string) string {
		return `{"log":` + strconv.Quote(line+"\n") + `,"stream":"stdout","time":"` + at(n).Format(time.RFC3339Nano) + `"}`
	},
	"Jenkins": func(n int, line string) string { return "[" + at(n).Format("2006-01-02T15:04:05.000Z") + "] " + line },
	"log4j": func(n int, line string) string {
		return at(n).Local().Format("2006-01-02 15:04:05,000") + " INFO [main] a.b.C - " + line
	},
	"colours":      func(_ int, line string) string { return "\x1b[0;32m" + line + "\x1b[0m" },
	"indented":     func(_ int, line string) string { return "    " + line },
	"stdout_lines": func(_ int, line string) string { return "        " + strconv.Quote(line) + "," },
}

func at(line int) time.Time { return time.Date(2024, 5, 10, 11, 14, 15+line, 0, time.UTC) }

// TestPrefixedLogs guards that a log has the same run whatever other programs put before its lines, and that the time in
// a prefix is when the run began.
func TestPrefixedLogs(t *testing.T) {
	for _, tl := range allTools {
		if tl.Name == "ycsb" { // its own lines have a time: a prefix with another one changes when the run began
			continue
		}
		recorded := recordings(t, tl)
		for i := 0; i < len(recorded); i += 1 + len(recorded)/4 {
			text := recorded[i]
			if len(text) > 60_000 || bytes.ContainsAny(text, "\r\x00") || !printable(text) {
				continue
			}
			want, err := SplitLog(t.Context(), section(text), tl, 0, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for form, add := range stamps {
				if form == "ts %.s" && !bytes.ContainsAny(text, "abcd") { // seconds before numbers are a log of transactions
					continue
				}
				var prefixed strings.Builder
				n := 0
				for line := range strings.Lines(string(text)) {
					prefixed.WriteString(add(n, strings.TrimSuffix(line, "\n")) + "\n")
					n++
				}
				got, err := SplitLog(t.Context(), section([]byte(prefixed.String())), tl, 0, at(n).Add(time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(want) {
					t.Errorf("%s %d, %s: %d runs, want %d", tl.Name, i, form, len(got), len(want))
					continue
				}
				for part := range want {
					a, b := want[part].Snapshot(), got[part].Snapshot()
					if d := cmp.Diff(a, b, ignoreTimes, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Lines" }, cmp.Ignore())); d != "" {
						t.Errorf("%s %d, %s: run %d differs:\n%s", tl.Name, i, form, part, d)
					}
					if own := want[part].Began; !own.IsZero() {
						if !got[part].Began.Equal(own) {
							t.Errorf("%s %d, %s: run %d began at %v, its own lines say %v", tl.Name, i, form, part, got[part].Began, own)
						}
					} else if timed := strings.Contains(prefixed.String(), "2024"); timed && (got[part].Began.Before(at(-3600)) || got[part].Began.After(at(n))) {
						t.Errorf("%s %d, %s: run %d began at %v", tl.Name, i, form, part, got[part].Began)
					}
				}
			}
		}
	}
}

// printable: strconv.Quote writes such a text as JSON does.
func printable(text []byte) bool {
	return !slices.ContainsFunc([]rune(string(text)), func(r rune) bool { return r != '\n' && r != '\t' && (r < ' ' || r > '~') })
}

// TestInterleavedContainers guards that the containers of one log are generators of one run, and that another container
// is none.
func TestInterleavedContainers(t *testing.T) {
	var lines []string
	for _, text := range recordings(t, allTools[0]) {
		parts, err := SplitLog(t.Context(), section(text), allTools[0], 0, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) == 1 && parts[0].Snapshot().Threads.Value > 1 {
			lines = strings.Split(string(text), "\n")
			break
		}
	}
	var log strings.Builder
	for _, line := range lines {
		log.WriteString("db-1    | ready for connections\ngen1-1  | " + line + "\ngen2-1  | " + line + "\n")
	}
	path := filepath.Join(t.TempDir(), "compose.log")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	one, err := splitFile(t.Context(), path, allTools[0])
	if err != nil || len(one) != 1 {
		t.Fatal(len(one), err)
	}
	im := Import{DataDir: t.TempDir(), Log: Log{Path: path, Tool: allTools[0]}}
	runs, err := im.Run(t.Context())
	if err != nil || len(runs) != 1 {
		t.Fatal(len(runs), err)
	}
	if g := runs[0].Meta.Group; g == nil || g.Generators != 2 || !strings.HasSuffix(g.Members[1].Log, "compose.log (gen2-1)") {
		t.Errorf("group %+v", g)
	}
	single, both := one[0].Snapshot(), runs[0].Part.Snapshot()
	if single.Threads.Value == 0 || both.Threads.Value != 2*single.Threads.Value {
		t.Errorf("%v threads, one container has %v", both.Threads, single.Threads)
	}
	if left, err := filepath.Glob(filepath.Join(im.DataDir, ".*")); err != nil || len(left) > 0 {
		t.Error("left:", left, err)
	}
}

// TestFormsAreDocumented guards that docs/tools/logs.md lists each form of prefix.
func TestFormsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tools/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range prefix.Forms {
		if !bytes.Contains(page, []byte("| "+form.Name+" |")) {
			t.Errorf("docs/tools/logs.md does not list: %s", form.Name)
		}
	}
}

// TestOwnTextIsKept guards that nothing is removed from the lines of a log without prefixes: what a tool prints at the
// beginning of its lines can look like one.
func TestOwnTextIsKept(t *testing.T) {
	for _, tl := range allTools {
		for i, text := range recordings(t, tl) {
			read := func(p tool.Parser) (messages []string) {
				tool.ParseAll(p, tool.Stdout, text, func(r *tool.Report) {
					if r.Kind == tool.Error || r.Failed {
						messages = append(messages, fmt.Sprintf("%s %d %v %s", r.Kind, r.Run, r.Failed, r.Message))
					}
					if r.Kind == tool.Summary {
						messages = append(messages, fmt.Sprintf("summary of run %d: latencies %t", r.Run, len(r.Latencies) > 0))
					}
				})
				return messages
			}
			if d := cmp.Diff(read(tl.NewParser(tool.Description{})), read(tl.NewFront(tool.Description{}).Parser())); d != "" {
				t.Errorf("recording %d of %s:\n%s", i, tl.Name, d)
			}
		}
	}
}

// TestLeftOut guards that a run names the containers of its log that it leaves out.
func TestLeftOut(t *testing.T) {
	tl := allTools.ByName("sysbench")
	f := NewFeed(tl, new(rundir.Meta))
	for line := range strings.Lines(string(recordings(t, tl)[0])) {
		for _, text := range []string{"gen-1  | " + line, "db-1  | ready for connections"} {
			f.line(tool.Line{Text: []byte(strings.TrimSuffix(text, "\n"))}, time.Time{}, false)
		}
	}
	if left := f.Snapshot(rundir.Meta{}, time.Now()).LeftOut; !slices.Equal(left, []string{"db-1"}) {
		t.Errorf("left out: %v", left)
	}
}
