package cli

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/run/abort"
)

// capturing are the conditions of --capture-when. Whoever records the run watches them.
type capturing struct{ texts []string }

func addCapturing(cmd command) *capturing {
	c := &capturing{}
	cmd.texts(&c.texts, "capture-when", "CONDITION", "Ask the servers what holds them up when this holds, as in a stall; the conditions of --abort-when; repeatable")
	return c
}

// check reports the first condition that can't be watched.
func (c *capturing) check() error {
	for _, text := range c.texts {
		if _, err := abort.Parse(text); err != nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("--capture-when %w", err)}
		}
	}
	return nil
}
