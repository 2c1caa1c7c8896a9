package commandline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/benchwatch/benchwatch/agent/secret"
)

// maxText bounds the shell text that is parsed.
const maxText = 64 << 10

// textOutcome is what was found in shell text.
type textOutcome struct {
	calls          []call
	program        string
	started        string // the text with what was inserted
	redacted       string
	added, secrets []string
}

// nested reads the shell text that w is.
func (r *reader) nested(o *outcome, w word, env surroundings, depth int) {
	if strings.Contains(w.value, expansion) {
		o.redact(w, secret.Text(w.value))
		return
	}
	t := r.text(w.value, env, depth)
	o.calls = append(o.calls, t.calls...)
	o.added = append(o.added, t.added...)
	o.secrets = append(o.secrets, t.secrets...)
	if t.program != "" {
		o.program = t.program
	}
	if t.started != w.value {
		o.replace(w, t.started)
	}
	if t.redacted != w.value {
		o.redact(w, t.redacted)
	}
}

// splitWord reads a command of which the first words are in w, as env -S has
// it.
func (r *reader) splitWord(o *outcome, w word, rest []word, env surroundings, depth int) {
	file, err := parse(w.value)
	call := simpleCall(file)
	if err != nil || call == nil || w.part {
		o.redact(w, secret.Text(w.value))
		o.general("", rest)
		return
	}
	var words []word
	for _, a := range call.Assigns {
		from, to := offsets(a)
		words = append(words, word{value: w.value[from:to], index: w.index, part: true, from: from, to: to})
	}
	for _, a := range call.Args {
		from, to := offsets(a)
		words = append(words, word{value: static(a), index: w.index, part: true, from: from, to: to})
	}
	inner := r.command(append(words, rest...), env, depth)
	inner.split(w.index, w.value)
	o.merge(inner)
}

// simpleCall returns the only command of file, nil if there is more to it.
func simpleCall(file *syntax.File) *syntax.CallExpr {
	if file == nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 {
		return nil
	}
	call, _ := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if call == nil || len(call.Args) == 0 {
		return nil
	}
	return call
}

func parse(text string) (*syntax.File, error) {
	if len(text) > maxText {
		text = ""
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
}

func offsets(n syntax.Node) (from, to int) {
	return int(n.Pos().Offset()), int(n.End().Offset())
}

// textReader collects what is found while shell text is walked through.
type textReader struct {
	*reader
	src               string
	env               surroundings
	depth             int
	out               textOutcome
	inserted, blanked []edit
}

// text reads shell text.
func (r *reader) text(src string, env surroundings, depth int) textOutcome {
	t := textReader{reader: r, src: src, env: env, depth: depth}
	file, err := parse(src)
	if err != nil || depth > maxDepth {
		return textOutcome{started: src, redacted: secret.Text(src), secrets: secret.Values(src)}
	}
	syntax.Walk(file, t.node)
	t.out.started = apply(src, t.inserted)
	blanked := apply(src, t.blanked)
	t.out.redacted = secret.Text(blanked)
	t.out.secrets = append(t.out.secrets, secret.Values(blanked)...)
	return t.out
}

func (t *textReader) node(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		t.assign(n)
	case *syntax.DeclClause:
		t.env = withAssigns(t.env, n.Args)
	case *syntax.Stmt:
		if call, ok := n.Cmd.(*syntax.CallExpr); ok {
			t.call(call, n.Redirs)
		}
	}
	return true
}

// assign blanks the value of a variable that holds a secret.
func (t *textReader) assign(a *syntax.Assign) {
	if a.Name == nil || a.Value == nil || !secret.Name(a.Name.Value) {
		return
	}
	from, to := offsets(a.Value)
	t.blanked = append(t.blanked, edit{from, to, secret.Blank})
	t.out.secrets = append(t.out.secrets, static(a.Value))
}

func withAssigns(env surroundings, assigns []*syntax.Assign) surroundings {
	for _, a := range assigns {
		if a.Name != nil && !a.Naked {
			env = env.with(a.Name.Value, static(a.Value))
		}
	}
	return env
}

// quiet are commands that no run is named after.
var quiet = map[string]bool{
	"cd": true, "echo": true, "export": true, "mkdir": true, "printf": true, "set": true, "sleep": true,
	"source": true, ".": true, "true": true, "ulimit": true, "umask": true, "tee": true,
}

func (t *textReader) call(c *syntax.CallExpr, redirects []*syntax.Redirect) {
	if len(c.Args) == 0 {
		t.env = withAssigns(t.env, c.Assigns)
		return
	}
	words := make([]word, len(c.Args))
	for i, a := range c.Args {
		words[i] = word{value: static(a), index: i}
	}
	if words[0].value == "cd" && len(words) > 1 {
		dir := words[len(words)-1].value
		t.env = t.env.chdir(dir, !strings.Contains(dir, expansion) && dir != "-" && !strings.HasPrefix(dir, "~"))
	}
	o := t.command(words, withAssigns(t.env, c.Assigns), t.depth)
	if t.out.program == "" && !quiet[o.program] {
		t.out.program = o.program
	}
	t.take(c.Args, o)
	if len(o.calls) > 0 && hides(redirects) {
		d := &o.calls[0].description
		d.Notes = append(d.Notes, "the output of "+o.calls[0].program+" goes to a file, where it isn't seen: use | tee FILE")
	}
	t.out.calls = append(t.out.calls, o.calls...)
	t.out.secrets = append(t.out.secrets, o.secrets...)
}

// take turns what was found in one command into edits of the text.
func (t *textReader) take(args []*syntax.Word, o outcome) {
	_, end := offsets(args[len(args)-1])
	quotable := true
	var inserted []edit
	for i := 0; i <= len(args); i++ {
		if extra := o.before[i]; len(extra) > 0 {
			text, ok := quoteAll(extra)
			quotable = quotable && ok
			if i == len(args) {
				inserted = append(inserted, edit{end, end, " " + text})
			} else {
				from, _ := offsets(args[i])
				inserted = append(inserted, edit{from, from, text + " "})
			}
		}
		if i == len(args) {
			break
		}
		from, to := offsets(args[i])
		if text, found := o.replaced[i]; found {
			text, ok := requote(args[i], t.src[from:to], text)
			quotable = quotable && ok
			inserted = append(inserted, edit{from, to, text})
		}
		if text, found := o.redacted[i]; found {
			t.blanked = append(t.blanked, edit{from, to, shown(text)})
		}
	}
	if quotable {
		t.inserted = append(t.inserted, inserted...)
		t.out.added = append(t.out.added, o.added...)
	}
}

// hides reports whether a redirection takes the standard output away.
func hides(redirects []*syntax.Redirect) bool {
	for _, r := range redirects {
		if r.N != nil && r.N.Value != "1" || r.Word == nil {
			continue
		}
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			if !strings.HasPrefix(static(r.Word), "/dev/std") && static(r.Word) != "/dev/tty" {
				return true
			}
		}
	}
	return false
}

// apply returns text with edits, of which one inside of another is dropped.
func apply(text string, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	var b strings.Builder
	done := 0
	for _, e := range edits {
		if e.from < done || e.to < e.from || e.to > len(text) {
			continue
		}
		b.WriteString(text[done:e.from])
		b.WriteString(e.with)
		done = e.to
	}
	b.WriteString(text[done:])
	return b.String()
}
