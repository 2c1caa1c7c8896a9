package sysbench

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// options are those of a command line and its configuration files. Names are in lower case with
// underscores, since sysbench treats `-` and `_` alike.
type options struct {
	*option.Set
	// words are the arguments that are not options, by index.
	words []int
	// unreadFiles are the configuration files that could not be read.
	unreadFiles []string
}

// canonical returns a name in the form that options uses.
func canonical(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(name), "-", "_"))
}

func parseOptions(in tool.Invocation) *options {
	o := &options{Set: option.New()}
	var files []string
	for i := 0; i < len(in.Args); i++ {
		arg := in.Args[i]
		body, isOption := strings.CutPrefix(arg, "--")
		if !isOption {
			o.words = append(o.words, i)
			continue
		}
		rawName, value, assigned := strings.Cut(body, "=")
		name := canonical(rawName)
		switch {
		case assigned:
		case i+1 < len(in.Args) && in.Args[i+1] == secret.Blank:
			i++ // sysbench requires `=`, but users write a blank
			value = in.Args[i]
		default:
			value = "on"
		}
		if name == "config_file" {
			files = append(files, value)
			continue
		}
		o.Values[name] = value
	}
	for _, file := range files {
		o.readFile(in, file)
	}
	return o
}

// readFile reads a configuration file: one name=value per line, with optional quotes around the
// value and an optional comment. The command line wins.
func (o *options) readFile(in tool.Invocation, file string) {
	data, err := in.Read(file)
	if err != nil {
		o.unreadFiles = append(o.unreadFiles, file)
		return
	}
	for line := range strings.Lines(string(data)) {
		rawName, rest, assigned := strings.Cut(line, "=")
		name := canonical(rawName)
		if !assigned || name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		o.SetDefault(name, fileValue(rest))
	}
}

// fileValue reads a value of a configuration file: words and quoted strings, separated by commas or
// blanks, before any comment (read_config in src/sb_options.c). It joins them by commas.
func fileValue(s string) string {
	var values []string
	for {
		s = strings.TrimLeft(s, " \t\r\n\v\f")
		switch {
		case s == "" || s[0] == '#':
			return strings.Join(values, ",")
		case s[0] == '\'' || s[0] == '"':
			value, rest, closed := strings.Cut(s[1:], s[:1])
			values = append(values, strings.TrimRight(value, "\r\n"))
			if !closed {
				return strings.Join(values, ",")
			}
			_, s, _ = strings.Cut(rest, ",")
		default:
			n := strings.IndexAny(s, ", \t\r\n\v\f")
			if n < 0 {
				n = len(s)
			}
			values = append(values, s[:n])
			s = s[min(n+1, len(s)):]
		}
	}
}
