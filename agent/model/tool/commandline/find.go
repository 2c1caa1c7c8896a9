package commandline

import (
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// maxDepth limits the nesting of commands.
const maxDepth = 16

// expansion stands in a word for a part that only a shell can expand, such as $X. A process
// argument cannot contain this byte.
const expansion = "\x00"

// call is one start of a tool.
type call struct {
	tool        *tool.Tool
	program     string
	description tool.Description
	place       tool.Place
	login       tool.Login
}

// outcome is what a command contains. It refers to words by index.
type outcome struct {
	calls   []call
	program string // the last program after wrappers
	place   tool.Place

	insert   []tool.Insertion
	started  map[int]string // words to start in changed form
	redacted map[int]string // words without their secrets

	added, secrets []string
}

func newOutcome() outcome { return outcome{started: map[int]string{}, redacted: map[int]string{}} }

// main returns the call that describes the command: the first one that reports.
func (o *outcome) main() *call {
	for i, c := range o.calls {
		d := c.description
		if d.Command == "run" || d.ReportInterval > 0 || len(d.Insert) > 0 {
			return &o.calls[i]
		}
	}
	if len(o.calls) > 0 {
		return &o.calls[0]
	}
	return nil
}

// start returns the words to start.
func (o *outcome) start(words []string) []string {
	var all []string
	for i := 0; i <= len(words); i++ {
		for _, in := range o.insert {
			if in.At == i {
				all = append(all, in.Args...)
			}
		}
		if text, ok := o.started[i]; ok {
			all = append(all, text)
		} else if i < len(words) {
			all = append(all, words[i])
		}
	}
	return all
}

// redact sets the text that is shown for the word at i.
func (o *outcome) redact(words []string, i int, text string) {
	if text != words[i] {
		o.redacted[i] = strings.ReplaceAll(text, expansion, "$")
	}
}

// hide blanks secrets in the arguments of a program, words[from:to], and returns the secrets. The
// range may include the program itself.
func (o *outcome) hide(program string, words []string, from, to int) []string {
	redacted, secrets := secret.Arguments(program, words[from:to])
	for i, text := range redacted {
		o.redact(words, from+i, text)
	}
	o.secrets = append(o.secrets, secrets...)
	return redacted
}

// merge adds the outcome of the words that begin at index offset.
func (o *outcome) merge(inner outcome, offset int) {
	o.calls = append(o.calls, inner.calls...)
	o.program, o.place = inner.program, inner.place
	o.added = append(o.added, inner.added...)
	o.secrets = append(o.secrets, inner.secrets...)
	for _, in := range inner.insert {
		o.insert = append(o.insert, tool.Insertion{At: in.At + offset, Args: in.Args})
	}
	for i, text := range inner.started {
		o.started[i+offset] = text
	}
	for i, text := range inner.redacted {
		o.redacted[i+offset] = text
	}
}

type reader struct {
	tools []*tool.Tool
}

// command reads the words of one command.
func (r *reader) command(words []string, env surroundings, depth int) outcome {
	o := newOutcome()
	at := 0
	for at < len(words) {
		rest := words[at:]
		if isAssignment(rest[0]) {
			env = assign(env, rest[0])
			o.hide("", words, at, at+1)
			at++
			continue
		}
		name := base(rest[0])
		o.program = name
		if t := r.match(name, rest[1:]); t != nil {
			r.describe(&o, t, words, at, env)
			return o
		}
		if depth >= maxDepth {
			break
		}
		w := wrappers[name]
		next, text := w.skip(rest)
		if text > 0 {
			o.hide(name, words, at, at+text)
			o.hide("", words, at+text+1, len(words))
			r.nested(&o, words, at+text, env, depth+1)
			return o
		}
		if split, after, ok := splitString(rest); ok && name == "env" {
			o.hide(name, words, at, at+split)
			r.splitWord(&o, words, at+split, at+after, env.through(rest[1:split]), depth+1)
			return o
		}
		if next == 0 {
			break
		}
		if name == "env" || name == "sudo" {
			env = env.through(rest[1:next])
		}
		env.nowhere = env.nowhere || w.remote
		env = env.in(w.place)
		o.hide(name, words, at, at+next)
		at += next
		if w.joined && at == len(words)-1 { // shell text in one word
			r.nested(&o, words, at, env, depth+1)
			return o
		}
	}
	if at < len(words) {
		r.unknown(&o, words, at, env, depth)
	}
	return o
}

// unknown reads the words of a program, words[at], that is neither a tool nor a wrapper. It may
// start a tool after "--".
func (r *reader) unknown(o *outcome, words []string, at int, env surroundings, depth int) {
	name := base(words[at])
	o.place = env.place
	if slices.Contains(elsewhere, name) {
		o.place = tool.PlaceElsewhere
	}
	if i := slices.Index(words[at+1:], "--"); i >= 0 && depth < maxDepth {
		i += at + 1
		if inner := r.command(words[i+1:], env.in(runsIn(name)), depth+1); len(inner.calls) > 0 {
			o.hide(name, words, at, i)
			o.merge(inner, i+1)
			return
		}
	}
	o.hide(name, words, at, len(words))
}

func (r *reader) match(name string, args []string) *tool.Tool {
	for _, t := range r.tools {
		if t.Match(name) || t.MatchArgs != nil && t.MatchArgs(name, args) {
			return t
		}
	}
	return nil
}

// describe adds the tool's description of its arguments; words[at] is the program.
func (r *reader) describe(o *outcome, t *tool.Tool, words []string, at int, env surroundings) {
	program, args := base(words[at]), words[at+1:]
	found := len(o.secrets)
	clean := o.hide(program, words, at+1, len(words))
	login := tool.Login{Password: onlyOne(o.secrets[found:])}
	invocation := tool.Invocation{Program: program, Args: clean, Getenv: env.getenv}
	if env.ReadFile != nil {
		invocation.ReadFile = env.readFile
	}
	d := t.Describe(invocation)
	d = withoutExpansions(d, args)
	d.Insert = slices.DeleteFunc(slices.Clone(d.Insert), func(in tool.Insertion) bool {
		return in.At < 0 || in.At > len(args) || len(in.Args) == 0
	})
	if insert := d.Insert; len(insert) > 0 {
		own := outcome{insert: insert}
		for _, in := range insert {
			own.added = append(own.added, in.Args...)
		}
		if !env.NoInject {
			invocation.Args = own.start(clean)
			d = withoutExpansions(t.Describe(invocation), args)
			d.Insert = insert
		}
		o.merge(own, at+1)
	}
	o.program, o.place = program, env.place
	invocation.Args = args
	login = withoutUnknown(login.Or(t.LoginOf(invocation)))
	o.calls = append(o.calls, call{tool: t, program: program, description: d, place: env.place, login: login})
}

// withoutUnknown removes what only a shell can expand from a login. If a file of TLS is unknown, the check of the
// certificate fails rather than being left out.
func withoutUnknown(l tool.Login) tool.Login {
	for _, field := range []*string{&l.User, &l.Password} {
		if strings.Contains(*field, expansion) {
			*field = ""
		}
	}
	return l
}

// onlyOne returns the value that all values have in common; empty if they differ or a shell expands
// it.
func onlyOne(values []string) string {
	distinct := slices.Compact(slices.Sorted(slices.Values(values)))
	if len(distinct) != 1 || strings.Contains(distinct[0], expansion) {
		return ""
	}
	return distinct[0]
}

// withoutExpansions removes facts that depend on arguments which only a shell can expand. If such
// an argument could be an option, nothing is inserted, since it could be the option to insert.
func withoutExpansions(d tool.Description, args []string) tool.Description {
	unknown, options := false, false
	for _, a := range args {
		unknown = unknown || strings.Contains(a, expansion)
		options = options || strings.HasPrefix(a, expansion)
	}
	if !unknown {
		return d
	}
	if options && len(d.Insert) > 0 {
		d.Insert = nil
		d.Notes = append(d.Notes, "options in shell variables can't be read, so none was added: ask for interval reports there")
	}
	for _, field := range []*string{&d.Command, &d.Workload, &d.Target, &d.Database} {
		if strings.Contains(*field, expansion) {
			*field = ""
		}
	}
	maps.DeleteFunc(d.Labels, func(_, v string) bool { return strings.Contains(v, expansion) })
	return d
}

// nested reads the shell text in the word at i.
func (r *reader) nested(o *outcome, words []string, i int, env surroundings, depth int) {
	if strings.Contains(words[i], expansion) {
		o.redact(words, i, secret.Text(words[i]))
		return
	}
	found, started, redacted := r.text(words[i], env, depth)
	if found.program == "" {
		found.program = o.program
	}
	if started != words[i] {
		o.started[i] = started
	}
	o.redact(words, i, redacted)
	o.merge(found, 0)
}

// splitWord reads a command whose first words are in the word at i and whose other words begin at
// index after (env -S).
func (r *reader) splitWord(o *outcome, words []string, i, after int, env surroundings, depth int) {
	src := words[i]
	nodes, values := simpleCommand(src)
	if len(nodes) == 0 {
		o.redact(words, i, secret.Text(src))
		o.hide("", words, after, len(words))
		return
	}
	n := len(nodes)
	inner := r.command(append(values, words[after:]...), env, depth)
	text := inner // only words from src become edits of it
	if after < len(words) {
		text.insert = slices.DeleteFunc(slices.Clone(inner.insert), func(in tool.Insertion) bool { return in.At >= n })
	}
	started, redacted, ok := text.edits(src, nodes)
	if !ok {
		inner.added = nil
	} else if len(started) > 0 {
		o.started[i] = apply(src, started)
	}
	o.redact(words, i, secret.Text(apply(src, redacted)))

	inner.insert = slices.DeleteFunc(inner.insert, func(in tool.Insertion) bool { return in.At < n || after == len(words) })
	maps.DeleteFunc(inner.started, func(i int, _ string) bool { return i < n })
	maps.DeleteFunc(inner.redacted, func(i int, _ string) bool { return i < n })
	o.merge(inner, after-n)
}
