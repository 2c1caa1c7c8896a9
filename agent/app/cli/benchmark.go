package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// benchmark declares the command line of a benchmark as the arguments. Flags of benchwatch end at its first word, with
// or without --.
func (c command) benchmark(to *[]string, help string) {
	c.Flags().SetInterspersed(false)
	c.takes("[COMMAND...]", help, func([]string) {})
	c.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || cmd.ArgsLenAtDash() == 0:
		case args[0] == pipe: // nothing can be for it
			cmd.Flags().SetInterspersed(true)
			if err := cmd.Flags().Parse(args[1:]); err != nil {
				return err
			}
			args = append([]string{pipe}, cmd.Flags().Args()...)
		default:
			if err := checkOwner(cmd, args); err != nil {
				return err
			}
		}
		*to = args
		return nil
	}
}

// pipe stands for a benchmark whose output is piped in.
const pipe = "-"

// checkOwner returns an error if an option in the command line of a benchmark may be meant for benchwatch.
func checkOwner(cmd *cobra.Command, args []string) error {
	flags := cmd.Flags()
	for i, arg := range args[1:] {
		last := i+2 == len(args)
		name, _, _ := strings.Cut(arg, "=")
		var f *pflag.Flag
		switch {
		case arg == "--": // the rest is for what runs the tool, such as kubectl
			return nil
		case strings.HasPrefix(name, "--"):
			f = flags.Lookup(name[2:])
		case len(name) == 2 && name[0] == '-':
			f = flags.ShorthandLookup(name[1:])
		}
		switch {
		case f == nil || name == "-h" && !last: // a host
		case f.Name == "help" || f.Name == "help-all":
			return pflag.ErrHelp
		default:
			return &exitError{Status: exitUsage,
				Err:  fmt.Errorf("%s after %s may be for benchwatch or for %s", name, args[0], args[0]),
				Hint: fmt.Sprintf("write it before %s, or -- before the whole command: %s -- %[1]s …", args[0], cmd.CommandPath())}
		}
	}
	return nil
}
