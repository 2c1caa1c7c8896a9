// Package commandline finds the benchmark tool inside a command: after wrappers such as env,
// timeout, numactl and sudo, and inside shell text (bash -c "…"). Read returns what the command
// will do, the arguments to add for live reports, and the words without secrets.
//
// A command is a list of words, and findings refer to words by index. A wrapper's command is the
// rest of the list. Shell text is one word: its commands are lists again, and findings in them
// become edits of the text.
package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Command is the result of Read.
type Command struct {
	// Tool is the tool that the command starts, nil if it starts no known tool.
	Tool *tool.Tool
	// Program is the base name of the program after the wrappers.
	Program string
	// Description describes the start of the tool; it is zero if Tool is nil. If shell text starts
	// several tools, it describes the first one that reports.
	Description tool.Description
	// Place is where the tool runs, or the program if the tool is not known.
	Place tool.Place

	// Start is the command to run, including the Added arguments.
	Start []string
	// Added are the arguments added to the command, for a message to the user.
	Added []string

	// Redacted is the command as the user gave it, with secrets blanked.
	Redacted []string
	// Login is how the tool logs in. The password is the only secret among the arguments, otherwise what
	// the tool reads from its files and environment.
	Login tool.Login
	// Secrets are the values that must not be stored or shown, including those of the environment.
	Secrets []string
}

// Read reads the command args. It adds nothing to a command that it does not understand, and blanks
// the secrets there by general rules.
func Read(args []string, tools []*tool.Tool, env Env) Command {
	r := reader{tools: tools}
	o := r.command(args, surroundings{Env: env}, 0)

	c := Command{Program: o.program, Place: o.place, Start: slices.Clone(args)}
	if main := o.main(); main != nil {
		c.Tool, c.Program, c.Description, c.Place = main.tool, main.program, main.description, main.place
		c.Login = main.login
	}
	if !env.NoInject {
		c.Start, c.Added = o.start(args), o.added
	}
	c.Secrets = known(append(o.secrets, c.Login.Password), env)
	c.Redacted = redacted(args, o, c.Secrets)
	c.Program = secret.Text(c.Program)
	return c
}

// known returns all secrets, also the secrets in the environment, without duplicates.
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

// Title returns a name for a run without a title from the user, such as "oltp_read_write 16 threads
// 127.0.0.1:3306".
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
