package mysql

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// dumps reads the output of SHOW GLOBAL STATUS and SHOW VARIABLES: tables, tab-separated or vertical.
func dumps(details []func() Detail) *engine.Dumps {
	return &engine.Dumps{
		Words: []string{"mysql", "mariadb", "mysqladmin", "show", "global", "extended", "tsv", "csv"},
		Read:  readDump,
		Decode: func(settings, counters engine.Snapshot) (*engine.Status, engine.Settings, error) {
			var all []Detail
			for _, newDetail := range details {
				all = append(all, newDetail())
			}
			return decodeDump(settings.Values, counters.Values, all)
		},
	}
}

// decodeDump keeps only values that grow: others are from an instant outside the run.
func decodeDump(variables, status Values, details []Detail) (*engine.Status, engine.Settings, error) {
	server := &Server{Variables: Values{}}
	var settings engine.Settings
	if variables != nil {
		var err error
		if server, err = NewServer(variables); err != nil {
			return nil, nil, err
		}
		settings = DecodeSettings(server, variables, details)
	}
	s, err := Decode(context.Background(), &Tick{Target: &engine.Target{}, Server: server, Status: status}, refusing{}, details)
	if err != nil {
		return nil, nil, err
	}
	var growing []*measure.Metric
	for _, d := range details {
		growing = append(growing, d.Needs().Growing...)
	}
	s.Position, s.Missing = nil, nil
	s.Values = slices.DeleteFunc(s.Values, func(v engine.Value) bool {
		return v.Metric.Kind != measure.Counter && !slices.Contains(growing, v.Metric)
	})
	return s, settings, nil
}

// refusing answers no statement.
type refusing struct{}

// Rows implements Querier.
func (refusing) Rows(context.Context, string) ([]Row, error) { return nil, ErrUnknownStatement }

const (
	// mostVariables bounds a snapshot; a server has about 1000.
	mostVariables = 10000
	// longestRow bounds a line in bytes.
	longestRow = 1 << 20
)

// readDump recognises a snapshot by variables that every server has.
func readDump(text io.Reader, visit func(engine.Snapshot) bool) error {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, longestRow)
	values, vertical, more := Values{}, "", true
	end := func() {
		_, status := values["Uptime"]
		_, questions := values["Questions"]
		_, version := values["version"]
		_, connections := values["max_connections"]
		if more && (status && questions || version && connections) {
			more = visit(engine.Snapshot{Counters: status, Values: values})
		}
		values = Values{}
	}
	for more && lines.Scan() {
		name, value, ok := dumpedRow(lines.Text(), &vertical)
		if !ok {
			continue
		}
		if _, again := values[name]; again || name == "Variable_name" {
			end()
		}
		if name != "Variable_name" && len(values) < mostVariables {
			values[name] = value
		}
	}
	end()
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return nil
}

// dumpedRow parses a line: a table row with tabs, or one of the two lines of vertical output, whose name
// is stored in vertical.
func dumpedRow(line string, vertical *string) (name, value string, ok bool) {
	line = strings.TrimRight(line, "\r")
	if rest, is := strings.CutPrefix(line, "|"); is {
		name, value, ok = strings.Cut(strings.TrimSuffix(strings.TrimRight(rest, " "), "|"), "|")
		return strings.TrimSpace(name), strings.TrimSpace(value), ok
	}
	if name, value, ok = strings.Cut(line, "\t"); ok {
		return name, value, name != "" && !strings.ContainsAny(name, " :")
	}
	trimmed := strings.TrimSpace(line)
	if rest, is := strings.CutPrefix(trimmed, "Variable_name: "); is {
		*vertical = rest
		return "", "", false
	}
	if rest, is := strings.CutPrefix(trimmed, "Value:"); is && *vertical != "" {
		name, *vertical = *vertical, ""
		return name, strings.TrimSpace(rest), true
	}
	return "", "", false
}
