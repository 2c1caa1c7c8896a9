package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// command declares the flags and arguments of a command. The default of a flag is the
// value that its variable has then. The name of a flag is LONG or LONG,SHORT.
type command struct{ *cobra.Command }

// newCommand returns a command without arguments. help is one sentence, example a
// command line.
func newCommand(name, help, example string) command {
	c := command{&cobra.Command{Use: name, Short: help, Example: example}}
	c.Flags().SortFlags = false
	c.takes("", "", func([]string) {})
	return c
}

// newParent returns a command that only has commands below it.
func newParent(name, help string, below ...*cobra.Command) *cobra.Command {
	c := newCommand(name, help, "")
	c.AddCommand(below...)
	return c.does(func(Streams) error {
		var names []string
		for _, b := range leaves(c.Command) {
			names = append(names, b.CommandPath())
		}
		return &exitError{Status: exitUsage, Err: fmt.Errorf("%s: a command is missing", c.Name()), Hint: alternatives(names)}
	})
}

// does sets what the command does, after its flags and arguments were declared.
func (c command) does(run func(Streams) error) *cobra.Command {
	completeRuns(c.Command)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return run(Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()})
	}
	return c.Command
}

// Annotations of a command.
const (
	argumentForm = "argument" // NAME, [NAME], NAME... or [NAME...]
	argumentHelp = "argument help"
)

// argument declares the only argument, in the form NAME or [NAME].
func (c command) argument(to *string, form, help string) {
	c.takes(form, help, func(args []string) {
		if len(args) > 0 {
			*to = args[0]
		}
	})
}

// arguments declares any number of arguments, in the form NAME... or [NAME...].
func (c command) arguments(to *[]string, form, help string) {
	c.takes(form, help, func(args []string) { *to = args })
}

func (c command) takes(form, help string, set func([]string)) {
	c.Annotations = map[string]string{argumentForm: form, argumentHelp: help}
	c.Args = func(_ *cobra.Command, args []string) error {
		most := len(args)
		switch {
		case form == "":
			most = 0
		case !strings.Contains(form, "..."):
			most = 1
		}
		if len(args) > most {
			return fmt.Errorf("unexpected argument %q", args[most])
		}
		if len(args) == 0 && form != "" && form[0] != '[' {
			return c.missing(help)
		}
		set(args)
		return nil
	}
}

// missing is the error for a command without its argument.
func (c command) missing(help string) error {
	what, _, _ := strings.Cut(help, "; ")
	return &exitError{Status: exitUsage, Hint: "for example: " + c.Example,
		Err: fmt.Errorf("%s needs %s: %s", below(c.Command), argumentName(c.Command), strings.ToLower(what[:1])+what[1:])}
}

// argumentName is the name of the argument without its brackets and dots.
func argumentName(c *cobra.Command) string { return strings.Trim(c.Annotations[argumentForm], "[.]") }

// value implements pflag.Value. The help shows its type as the placeholder.
type value struct {
	placeholder string
	get         func() string
	set         func(string) error
}

func (v value) String() string     { return v.get() }
func (v value) Set(s string) error { return v.set(s) }
func (v value) Type() string       { return v.placeholder }

func (c command) flag(name, help string, v value) *pflag.Flag {
	long, short, _ := strings.Cut(name, ",")
	f := c.Flags().VarPF(v, long, short, help)
	if strings.Contains(help, "(default") { // it is computed
		f.DefValue = ""
	}
	return f
}

func (c command) text(to *string, name, placeholder, help string) {
	c.flag(name, help, value{placeholder, func() string { return *to }, func(s string) error {
		*to = s
		return nil
	}})
}

// texts declares a repeatable flag.
func (c command) texts(to *[]string, name, placeholder, help string) {
	c.flag(name, help, value{placeholder, func() string { return "" }, func(s string) error {
		*to = append(*to, s)
		return nil
	}})
}

// labels declares a repeatable flag for NAME=VALUE.
func (c command) labels(to *map[string]string, name, help string) {
	c.flag(name, help, value{"K=V", func() string { return "" }, func(s string) error {
		label, text, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("expected NAME=VALUE")
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[label] = text
		return nil
	}})
}

// choice declares a flag that accepts one of the values.
func (c command) choice(to *string, name, placeholder, help string, values ...string) {
	c.flag(name, help, value{placeholder, func() string { return *to }, func(s string) error {
		if !slices.Contains(values, s) {
			return errors.New("expected " + alternatives(values))
		}
		*to = s
		return nil
	}})
	complete(c.Command, name, func() []string { return values })
}

// alternatives lists values as in "text, csv or json".
func alternatives(values []string) string {
	last := len(values) - 1
	if last == 0 {
		return values[0]
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// toggle declares a flag without a value.
func (c command) toggle(to *bool, name, help string) *pflag.Flag {
	return c.boolean(name, help, func() string { return strconv.FormatBool(*to) }, func(on bool) { *to = on })
}

func (c command) boolean(name, help string, get func() string, set func(bool)) *pflag.Flag {
	f := c.flag(name, help, value{"bool", get, func(s string) error {
		on, err := strconv.ParseBool(s)
		if err != nil {
			return errors.New("expected true or false")
		}
		set(on)
		return nil
	}})
	f.NoOptDefVal = "true"
	return f
}

func (c command) duration(to *time.Duration, name, help string) {
	c.flag(name, help, value{"DURATION", func() string { return strings.Replace(to.String(), "m0s", "m", 1) }, func(s string) (err error) {
		if *to, err = time.ParseDuration(s); err != nil {
			return errors.New("expected a duration such as 10s")
		}
		return nil
	}})
}

func (c command) whole(to *int, name, placeholder, help string) {
	c.flag(name, help, value{placeholder, func() string { return strconv.Itoa(*to) }, func(s string) (err error) {
		if *to, err = strconv.Atoi(s); err != nil {
			return errors.New("expected a whole number")
		}
		return nil
	}})
}

func (c command) number(to *float64, name, placeholder, help string) {
	c.flag(name, help, value{placeholder, func() string { return strconv.FormatFloat(*to, 'g', -1, 64) }, func(s string) (err error) {
		if *to, err = strconv.ParseFloat(s, 64); err != nil {
			return errors.New("expected a number")
		}
		return nil
	}})
}
