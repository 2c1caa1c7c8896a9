package engine

import "io"

// Dumps is how an engine reads what people save beside the log of a run: the settings of a server, and its counters
// before and after the run.
type Dumps struct {
	// Words may occur in the names of such files besides those for counters, settings and the time.
	Words []string
	// Read calls visit for each snapshot in a text, until visit returns false.
	Read func(text io.Reader, visit func(Snapshot) bool) error
	// Decode returns what snapshots of one server report, without values of the instant at which they were taken. Either
	// may have no values.
	Decode func(settings, counters Snapshot) (*Status, Settings, error)
}

// Snapshot is the counters or the settings of a server in a dump.
type Snapshot struct {
	// Counters: it has counters, otherwise settings.
	Counters bool
	// Values are in the server's own notation; nil: there is no snapshot.
	Values map[string]string
}
