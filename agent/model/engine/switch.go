package engine

import "context"

// Switch is how settings of an engine's servers are changed while a run goes on.
type Switch struct {
	// Form is the statement that changes a setting, such as SET GLOBAL name = {v}.
	Form string
	// Setting returns the name of the setting that a statement changes; false for other statements.
	Setting func(statement string) (name string, ok bool)
	// Read returns the value that a statement would change, and the statement that restores it. It fails if a
	// change does not reach open connections.
	Read func(ctx context.Context, t Target, statement string) (value, restore string, err error)
	// Execute runs a statement on its own connection. The change is effective when it returns.
	Execute func(ctx context.Context, t Target, statement string) error
}
