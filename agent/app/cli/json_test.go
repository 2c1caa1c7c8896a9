package cli

import (
	"fmt"
	"go/ast"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/app/setup"
	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

const jsonDocument = "../../../docs/reference/json.md"

// printed is what each command prints with --format=json. Commands with their own format mention it.
var printed = []struct {
	command string
	value   any
	about   string
}{
	{"runs", []review.Row{}, "An array of runs, the newest last."},
	{"runs import", []imported{}, "An array of the runs that the logs have."},
	{"runs label", []labelledRun{}, "An array of the labelled runs."},
	{"runs rm", removed{}, ""},
	{"report", report.Document{}, "`run` and `replay` print the same for their run when it ends, instead of the tool's output."},
	{"compare", report.ComparisonPage{}, ""},
	{"archive push", pushed{}, ""},
	{"archive pull", pulled{}, ""},
	{"archive list", []archivedRun{}, "An array of runs, the newest last: the fields of `runs`, and these."},
	{"history", history.Trend{}, ""},
	{"sweep", sweep.Result{}, ""},
	{"ab", report.ABPage{}, ""},
	{"mark", marked{}, ""},
	{"init", setup.Done{}, ""},
	{"doctor", setup.Diagnosis{}, ""},
	{"dashboards import", dashboardsImported{}, ""},
	{"health", health{}, "Nothing if the agent is not healthy; the exit status is 1 then."},
	{"status", statusLine{}, "One object per line for each target and tick. If the target answered, it also has the known measures of the server, such as `queries_per_second`. With `--hosts`, also one for each machine, with `host` and the measures of the machine."},
	{"parse", parsedLine{}, "Without `--format`: one object per line for each report of the tool."},
	{"export", report.ExportLine{}, "One object per line for each run, interval, sample and marker."},
}

// parsedLine has the fields that [tool.AppendJSON] writes, besides [tool.Numbers].
type parsedLine struct {
	// Kind is start, interval, summary, histogram or error.
	Kind string `json:"kind"`
	// Run counts the runs in one file.
	Run         int    `json:"run"`
	Tool        string `json:"tool,omitempty"`
	ToolVersion string `json:"tool_version,omitempty"`
	Workload    string `json:"workload,omitempty"`
	Command     string `json:"command,omitempty"`
	// Labels are facts that the output shows since the previous object.
	Labels   map[string]string `json:"labels,omitempty"`
	Elapsed  float64           `json:"elapsed_seconds,omitempty"`
	Interval float64           `json:"interval_seconds,omitempty"`
	Threads  int               `json:"threads,omitempty"`
	// Phase is warmup or measure.
	Phase string `json:"phase,omitempty"`
	// Checkpoint is set in a summary that is not the last one.
	Checkpoint bool `json:"checkpoint,omitempty"`
	// Rates are per second by operation. Every tool has transaction.
	Rates map[string]float64 `json:"rates,omitempty"`
	// Counts are by operation.
	Counts map[string]int `json:"counts,omitempty"`
	// Latency is by operation and statistic.
	Latency map[string]map[string]float64 `json:"latency_seconds,omitempty"`
	// Within is the width of the histogram bucket from which a latency was derived. The latency is the upper bound of
	// the bucket.
	Within map[string]map[string]float64 `json:"latency_within_seconds,omitempty"`
	// Operation is the operation of a histogram.
	Operation string `json:"op,omitempty"`
	// Cumulative: the histogram is of the run or since the last checkpoint, not of one interval.
	Cumulative bool `json:"cumulative,omitempty"`
	// Buckets are pairs of an upper bound in seconds, null if there is none, and a count.
	Buckets [][]*float64 `json:"buckets,omitempty"`
	Failed  bool         `json:"failed,omitempty"`
	Message string       `json:"message,omitempty"`
}

// TestJSON guards that docs/reference/json.md has every field of what commands print.
func TestJSON(t *testing.T) {
	var b strings.Builder
	for _, p := range printed {
		fmt.Fprintf(&b, "### benchwatch %s\n\n", p.command)
		if p.about != "" {
			b.WriteString(p.about + "\n\n")
		}
		fmt.Fprintf(&b, "Schema: [%s](../schema/%[1]s)\n\n| field | value | meaning |\n|---|---|---|\n", schemaFile(p.command))
		s := schemaOf(t, p.command, p.value)
		fields(s, s, "", map[string]bool{}, func(place, value, meaning string) { row(&b, "`"+place+"`", value, meaning) })
		b.WriteString("\n")
	}
	fillBlocks(t, jsonDocument, map[string]string{"fields": strings.TrimSuffix(b.String(), "\n")})
}

// TestFormats guards that every command that prints something has JSON.
func TestFormats(t *testing.T) {
	without := []string{"agent", "version"} // a service, and what --version prints
	for _, c := range leaves(newProgram()) {
		format := c.Flags().Lookup("format")
		if format == nil && !slices.Contains(without, below(c)) {
			t.Errorf("%s has no --format", below(c))
		} else if format != nil && !strings.Contains(format.Usage, "json") {
			t.Errorf("%s has no --format=json", below(c))
		}
	}
}

var blanks = regexp.MustCompile(`\s+`)

// comments returns the doc comments of a struct's fields.
func comments(t *testing.T, of reflect.Type) map[string]string {
	t.Helper()
	docs := map[string]string{}
	eachFile(t, of, func(f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != of.Name() {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					text := strings.TrimSpace(field.Doc.Text() + " " + field.Comment.Text())
					for _, name := range field.Names {
						docs[name.Name] = blanks.ReplaceAllString(text, " ")
					}
				}
			}
			return false
		})
	})
	return docs
}

var (
	verb       = regexp.MustCompile(`^(is|are|has|have) `)
	noun       = regexp.MustCompile(`^\w+ (of|as|that|to|read)\b`)
	identifier = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*|\[\w+\.\w+\]|[A-Z]\w*\.[A-Z]|\[[A-Z]`)
)

// describe returns the comment of a field for readers of the JSON: "Low is the lower bound, at most High" is "The lower
// bound, at most `high`".
func describe(t *testing.T, of reflect.Type, field, comment string) string {
	t.Helper()
	text, own := strings.CutPrefix(comment, field+" ")
	if rest, ok := strings.CutPrefix(comment, field+": "); ok {
		text = rest
	} else if shorter := verb.ReplaceAllString(text, ""); own && shorter != text {
		text = shorter
	} else {
		text = comment
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		start := len(noun.FindString(text)) // "Ratio to …" is English
		word := regexp.MustCompile(`(^|\W)` + f.Name + `(\W|$)`)
		text = text[:start] + word.ReplaceAllString(text[start:], "${1}`"+name+"`${2}")
	}
	if found := identifier.FindString(text); found != "" && found != "PostgreSQL" {
		t.Errorf("%s.%s: its comment has %s, which readers of the JSON don't know: %s", of, field, found, text)
	}
	if text != "" && text[0] != '`' {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return strings.TrimSuffix(text, ".")
}
