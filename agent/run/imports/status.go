package imports

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/galera"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// Server is the information about one server in dumps.
type Server struct {
	// Paths are the files that had some.
	Paths []string
	// Name of its machine; "server" if unknown.
	Name string
	// Version, Flavour and Settings are known if variables were dumped.
	Version, Flavour string
	Settings         engine.Settings
	// Before and After are counters around the run; nil without comparable ones.
	Before, After *engine.Status
	// Problem is why existing counters are left out.
	Problem string
}

// kinds are words that mark a file name as a dump, moments those for its place in the sequence;
// noise may occur too.
var (
	kinds = []string{"status", "variables", "vars"}
	first = []string{"before", "begin", "start", "pre"}
	last  = []string{"after", "end", "post"}
	noise = []string{"mysql", "mariadb", "mysqladmin", "show", "global", "extended", "tsv", "csv"}
)

// maxDump is more than thousands of snapshots, maxHead more than one, in bytes.
const maxDump, maxHead = 128 << 20, 1 << 20

// dump is a file, described by its name.
type dump struct {
	path string
	// moment is 0 before the run, 2 after it, otherwise 1; number orders several in between.
	moment, number int
	// settings: it is named as a dump of variables.
	settings bool
	// shared: it belongs to several logs, so only its variables are used.
	shared bool
}

// dumpNamed splits the words of a file name into those of a log's name and the rest. ok is false if
// it is not the name of a dump.
func dumpNamed(path string, words []string) (own []string, d dump, ok bool) {
	d = dump{path: path, moment: 1}
	numbered := false // the previous word can have a number: status.2
	for _, word := range words {
		n, err := strconv.Atoi(word)
		after := numbered
		numbered = slices.Contains(kinds, word)
		switch {
		case numbered:
			ok, d.settings = true, d.settings || word != "status"
		case slices.Contains(noise, word):
		case slices.Contains(first, word):
			d.moment = 0
		case slices.Contains(last, word):
			d.moment = 2
		case after && err == nil:
			d.number = n
		default:
			own = append(own, word)
		}
	}
	return own, d, ok
}

// isDump reports whether a file is a dump, by its name and its first lines.
func isDump(path string, words []string) bool {
	if _, _, ok := dumpNamed(path, words); !ok {
		return false
	}
	found := false
	_ = read(path, maxHead, func(mysql.Values) bool {
		found = true
		return false
	})
	return found
}

// Server returns the contents of the dumps that belong to a log of the folder; nil without dumps:
// run-8.status.before.txt, run-8.status.after.txt and run-8.variables.txt for run-8.log. alone: the
// folder has no other benchmark log, so status.before.txt belongs to it. Variables can belong to
// several logs that share a prefix: Tier12G.vars.txt for Tier12G_RW_16th.log.
func (f *Folder) Server(name string, alone bool) (*Server, error) {
	want := slices.DeleteFunc(f.names.words(name), func(w string) bool { return slices.Contains(noise, w) })
	var files []dump
	if len(want) > 0 {
		files = append(files, f.dumps[strings.Join(want, " ")]...)
	}
	if alone {
		files = append(files, f.dumps[""]...)
	}
	files = slices.DeleteFunc(files, func(d dump) bool { return filepath.Base(d.path) == name })
	slices.SortStableFunc(files, func(a, b dump) int { return cmp.Or(a.moment-b.moment, a.number-b.number) })
	for n := len(want) - 1; n > 0; n-- {
		shared := f.dumps[strings.Join(want[:n], " ")]
		if i := slices.IndexFunc(shared, func(d dump) bool { return d.settings && filepath.Base(d.path) != name }); i >= 0 {
			closest := shared[i]
			closest.shared = true
			files = append(files, closest) // last: the log's own variables take precedence
			break
		}
	}
	return readAll(files)
}

// readAll uses the first variables, and the first and the last status.
func readAll(files []dump) (*Server, error) {
	var variables, before, after mysql.Values
	s := &Server{Name: "server"}
	for _, f := range files {
		used := false
		err := read(f.path, maxDump, func(v mysql.Values) bool {
			switch _, status := v["Uptime"]; {
			case status && f.shared:
			case !status && variables == nil:
				variables, used = v, true
			case status && before == nil:
				before, used = v, true
			case status:
				after, used = v, true
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		if used {
			s.Paths = append(s.Paths, f.path)
		}
	}
	if len(s.Paths) == 0 {
		return nil, nil
	}
	return s, s.decode(variables, before, after)
}

func (s *Server) decode(variables, before, after mysql.Values) error {
	server := &mysql.Server{Variables: mysql.Values{}}
	details := []mysql.Detail{galera.New()}
	if variables != nil {
		var err error
		if server, err = mysql.NewServer(variables); err != nil {
			return err
		}
		s.Version, s.Flavour = server.Version, server.Flavour
		s.Name = cmp.Or(variables["hostname"], s.Name)
		s.Settings = mysql.DecodeSettings(server, variables, details)
	}
	if before == nil {
		return nil
	}
	if after == nil {
		s.Problem = "there is only one status: differences need one from before and one from after the run"
		return nil
	}
	from, _ := before.Number("Uptime")
	to, _ := after.Number("Uptime")
	if to < from {
		s.Problem = "the uptime of the last status is less than that of the first: the server was restarted between them, or they are the wrong way round or differences already (mysqladmin -r)"
		return nil
	}
	var err error
	if s.Before, err = counters(server, before, details); err == nil {
		s.After, err = counters(server, after, details)
	}
	return err
}

// counters returns the values of a status that only grow. Others are from an instant outside the
// run.
func counters(server *mysql.Server, v mysql.Values, details []mysql.Detail) (*engine.Status, error) {
	s, err := mysql.Decode(context.Background(),
		&mysql.Tick{Target: &engine.Target{Engine: record.DumpEngine}, Server: server, Status: v}, refusing{}, details)
	if err != nil {
		return nil, err
	}
	s.Position, s.Missing = nil, nil
	s.Values = slices.DeleteFunc(s.Values, func(v engine.Value) bool {
		return v.Metric.Kind != measure.Counter && v.Metric != galera.LastCommitted
	})
	return s, nil
}

// refusing answers no statement.
type refusing struct{}

// Rows implements mysql.Querier.
func (refusing) Rows(context.Context, string) ([]mysql.Row, error) {
	return nil, mysql.ErrUnknownStatement
}

// mostVariables bounds a snapshot; a server has about 1000.
const mostVariables = 10000

// read calls visit for each snapshot of status or variables in a file, until visit returns false.
// It reads at most limit bytes.
func read(path string, limit int64, visit func(mysql.Values) bool) error {
	in, err := follow.OpenFile(path)
	if err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	defer in.Close()
	lines := bufio.NewScanner(io.LimitReader(in, limit))
	lines.Buffer(nil, maxLine)
	values, vertical, more := mysql.Values{}, "", true
	end := func() {
		_, status := values["Uptime"]
		_, questions := values["Questions"]
		_, version := values["version"]
		_, connections := values["max_connections"]
		if more && (status && questions || version && connections) {
			more = visit(values)
		}
		values = mysql.Values{}
	}
	for more && lines.Scan() {
		name, value, ok := row(lines.Text(), &vertical)
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
		return fmt.Errorf("read dump: %w", err)
	}
	return nil
}

// row parses a line: a table row with tabs, or one of the two lines of vertical output, whose name
// is stored in vertical.
func row(line string, vertical *string) (name, value string, ok bool) {
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
