// Package limits tests the reported limits with runs on a real server, each limited by one thing (`make
// limits-test`). It also tests comparisons of runs that differ in one thing, searches for the highest rate within a
// limit, and how soon a condition ends a run. All of them measure, so they have a separate target: other programs on
// the machine limit a run, too.
package limits
