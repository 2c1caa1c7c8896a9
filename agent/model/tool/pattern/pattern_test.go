package pattern

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// texts is one text or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]string)(t))
	}
	*t = texts{n.Value}
	return nil
}

// load returns the first tool in the YAML text.
func load(text string) (*tool.Tool, error) {
	var c struct {
		Tools []struct {
			Name, Command            string
			Interval, Summary, Error texts
			Units                    map[string]string
		}
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return nil, err
	}
	first := c.Tools[0]
	return New(Config{first.Name, first.Command, first.Interval, first.Summary, first.Error, first.Units})
}

// Each mistake is reported with its key and a remedy.
func TestMistakes(t *testing.T) {
	const good = "tools:\n  - name: x\n    command: x\n"
	tests := []struct{ name, text, want string }{
		{"a unit is missing", good + "    interval: 'lat (?P<latency_read_p95>\\d+)'\n",
			`interval: group "latency_read_p95" needs a unit: add units: {latency_read_p95: ms}, or units: {latency: ms} for all`},
		{"an unknown group", good + "    interval: '(?P<tps>\\d+)'\n",
			`interval: unknown group "tps": expected elapsed, interval, threads, rate_<operation>, count_<operation> or latency_<operation>_<statistic>`},
		{"an operation in capitals", good + "    interval: '(?P<rate_READ>\\d+)'\n", `interval: unknown group "rate_READ"`},
		{"no operation", good + "    interval: '(?P<rate_>\\d+)'\n", `interval: unknown group "rate_"`},
		{"a statistic that is none", good + "    interval: '(?P<latency_read_stddev>\\d+)'\n",
			`interval: group "latency_read_stddev": a latency is called latency_<operation>_<statistic>`},
		{"a group in the wrong place", good + "    interval: '(?P<rate_x>\\d+) (?P<tpmc>\\d+)'\n", `interval: group "tpmc" has no meaning in interval`},
		{"a group in the command", "tools:\n  - name: x\n    command: '(?P<rate_x>x)'\n    interval: '(?P<rate_x>\\d+)'\n", `command: unknown group "rate_x": expected threads`},
		{"a group in error", good + "    interval: '(?P<rate_x>\\d+)'\n    error: '(?P<text>x)'\n", `error: unknown group "text": expected message`},
		{"a group twice", good + "    interval: '(?P<rate_x>\\d+)|(?P<rate_x>x)'\n", `interval: group "rate_x" is there twice`},
		{"it does not compile", good + "    interval: '('\n", "interval: missing closing ): `(`"},
		{"it matches everything", good + "    interval: '(?P<rate_x>\\d*)'\n", `interval: this matches an empty line, and so any line`},
		{"no value", good + "    interval: '(?P<elapsed>\\d+)'\n", `interval: needs a group that holds a value`},
		{"no group in summary", good + "    summary: [tps]\n", `summary: needs a named group`},
		{"one of several", good + "    summary:\n      - '(?P<rate_x>\\d+)'\n      - '(?P<y>\\d+)'\n", `summary[1]: unknown group "y"`},
		{"empty", good + "    interval: ''\n", `interval: needs a regular expression`},
		{"an unknown unit", good + "    interval: '(?P<latency_read_avg>\\d+)'\n    units: {latency: mn}\n", `interval: unit "mn" of latency is unknown: use one of h, min, ms, ns, s, us`},
		{"a unit of a rate", good + "    interval: '(?P<rate_x>\\d+)'\n    units: {rate_x: s}\n", `unit "s" of rate_x is unknown: use one of per_hour, per_minute, per_second`},
		{"a unit of nothing", good + "    interval: '(?P<rate_x>\\d+)'\n    units:\n      rate_x: per_minute\n      latency: ms\n", `units.latency: no group has this unit`},
		{"nothing to report", good, `needs interval or summary`},
		{"no name", "tools:\n  - command: x\n", `name: needs a name`},
		{"a name in capitals", "tools:\n  - name: HammerDB\n    command: x\n    interval: '(?P<rate_x>\\d+)'\n", `name: a name is of lower-case letters`},
		{"a built-in tool's name", "tools:\n  - name: ycsb\n    command: x\n    interval: '(?P<rate_x>\\d+)'\n", `name: benchwatch has a tool ycsb of its own`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

const hammer = `
tools:
  - name: hammer
    command: '^hammer (?P<workload>\w+) .*--vu (?P<threads>\d+) --host (?P<target>\S+) --db (?P<database>\S+)'
    interval:
      - 't=(?P<elapsed>[\d.]+)min w=(?P<interval>[\d.e+]+) (?P<rate_transaction>[\d.e+]+) tpm(?: p99.9 (?P<latency_new_order_p99_9>[\d.]+)us)?'
      - 'ops (?P<count_read>\S+) errors (?P<count_error>\d+) at (?P<elapsed>[\d.]+)min'
    summary:
      - 'NOPM (?P<rate_new_order>\d+) tpmC (?P<tpmc>\d+)'
      - 'max (?P<latency_new_order_max>\S+)s'
    error: ['^ERROR: (?P<message>.*)', panic]
    units: {rate: per_minute, elapsed: min, latency: s, latency_new_order_p99_9: us}
`

func hammerTool(t testing.TB) *tool.Tool {
	t.Helper()
	hammer, err := load(hammer)
	if err != nil {
		t.Fatal(err)
	}
	return hammer
}

func TestReports(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
		malformed  int
	}{
		{"units", "t=0.5min w=30 6000 tpm p99.9 1500us\n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":30,"interval_seconds":30,"phase":"measure","rates":{"transaction":100},"latency_seconds":{"new_order":{"p99.9":0.0015}}}`}, 0},
		{"a group that took no part", "t=0.5min w=30 6000 tpm\n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":30,"interval_seconds":30,"phase":"measure","rates":{"transaction":100}}`}, 0},
		{"counts become rates", "ops 600 errors 6 at 0.1min\nops 300 errors 0 at 0.2min\n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":6,"interval_seconds":6,"phase":"measure","rates":{"read":100},"counts":{"read":600,"error":6},"errors_per_second":1}`,
				`{"kind":"interval","run":1,"elapsed_seconds":12,"interval_seconds":6,"phase":"measure","rates":{"read":50},"counts":{"read":300,"error":0},"errors_per_second":0}`}, 0},
		{"numbers that are none", "t=0.5min w=1e999 6000 tpm\nops many errors 6 at 0.1min\nops 1.5 errors 6 at 0.1min\nops -5 errors 6 at 0.1min\n", nil, 4},
		{"a summary of two lines, then another run", "NOPM 600 tpmC 601\nnoise\nmax 0.25s\nt=0.5min w=30 60 tpm\nNOPM 60 tpmC 61\nNOPM 120 tpmC 62\n",
			[]string{`{"kind":"summary","run":1,"checkpoint":false,"rates":{"new_order":10},"latency_seconds":{"new_order":{"max":0.25}},"tpmc":601}`,
				`{"kind":"interval","run":2,"elapsed_seconds":30,"interval_seconds":30,"phase":"measure","rates":{"transaction":1}}`,
				`{"kind":"summary","run":2,"checkpoint":false,"rates":{"new_order":1},"tpmc":61}`,
				`{"kind":"summary","run":3,"checkpoint":false,"rates":{"new_order":2},"tpmc":62}`}, 0},
		{"time that goes back is another run", "t=2min w=60 60 tpm\nt=1min w=60 60 tpm\n",
			[]string{`{"kind":"interval","run":1,"elapsed_seconds":120,"interval_seconds":60,"phase":"measure","rates":{"transaction":1}}`,
				`{"kind":"interval","run":2,"elapsed_seconds":60,"interval_seconds":60,"phase":"measure","rates":{"transaction":1}}`}, 0},
		{"errors", "ERROR: no mysql://u:geheim@h\nERROR: b\nmore panic here\n",
			[]string{`{"kind":"error","run":1,"message":"no mysql://u:***@h"}`, `{"kind":"error","run":1,"message":"more panic here (last of 3 messages)"}`}, 0},
		{"nothing", "\nnoise\n", nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, stream := range []tool.Stream{tool.Stdout, tool.Stderr} {
				res := tooltest.Parse(hammerTool(t), tooltest.Lines(stream, []byte(test.text)))
				var got []string
				for _, r := range res.Reports {
					got = append(got, tooltest.Render(r))
				}
				if diff := cmp.Diff(test.want, got); diff != "" || res.Malformed != test.malformed {
					t.Errorf("%d malformed, want %d\n%s", res.Malformed, test.malformed, diff)
				}
			}
		})
	}
	res := tooltest.Parse(hammerTool(t), []tool.Line{{Text: []byte("t=0.5min w=30 6000 tpm"), Cut: true}, {Text: []byte("NOPM 1 tpmC 1"), Cut: true}})
	if len(res.Reports) != 0 || res.Malformed != 2 {
		t.Errorf("cut lines: %s", res)
	}
}

func TestDescribe(t *testing.T) {
	h := hammerTool(t)
	args := strings.Fields("tpcc --verbose --vu 8 --host db1:3306 --db tpcc --password geheim1 --api-key=geheim2 --url mysql://u:geheim3@h/d")
	if !h.MatchArgs("hammer", args) || h.MatchArgs("sysbench", args) {
		t.Error("recognised by the wrong command")
	}
	d := h.Describe(tool.Invocation{Program: "hammer", Args: args})
	want := tool.Description{
		Workload: "tpcc", Threads: 8, Target: "db1:3306", Database: "tpcc", Labels: map[string]string{},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if d := h.Describe(tool.Invocation{Program: "hammer"}); d.Threads != 0 || d.Workload != "" {
		t.Errorf("a command that does not match: %+v", d)
	}
}

func TestSniff(t *testing.T) {
	h := hammerTool(t)
	for text, want := range map[string]int{
		"":                                0,
		"noise\nt=0.5min w=30 60 tpm\r\n": 55,
		"NOPM 60 tpmC 61\n":               45,
		strings.Repeat("x", 2*sniffed):    0,
	} {
		if got := h.Sniff([]byte(text)); got != want {
			t.Errorf("%.20q: %d, want %d", text, got, want)
		}
	}
}

// For any configuration: no panic, and an accepted configuration works.
func FuzzConfig(f *testing.F) {
	f.Add(`t=(?P<elapsed>[\d.]+)min (?P<rate_transaction>[\d.e+]+) tpm(?: p99.9 (?P<latency_new_order_p99_9>[\d.]+)us)?`)
	f.Add(`(?P<rate_x>\d+)|(?P<rate_x>x)`)
	f.Fuzz(func(t *testing.T, text string) {
		known, err := New(Config{Name: "x", Command: "x", Interval: []string{text}, Units: map[string]string{"latency": "ms"}})
		if err != nil {
			return
		}
		tooltest.Parse(known, tooltest.Lines(tool.Stdout, []byte(text)))
		known.Sniff([]byte(text))
		known.Describe(tool.Invocation{Program: "x", Args: strings.Fields(text)})
	})
}

// For any output: no panic, and every value is a number.
func FuzzParser(f *testing.F) {
	for _, dir := range tooltest.Cases(f, "testdata/dbbench/*") {
		for _, name := range []string{"/stdout.txt", "/stderr.txt"} {
			for _, l := range tooltest.Read(f, tool.Stdout, dir+name) {
				f.Add(slices.Clone(l.Text))
			}
		}
	}
	f.Add([]byte("t=0.5min w=1e300 6e20 tpm p99.9 1500us\nNOPM 600 tpmC 601\nops 1 errors 2 at 3min"))
	tools := []*tool.Tool{documented(f), hammerTool(f)}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, known := range tools {
			for _, r := range tooltest.Parse(known, tooltest.Lines(tool.Stdout, text)).Reports {
				tooltest.Check(t, r)
			}
		}
	})
}
