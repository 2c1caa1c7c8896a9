package sweep

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// CheckHook returns an error if a hook has a placeholder in a place where its value can't be
// quoted, such as within quotes.
func CheckHook(command string, sets []Set) error {
	for _, s := range sets {
		token := "x" + rand.Text()
		text := Fill(command, map[string]string{s.Name: token})
		if text == command {
			continue
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
		if err != nil {
			return fmt.Errorf("{%s} in a hook that can't be read (%w): use \"$%s\"", s.Name, err, variable(s.Name))
		}
		if strings.Count(text, token) != bare(file, token) {
			return fmt.Errorf("{%s} is not a word of its own in a hook, but in quotes or the like, where its value can't be "+
				"quoted: use \"$%s\"", s.Name, variable(s.Name))
		}
	}
	return nil
}

// bare counts the occurrences of a token in unquoted words, where a quoted value can replace it.
func bare(file *syntax.File, token string) int {
	n := 0
	var excluded []bool // for each enclosing node: whether it rules out such a place
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			excluded = excluded[:len(excluded)-1]
			return true
		}
		inner := len(excluded) > 0 && excluded[len(excluded)-1]
		switch x := node.(type) {
		case *syntax.DblQuoted, *syntax.SglQuoted, *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.ParamExp:
			inner = true
		case *syntax.CmdSubst:
			inner = inner || x.Backquotes
		case *syntax.Redirect:
			inner = inner || x.Hdoc != nil
		case *syntax.Word:
			for _, part := range x.Parts {
				if l, ok := part.(*syntax.Lit); ok && !inner && !strings.Contains(l.Value, `\`+token) {
					n += strings.Count(l.Value, token)
				}
			}
		}
		excluded = append(excluded, inner)
		return true
	})
	return n
}

// variable returns the name of the environment variable with a set's value.
func variable(set string) string { return "BENCHWATCH_" + strings.ToUpper(set) }

// environment returns the environment of a step's hooks: its values as BENCHWATCH_NAME, and also as
// SWEEP_NAME.
func (s *Sweep) environment(step *Step) []string {
	env := append(os.Environ(), "SWEEP_ID="+s.ID, "SWEEP_RUN="+step.RunID)
	for name, value := range step.filling() {
		env = append(env, variable(name)+"="+value, "SWEEP_"+strings.ToUpper(name)+"="+value)
	}
	return env
}

// hookText returns a hook in which the step's values, quoted for the shell, replace the
// placeholders.
func hookText(command string, step *Step) string {
	quoted := map[string]string{}
	for name, value := range step.filling() {
		quoted[name] = table.ShellWord(value)
	}
	return Fill(command, quoted)
}

// hook runs a shell command with the step's values, quoted in place of {name} and in the
// environment.
func (r *Runner) hook(ctx context.Context, log io.Writer, name, command string, step *Step) error {
	if command == "" {
		return nil
	}
	if err := CheckHook(command, r.Sweep.Sets); err != nil { // from a sweep.json of another version
		return err
	}
	if err := Shell(ctx, hookText(command, step), r.Sweep.environment(step), log); err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	return nil
}

// afterwards runs the hook after a run. If the hook fails, the step is done nevertheless.
func (r *Runner) afterwards(ctx context.Context, step *Step) {
	log, closeLog, err := r.log()
	if err != nil {
		r.Notice("  %v", err)
		return
	}
	defer closeLog()
	if err := r.hook(ctx, log, "after", r.Commands.After, step); err != nil && ctx.Err() == nil {
		r.Notice("  %v", err)
	}
}
