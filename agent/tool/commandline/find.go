package commandline

import (
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// maxDepth bounds how deep commands may stand in each other.
const maxDepth = 16

// expansion stands in a word for what only a shell can work out, such as $X.
// No argument of a process can hold this byte.
const expansion = "\x00"

// word is one word of a command.
type word struct {
	value string
	// index of the argument, or of the word of shell text, that this word is.
	// With part it is only value[from:to] of it.
	index    int
	part     bool
	from, to int
}

func values(words []word) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.value
	}
	return all
}

// call is one start of a tool that was found.
type call struct {
	tool        *tool.Tool
	program     string
	description tool.Description
}

// edit replaces text[from:to].
type edit struct {
	from, to int
	with     string
}

// outcome is what was found in a command. The maps' keys are words' indexes.
type outcome struct {
	calls   []call
	program string // the last one found behind wrappers

	before   map[int][]string // what to insert before a word
	replaced map[int]string   // words with something inserted in their text
	inserted map[int][]edit   // the same, as edits
	redacted map[int]string   // words without their secrets
	blanked  map[int][]edit   // the same, as edits

	added, secrets []string
}

func newOutcome() outcome {
	return outcome{
		before: map[int][]string{}, replaced: map[int]string{}, inserted: map[int][]edit{},
		redacted: map[int]string{}, blanked: map[int][]edit{},
	}
}

// main is the call that the command is about: the first one that reports.
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

// started returns args with what is to be inserted.
func (o *outcome) started(args []string, plain bool) []string {
	if plain {
		return slices.Clone(args)
	}
	var all []string
	for i := 0; i <= len(args); i++ {
		all = append(all, o.before[i]...)
		if i == len(args) {
			break
		}
		if text, ok := o.replaced[i]; ok {
			all = append(all, text)
		} else {
			all = append(all, args[i])
		}
	}
	return all
}

// insert puts args before words[at], or behind the last word.
func (o *outcome) insert(words []word, at int, args []string) {
	behind := at == len(words)
	if behind {
		at--
	}
	w := words[at]
	if !w.part {
		if behind {
			w.index++
		}
		o.before[w.index] = append(o.before[w.index], args...)
	} else if text, ok := quoteAll(args); ok {
		if behind {
			o.inserted[w.index] = append(o.inserted[w.index], edit{w.to, w.to, " " + text})
		} else {
			o.inserted[w.index] = append(o.inserted[w.index], edit{w.from, w.from, text + " "})
		}
	} else {
		return
	}
	o.added = append(o.added, args...)
}

// replace gives w another text to start with.
func (o *outcome) replace(w word, text string) {
	if !w.part {
		o.replaced[w.index] = text
	} else if quoted, ok := quoteAll([]string{text}); ok {
		o.inserted[w.index] = append(o.inserted[w.index], edit{w.from, w.to, quoted})
	}
}

// redact gives w another text to show.
func (o *outcome) redact(w word, text string) {
	if w.part {
		o.blanked[w.index] = append(o.blanked[w.index], edit{w.from, w.to, shown(text)})
	} else {
		o.redacted[w.index] = text
	}
}

// split finishes the word at index, of which the command's words are parts.
func (o *outcome) split(index int, original string) {
	if edits := o.inserted[index]; len(edits) > 0 {
		o.replaced[index] = apply(original, edits)
	}
	o.redacted[index] = secret.Text(apply(original, o.blanked[index]))
}

func (o *outcome) merge(other outcome) {
	o.calls = append(o.calls, other.calls...)
	o.program = other.program
	o.added = append(o.added, other.added...)
	o.secrets = append(o.secrets, other.secrets...)
	maps.Copy(o.before, other.before)
	maps.Copy(o.replaced, other.replaced)
	maps.Copy(o.redacted, other.redacted)
	maps.Copy(o.inserted, other.inserted)
	maps.Copy(o.blanked, other.blanked)
}

type reader struct {
	tools []*tool.Tool
}

// command reads the words of one command.
func (r *reader) command(words []word, env surroundings, depth int) outcome {
	o := newOutcome()
	for len(words) > 0 {
		if isAssignment(words[0].value) {
			env = assign(env, words[0].value)
			o.general("", words[:1])
			words = words[1:]
			continue
		}
		name := base(words[0].value)
		o.program = name
		if t := r.match(name, words[1:]); t != nil {
			r.describe(&o, t, words, env)
			return o
		}
		if depth >= maxDepth {
			break
		}
		text, next := -1, -1
		w, wraps := wrappers[name]
		if shells[name] {
			text, next = shellText(words)
		} else if wraps {
			next, text, wraps = w.skip(words)
		}
		switch {
		case text >= 0:
			o.general(name, words[:text])
			o.general("", words[text+1:])
			r.nested(&o, words[text], env, depth+1)
			return o
		case name == "env":
			if at, behind, ok := splitString(words); ok {
				o.general(name, words[:at])
				r.splitWord(&o, words[at], words[behind:], env.through(words[1:at]), depth+1)
				return o
			}
		}
		if next <= 0 {
			break
		}
		if !shells[name] && !wraps {
			break
		}
		if name == "env" || name == "sudo" {
			env = env.through(words[1:next])
		}
		env.nowhere = env.nowhere || w.remote
		o.general(name, words[:next])
		words = words[next:]
	}
	r.unknown(&o, words, env, depth)
	return o
}

// unknown reads the words of a program that is neither a tool nor a wrapper.
// If it starts a tool, that stands behind a "--".
func (r *reader) unknown(o *outcome, words []word, env surroundings, depth int) {
	if len(words) == 0 {
		return
	}
	name := base(words[0].value)
	for i, w := range words {
		if w.value != "--" || i == 0 || i+1 == len(words) || depth >= maxDepth {
			continue
		}
		if inner := r.command(words[i+1:], env, depth+1); len(inner.calls) > 0 {
			o.general(name, words[:i])
			o.merge(inner)
			return
		}
		break
	}
	o.general(name, words)
}

func (r *reader) match(name string, args []word) *tool.Tool {
	for _, t := range r.tools {
		if t.Match(name) || t.MatchArgs != nil && t.MatchArgs(name, values(args)) {
			return t
		}
	}
	return nil
}

// describe takes what the tool says of its arguments, words[0] being the
// program.
func (r *reader) describe(o *outcome, t *tool.Tool, words []word, env surroundings) {
	args := words[1:]
	invocation := tool.Invocation{Program: base(words[0].value), Args: values(args), Getenv: env.getenv}
	if env.ReadFile != nil {
		invocation.ReadFile = env.readFile
	}
	d := t.Describe(invocation)

	o.secrets = append(o.secrets, d.Secrets...)
	if len(d.Redacted) == len(args) {
		for i, w := range args {
			if d.Redacted[i] != w.value {
				o.redact(w, d.Redacted[i])
			}
		}
	} else {
		o.general(words[0].value, words)
	}
	d = withoutExpansions(d, args)
	d.Insert = slices.DeleteFunc(slices.Clone(d.Insert), func(in tool.Insertion) bool {
		return in.At < 0 || in.At > len(args) || len(in.Args) == 0
	})
	for _, in := range d.Insert {
		o.insert(words, in.At+1, in.Args)
	}
	if len(d.Insert) > 0 && !env.NoInject {
		invocation.Args = inserted(args, d.Insert)
		insert, redacted := d.Insert, d.Redacted
		d = withoutExpansions(t.Describe(invocation), args)
		d.Insert, d.Redacted = insert, redacted
	}
	o.calls = append(o.calls, call{tool: t, program: base(words[0].value), description: d})
}

// inserted returns the values of args with what is to be inserted.
func inserted(args []word, insert []tool.Insertion) []string {
	var all []string
	for i := 0; i <= len(args); i++ {
		for _, in := range insert {
			if in.At == i {
				all = append(all, in.Args...)
			}
		}
		if i < len(args) {
			all = append(all, args[i].value)
		}
	}
	return all
}

// withoutExpansions drops from d what depends on arguments that only a shell
// can expand. If such an argument could itself be an option, nothing is
// inserted: it may be the one that would be.
func withoutExpansions(d tool.Description, args []word) tool.Description {
	unknown, options := false, false
	for _, w := range args {
		unknown = unknown || strings.Contains(w.value, expansion)
		options = options || strings.HasPrefix(w.value, expansion)
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
	for i, v := range d.Redacted {
		d.Redacted[i] = strings.ReplaceAll(v, expansion, "$")
	}
	d.Secrets = slices.DeleteFunc(d.Secrets, func(s string) bool { return strings.Contains(s, expansion) })
	return d
}
