package hammerdb

import (
	"path"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// script is what a script of HammerDB sets, in Tcl or Python. Loops and conditions are not evaluated: the last value of a
// setting counts, and a value that the script computes is unknown.
type script struct {
	db      database
	bench   string            // TPC-C, TPROC-H …
	values  map[string]string // by "dictionary setting": connection maria_host
	users   string            // vuset vu
	refresh string            // of the transaction counter in seconds
	counter bool
	loops   bool            // it has a loop, perhaps over runs
	calls   map[string]bool // commands without arguments that matter
	getenv  func(string) string
}

// readScript reads the script that the arguments name: auto FILE.
func readScript(in *tool.Invocation) script {
	s := script{values: map[string]string{}, calls: map[string]bool{}, getenv: in.Getenv}
	args := in.Args
	for i, a := range args {
		if path.Base(a) == program {
			args = args[i+1:]
			break
		}
	}
	for i, a := range args {
		if a != "auto" || i+1 >= len(args) {
			continue
		}
		text, err := in.Read(args[i+1])
		if err != nil {
			return s
		}
		for line := range strings.Lines(string(text)) {
			s.line(strings.TrimSpace(line), in.WithSecrets)
		}
	}
	return s
}

// line reads one command of a script.
func (s *script) line(line string, withSecrets bool) {
	for command := range strings.SplitSeq(line, ";") {
		words := s.words(strings.TrimSpace(command))
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "buildschema", "deleteschema", "checkschema", "vurun", "tcstart":
			s.calls[words[0]] = true
			s.counter = s.counter || words[0] == "tcstart"
		case "for", "while":
			s.loops = true
		case "foreach":
			s.loops = s.loops || len(words) < 3 || strings.ContainsAny(words[2], " $[")
		case "set", "jobid": // set jobid [ vurun ]
			s.calls["vurun"] = s.calls["vurun"] || strings.Contains(command, "vurun")
		}
		if len(words) < 3 {
			continue
		}
		switch words[0] + " " + words[1] {
		case "dbset db":
			s.db = databases[words[2]]
		case "dbset bm":
			s.bench = words[2]
		case "vuset vu":
			s.users = words[2]
		case "tcset refreshrate":
			s.refresh = words[2]
		}
		if words[0] == "diset" && len(words) > 3 {
			value := words[3]
			if !withSecrets {
				value = secret.Value(words[2], value)
			}
			s.values[words[1]+" "+words[2]] = value
		}
	}
}

// words splits a command of Tcl, `diset tpcc maria_user h`, or of Python, `diset('tpcc','maria_user','h')`.
func (s *script) words(command string) []string {
	if strings.HasPrefix(command, "#") {
		return nil
	}
	separators := " \t"
	if name, rest, ok := strings.Cut(command, "("); ok && strings.HasSuffix(command, ")") && !strings.ContainsAny(name, " $[") {
		command, separators = name+","+strings.TrimSuffix(rest, ")"), ","
	}
	var words []string
	for command = strings.TrimLeft(command, separators+" "); command != ""; command = strings.TrimLeft(command, separators+" ") {
		var word string
		word, command = cutWord(command, separators)
		words = append(words, s.value(word))
	}
	return words
}

// closers are the ends of quoted words.
var closers = map[byte]byte{'{': '}', '"': '"', '\'': '\''}

// cutWord returns the first word of a command, without its quotes, and the rest.
func cutWord(command, separators string) (word, rest string) {
	if end, quoted := closers[command[0]]; quoted {
		if i := strings.IndexByte(command[1:], end); i >= 0 {
			return strings.TrimSpace(command[1 : i+1]), command[i+2:]
		}
	}
	if i := strings.IndexAny(command, separators); i >= 0 {
		return strings.TrimSpace(command[:i]), command[i:]
	}
	return strings.TrimSpace(command), ""
}

// value resolves a variable of the environment, $::env(NAME); other variables and commands are unknown.
func (s *script) value(word string) string {
	if name, ok := strings.CutPrefix(word, "$::env("); ok && s.getenv != nil {
		return s.getenv(strings.TrimSuffix(name, ")"))
	}
	for _, reader := range []string{"os.environ[", "os.getenv(", "os.environ.get("} {
		if name, ok := strings.CutPrefix(word, reader); ok && s.getenv != nil {
			return s.getenv(strings.Trim(name, `'")]`))
		}
	}
	if strings.HasPrefix(word, "$") || strings.HasPrefix(word, "[") {
		return ""
	}
	return word
}

// connection returns a setting of the connection.
func (s *script) connection(name, otherwise string) string {
	return s.setting("connection", name, otherwise)
}

// benchmark returns a setting of the benchmark.
func (s *script) benchmark(name, otherwise string) string {
	if s.workload() == olap {
		if v := s.setting("tpch", "tpch_"+name, ""); v != "" {
			return v
		}
		return s.setting("tpch", name, otherwise)
	}
	return s.setting("tpcc", name, otherwise)
}

func (s *script) setting(dictionary, name, otherwise string) string {
	if v := s.values[dictionary+" "+s.db.prefix+"_"+name]; v != "" && v != "null" {
		return v
	}
	return otherwise
}

// verb returns what the script does; empty if it is unknown.
func (s *script) verb() string {
	switch {
	case s.calls["vurun"]:
		return verbRun
	case s.calls["buildschema"]:
		return verbPrepare
	case s.calls["checkschema"]:
		return verbCheck
	case s.calls["deleteschema"]:
		return verbCleanup
	}
	return ""
}

func (s *script) workload() string {
	switch s.bench {
	case "TPC-C", "TPROC-C":
		return oltp
	case "TPC-H", "TPROC-H":
		return olap
	}
	if s.db.prefix != "" {
		return oltp // the default
	}
	return ""
}
