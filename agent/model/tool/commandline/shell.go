package commandline

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// maxText limits the shell text that is parsed, in bytes.
const maxText = 64 << 10

// simpleCommand returns the assignments and words of shell text that is a single command, and their
// values. It returns nothing for any other text.
func simpleCommand(src string) (nodes []syntax.Node, values []string) {
	file, err := parse(src)
	if err != nil || strings.Contains(src, expansion) || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 {
		return nil, nil
	}
	call, _ := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if call == nil || len(call.Args) == 0 {
		return nil, nil
	}
	for _, a := range call.Assigns {
		from, to := offsets(a)
		nodes, values = append(nodes, a), append(values, src[from:to])
	}
	for _, w := range call.Args {
		nodes, values = append(nodes, w), append(values, static(w))
	}
	return nodes, values
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

// textReader collects findings while it walks through shell text.
type textReader struct {
	*reader
	src            string
	env            surroundings
	depth          int
	out            outcome
	started, shown []edit

	assigns []*syntax.Assign
	// secret are variables used where a password is expected. options are variables used as a word
	// of a program, with the program's name.
	secret  map[string]bool
	options map[string]string
}

// text returns the findings in shell text, the text to start, and the text without secrets.
func (r *reader) text(src string, env surroundings, depth int) (found outcome, started, redacted string) {
	file, err := parse(src)
	if err != nil || depth > maxDepth {
		return outcome{secrets: secret.Values(src)}, src, secret.Text(src)
	}
	t := textReader{reader: r, src: src, env: env, depth: depth, secret: map[string]bool{}, options: map[string]string{}}
	syntax.Walk(file, t.node)
	t.hideAssigned()
	shown := apply(src, t.shown)
	t.out.secrets = append(t.out.secrets, secret.Values(shown)...)
	return t.out, apply(src, t.started), secret.Text(shown)
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

// assign keeps an assignment for hideAssigned.
func (t *textReader) assign(a *syntax.Assign) {
	if a.Name != nil && a.Value != nil {
		t.assigns = append(t.assigns, a)
	}
}

// hideAssigned blanks the values of variables that are secret by name or by use.
func (t *textReader) hideAssigned() {
	for _, a := range t.assigns {
		from, to := offsets(a.Value)
		value := static(a.Value)
		switch program, isOption := t.options[a.Name.Value]; {
		case secret.Name(a.Name.Value) || t.secret[a.Name.Value]:
			t.shown = append(t.shown, edit{from, to, secret.Blank})
			t.out.secrets = append(t.out.secrets, value)
		case isOption:
			words, secrets := secret.Arguments(program, strings.Fields(value))
			if len(secrets) > 0 {
				t.shown = append(t.shown, edit{from, to, shown(strings.Join(words, " "))})
				t.out.secrets = append(t.out.secrets, secrets...)
			}
		}
	}
}

// use keeps the variables in a command's word that are, or may be, secret.
func (t *textReader) use(word syntax.Node, program string, redacted bool) {
	syntax.Walk(word, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil {
			if redacted {
				t.secret[p.Param.Value] = true
			} else {
				t.options[p.Param.Value] = program
			}
		}
		return true
	})
}

func withAssigns(env surroundings, assigns []*syntax.Assign) surroundings {
	for _, a := range assigns {
		if a.Name != nil && !a.Naked {
			env = env.with(a.Name.Value, static(a.Value))
		}
	}
	return env
}

// quiet are commands that never name a run.
var quiet = map[string]bool{
	"cd": true, "echo": true, "export": true, "mkdir": true, "printf": true, "set": true, "sleep": true,
	"source": true, ".": true, "true": true, "ulimit": true, "umask": true, "tee": true,
}

func (t *textReader) call(c *syntax.CallExpr, redirects []*syntax.Redirect) {
	if len(c.Args) == 0 {
		t.env = withAssigns(t.env, c.Assigns)
		return
	}
	words, nodes := make([]string, len(c.Args)), make([]syntax.Node, len(c.Args))
	for i, a := range c.Args {
		words[i], nodes[i] = static(a), a
	}
	if words[0] == "cd" && len(words) > 1 {
		dir := words[len(words)-1]
		t.env = t.env.chdir(dir, !strings.Contains(dir, expansion) && dir != "-" && !strings.HasPrefix(dir, "~"))
	}
	o := t.command(words, withAssigns(t.env, c.Assigns), t.depth)
	if t.out.program == "" && !quiet[o.program] {
		t.out.program = o.program
	}
	for i, node := range nodes {
		_, redacted := o.redacted[i]
		t.use(node, o.program, redacted)
	}
	started, shown, ok := o.edits(t.src, nodes)
	t.shown = append(t.shown, shown...)
	if ok {
		t.started = append(t.started, started...)
		t.out.added = append(t.out.added, o.added...)
	}
	if len(o.calls) > 0 && hides(redirects) {
		d := &o.calls[0].description
		d.Notes = append(d.Notes, "the output of "+o.calls[0].program+" goes to a file, where it isn't seen: use | tee FILE")
	}
	t.out.calls = append(t.out.calls, o.calls...)
	t.out.secrets = append(t.out.secrets, o.secrets...)
}

// edits returns the findings in a command of shell text as edits of the text; nodes are the
// command's words. ok is false if a text can't be quoted.
func (o *outcome) edits(src string, nodes []syntax.Node) (started, redacted []edit, ok bool) {
	ok = true
	for _, in := range o.insert {
		text, quotable := quoteAll(in.Args)
		ok = ok && quotable
		if in.At < len(nodes) {
			from, _ := offsets(nodes[in.At])
			started = append(started, edit{from, from, text + " "})
		} else {
			_, end := offsets(nodes[len(nodes)-1])
			started = append(started, edit{end, end, " " + text})
		}
	}
	for i, node := range nodes {
		from, to := offsets(node)
		if text, found := o.started[i]; found {
			text, quotable := requote(node, src[from:to], text)
			ok = ok && quotable
			started = append(started, edit{from, to, text})
		}
		if text, found := o.redacted[i]; found {
			redacted = append(redacted, edit{from, to, shown(text)})
		}
	}
	return started, redacted, ok
}

// hides reports whether a redirection hides standard output.
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

// edit replaces text[from:to].
type edit struct {
	from, to int
	with     string
}

// apply returns text with edits. It drops an edit inside another one.
func apply(text string, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.from-b.from, b.to-a.to) })
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

// static returns a word's value, in which expansion replaces each part that a shell would expand.
func static(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			unescape(&b, p.Value, "")
		case *syntax.SglQuoted:
			if p.Dollar && strings.Contains(p.Value, `\`) {
				b.WriteString(expansion)
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					unescape(&b, lit.Value, "$`\"\\\n")
				} else {
					b.WriteString(expansion)
				}
			}
		default:
			b.WriteString(expansion)
		}
	}
	return b.String()
}

// unescape writes s without backslashes: without all of them or, if special is not empty, without
// those before a character of special.
func unescape(b *strings.Builder, s, special string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (special == "" || strings.IndexByte(special, s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
}

// quoteAll writes args as words of shell text.
func quoteAll(args []string) (string, bool) {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; plain(a) {
			continue
		}
		q, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			return "", false
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " "), true
}

// plain reports whether every shell takes the argument literally.
func plain(s string) bool {
	return scan.Only(s, scan.Small+scan.Capital+scan.Digits+"-_./=:,@%+")
}

// requote writes value in the form of the word src, so that unchanged parts stay the same byte for
// byte where possible.
func requote(node syntax.Node, src, value string) (string, bool) {
	if w, ok := node.(*syntax.Word); ok && len(w.Parts) == 1 && len(src) >= 2 {
		old := static(w)
		switch p := w.Parts[0].(type) {
		case *syntax.SglQuoted:
			if !p.Dollar && !strings.Contains(value, "'") {
				return "'" + value + "'", true
			}
		case *syntax.DblQuoted:
			if !p.Dollar && src[1:len(src)-1] == old && !strings.ContainsAny(value, "\"$`\\") {
				return `"` + value + `"`, true
			}
		}
	}
	return quoteAll([]string{value})
}

// shown returns text as one word for people to read.
func shown(text string) string {
	if text == "" || strings.ContainsAny(text, " \t\n;|&<>()") && !strings.Contains(text, "'") {
		return "'" + text + "'"
	}
	return text
}
