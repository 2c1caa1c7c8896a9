// Package commandline finds the benchmark tool inside a command: after wrappers
// such as env, timeout, numactl and sudo, and inside shell text (bash -c "…"). Read
// returns what the command will do, what to add to it for live reports, and its
// words without secrets.
//
// Each command is a list of words, and what is found in it refers to the words by
// their index. A wrapper's command is the rest of the list; shell text is one word,
// whose commands are lists again, and what is found there becomes edits of the
// text.
package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Command is what Read makes of a command.
type Command struct {
	// Tool that the command starts, nil if it is none that is known.
	Tool *tool.Tool
	// Program is the base name of the program after the wrappers.
	Program string
	// Description of the tool's start, zero if Tool is nil. Where shell text
	// starts several tools it is about the first one that reports.
	Description tool.Description
	// Place is where the tool or, if that is not known, the program runs.
	Place tool.Place

	// Start is the command to run: the arguments, with what Added names put in.
	Start []string
	// Added are the arguments that were added, for the message to the user.
	Added []string

	// Redacted is the command as the user gave it, its secrets blanked.
	Redacted []string
	// Password is the one that the tool logs in with: the only secret among its
	// arguments. Empty if there is none or several.
	Password string
	// Secrets are the values to keep out of whatever is stored or shown. Those
	// of the environment are among them.
	Secrets []string
}

// Read reads the command args. Where it doesn't understand one, nothing is
// added to it and its secrets are blanked by general rules.
func Read(args []string, tools []*tool.Tool, env Env) Command {
	r := reader{tools: tools}
	o := r.command(args, surroundings{Env: env}, 0)

	c := Command{Program: o.program, Place: o.place, Start: slices.Clone(args)}
	if main := o.main(); main != nil {
		c.Tool, c.Program, c.Description, c.Place = main.tool, main.program, main.description, main.place
		c.Password = main.password
	}
	if !env.NoInject {
		c.Start, c.Added = o.start(args), o.added
	}
	c.Secrets = known(o.secrets, env)
	c.Redacted = redacted(args, o, c.Secrets)
	c.Program = secret.Text(c.Program)
	return c
}

// known returns all secrets once, the environment's included.
func known(found []string, env Env) []string {
	_, secrets := secret.Arguments("env", env.Environ)
	found = append(found, secrets...)
	var all []string
	for _, s := range found {
		if s != "" && !strings.Contains(s, expansion) && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// redacted returns args without secrets.
func redacted(args []string, o outcome, secrets []string) []string {
	tokens := secret.NewWords(secrets...)
	all := make([]string, len(args))
	for i, a := range args {
		if r, ok := o.redacted[i]; ok {
			a = r
		}
		all[i] = tokens.Text(a)
	}
	return all
}

// Title is a name for the run when the user gives none, such as
// "oltp_read_write 16 threads 127.0.0.1:3306".
func (c Command) Title() string {
	d := c.Description
	var parts []string
	switch {
	case d.Workload != "":
		parts = append(parts, d.Workload)
	case c.Tool != nil:
		parts = append(parts, c.Tool.Name)
	case c.Program != "":
		parts = append(parts, c.Program)
	}
	if d.Command != "" && d.Command != "run" {
		parts = append(parts, d.Command)
	}
	switch {
	case d.Threads == 1:
		parts = append(parts, "1 thread")
	case d.Threads > 1:
		parts = append(parts, fmt.Sprintf("%d threads", d.Threads))
	}
	if d.Target != "" {
		parts = append(parts, d.Target)
	}
	return secret.New(c.Secrets...).Text(strings.Join(parts, " "))
}
