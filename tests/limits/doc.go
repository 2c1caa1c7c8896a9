// Package limits tests what is reported to have limited a run, with runs on a real server
// that one thing limits each (`make limits-test`). They measure, so they have a target of their
// own: what else runs on the machine limits a run, too. So have runs that differ in one thing, and
// what a comparison reports of them, searches for the highest rate within a limit, and how soon a
// run is ended by a condition.
package limits
