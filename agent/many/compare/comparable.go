package compare

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/run/review"
)

// What a reader must know before comparing transactions.
const (
	differentTransactions = "The tools count different things as a transaction: tps can't be compared"
	differentWorkloads    = "The workloads differ, so their transactions may be different things: compare tps with care"
)

// cautionOf returns why the groups' transactions can't be compared, or only with care; empty if they can.
func cautionOf(groups []Group) string {
	switch {
	case toolsDiffer(groups):
		return differentTransactions
	case factDiffers(groups, func(r *review.Row) string { return r.Workload }):
		return differentWorkloads
	}
	return ""
}

// toolsDiffer reports whether each group is of one tool, and not all are of the same.
func toolsDiffer(groups []Group) bool {
	return factDiffers(groups, func(r *review.Row) string { return r.Tool })
}

// factDiffers reports whether the groups have different known values of a fact that is the same within each group.
func factDiffers(groups []Group, of func(*review.Row) string) bool {
	values, varies := groupValues(groups, of)
	return !varies && !slices.Contains(values, "") && differ(values)
}

// sameRun says that all groups are one and the same run; empty if they are not.
func sameRun(groups []Group) string {
	for _, g := range groups {
		if len(g.Runs) != 1 || g.Runs[0].ID == "" || g.Runs[0].ID != groups[0].Runs[0].ID {
			return ""
		}
	}
	id := groups[0].Runs[0].ID
	if len(groups) > 2 {
		return "All groups are the same run, " + id
	}
	return "Both groups are the same run, " + id
}
