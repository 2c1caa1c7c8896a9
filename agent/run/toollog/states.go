package toollog

// state is where a follower is among the files that have, had and will have the log's name.
type state int

const (
	searching state = iota // no file is open: what was read last is not where it was, or the follower has just started
	following              // the open file has the log's name
	renamed                // the open file has another name, or none; its writer may still have it open
	ended                  // no more can come
)

func (s state) String() string { return [...]string{"searching", "following", "renamed", "ended"}[s] }

// event is what a check of the files finds. Except for appended and emptied, all of the open file was read before.
type event int

const (
	unchanged    event = iota // there is nothing to do yet
	appended                  // the open file has more
	emptied                   // the open file no longer has what was read: it was truncated or rewritten
	nameLost                  // the open file has lost the log's name
	nameBack                  // the open file has the log's name again
	rotatedFound              // a rotated file continues what was read, or comes next
	nextFound                 // the file that has the log's name continues what was read, or comes next
	incomplete                // the last line has no end, and no process writes the file
	silent                    // no process writes the log, and nothing has come for long
	abandoned                 // as silent, and no file has the log's name
)

func (e event) String() string {
	return [...]string{
		"unchanged", "appended", "emptied", "name lost", "name back", "rotated file found", "next file found",
		"incomplete line", "silent", "abandoned",
	}[e]
}

// action is what a follower does after an event.
type action int

const (
	wait    action = iota
	read           // read more of the open file
	leave          // close the open file
	enter          // continue in the file that was found
	endLine        // count the incomplete last line
	endRun         // end the current run, if there is one
)

// transition is what happens after an event in a state.
type transition struct {
	from state
	on   event
	do   action
	to   state
	gap  gap // lines may be missing; of a file that is entered, its entry says so
}

// transitions is everything that a follower does: an event that is not listed for a state can't happen in it.
// docs/reliability.md describes what follows for users.
var transitions = []transition{
	{searching, unchanged, wait, searching, ""},
	{searching, rotatedFound, enter, renamed, ""},
	{searching, nextFound, enter, following, ""},
	{searching, silent, endRun, searching, fileTruncated},
	{searching, abandoned, endRun, ended, fileRemoved},

	{following, unchanged, wait, following, ""},
	{following, appended, read, following, ""},
	{following, emptied, leave, searching, ""},
	{following, nameLost, wait, renamed, ""},
	{following, incomplete, endLine, following, ""},
	{following, silent, endRun, following, ""},

	{renamed, unchanged, wait, renamed, ""},
	{renamed, appended, read, renamed, ""},
	{renamed, emptied, leave, searching, ""},
	{renamed, nameBack, wait, following, ""},
	{renamed, rotatedFound, enter, renamed, ""},
	{renamed, nextFound, enter, following, ""},
	{renamed, incomplete, endLine, renamed, ""},
	{renamed, abandoned, endRun, ended, ""},
}

// gap is why lines may be missing; empty: none are. An open run records it.
type gap string

const (
	fileRemoved    gap = "the file that was read was removed, compressed or moved away, and perhaps others after it"
	fileTruncated  gap = "the file was truncated or rewritten, and there is no copy of it"
	fileCompressed gap = "a file was compressed before it was read"
	fileEdited     gap = "the file was cut or edited"
)

var gaps = []gap{fileRemoved, fileTruncated, fileCompressed, fileEdited}

// after returns the transition after an event; false if the event can't happen in the state.
func after(s state, e event) (transition, bool) {
	for _, t := range transitions {
		if t.from == s && t.on == e {
			return t, true
		}
	}
	return transition{}, false
}
