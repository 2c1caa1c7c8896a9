package sweep

import (
	"maps"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
)

// Commands are the commands that a sweep starts, with placeholders: the benchmark, and the hooks
// before and after each run.
type Commands struct {
	Command []string `json:"command"`
	Before  string   `json:"before,omitempty"`
	After   string   `json:"after,omitempty"`
	// Arms are the commands of the arms of an A/B comparison that have their own command.
	Arms map[string][]string `json:"arms,omitempty"`
}

// ArmSet is the set whose values are the keys of Commands.Arms.
const ArmSet = "arm"

// of returns the command of a step.
func (c Commands) of(values map[string]string) []string {
	if own, ok := c.Arms[values[ArmSet]]; ok {
		return own
	}
	return c.Command
}

// filled returns the command of a step with its values.
func (c Commands) filled(values map[string]string) []string {
	var filled []string
	for _, a := range c.of(values) {
		filled = append(filled, Fill(a, values))
	}
	return filled
}

// Stored returns c in the form for the disk, with secrets blanked.
func (c Commands) Stored(tools tool.Set) Commands {
	stored := Commands{Before: c.hook(c.Before, tools), After: c.hook(c.After, tools)}
	if len(c.Command) > 0 {
		stored.Command = c.read(tools).Redacted
	}
	for arm, command := range c.Arms {
		if stored.Arms == nil {
			stored.Arms = map[string][]string{}
		}
		stored.Arms[arm] = Commands{Command: command}.read(tools).Redacted
	}
	return stored
}

// hook returns shell text with secrets blanked.
func (Commands) hook(text string, tools tool.Set) string {
	return Commands{Command: []string{"sh", "-c", text}}.read(tools).Redacted[2]
}

// Equal reports whether c and other are equal.
func (c Commands) Equal(other Commands) bool {
	return slices.Equal(c.Command, other.Command) && c.Before == other.Before &&
		c.After == other.After && maps.EqualFunc(c.Arms, other.Arms, slices.Equal)
}

// Describe returns the description of the benchmark's command line with the values of a step.
func (c Commands) Describe(values map[string]string, tools tool.Set) tool.Description {
	return Commands{Command: c.filled(values)}.read(tools).Description
}

func (c Commands) read(tools tool.Set) commandline.Command {
	env := commandline.OS()
	env.NoInject = true
	return commandline.Read(c.Command, tools, env)
}
