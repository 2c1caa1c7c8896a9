package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// price describes what became worse in group i if it is better overall, and what it gained if it is
// worse.
func (c *Comparison) price(i int, groups []Group) string {
	name, shared := c.Groups[i], isShared(groups[0].Runs) || isShared(groups[i].Runs)
	var worse, better, alike []string
	for _, m := range byMeasure(c.changes(inPrice, i)) {
		most := largestChange(m)
		if most.line.isCost && shared || most.sample.Verdict == Incomparable {
			continue
		}
		text := most.line.Measure + " " + most.values()
		if len(m) > 1 && len(most.line.Combination) > 0 {
			text += " at " + strings.Join(most.line.Combination, ", ")
		}
		switch {
		case !most.isNotable() || most.sample.N > 1 && most.line.Samples[0].N > 1 && !most.sample.Verdict.isProven():
			alike = append(alike, most.line.Measure)
		case most.difference() > 0:
			worse = append(worse, text)
		default:
			better = append(better, text)
		}
	}
	gain := c.gain(i)
	switch {
	case len(worse)+len(better)+len(alike) == 0 && gain <= 0:
		return "" // no gain to pay for
	case len(worse)+len(better)+len(alike) == 0:
		var missing []string
		if shared {
			missing = append(missing, "other programs used the CPU, too")
		} else {
			missing = append(missing, "the CPU of a transaction was not recorded")
		}
		if hasReplicas(groups[0].Runs) || hasReplicas(groups[i].Runs) {
			missing = append(missing, "lag was not recorded")
		}
		return "What the gain cost is not known: " + table.Join(missing)
	case len(worse)+len(better) == 0:
		return fmt.Sprintf("No price was found in %s: %s hardly differ", name, table.Join(alike))
	case gain >= 0 && len(worse) > 0 && len(better) > 0:
		return fmt.Sprintf("%s pays with %s, and saves %s", name, table.Join(worse), table.Join(better))
	case gain >= 0 && len(worse) > 0:
		return fmt.Sprintf("%s pays with %s", name, table.Join(worse))
	case gain >= 0:
		return fmt.Sprintf("%s saves %s, at no measured cost", name, table.Join(better))
	case len(worse) > 0 && len(better) > 0:
		return fmt.Sprintf("%s also takes %s; in return it saves %s", name, table.Join(worse), table.Join(better))
	case len(worse) > 0:
		return fmt.Sprintf("%s also takes %s, and gets nothing in return that was measured", name, table.Join(worse))
	}
	return fmt.Sprintf("In return %s saves %s", name, table.Join(better))
}

// gain is the improvement for the clients of group i: in throughput or, if that is alike, in latency.
func (c *Comparison) gain(i int) float64 {
	for _, change := range c.changes(inDiffers, i) {
		v := change.relative()
		if !change.line.isHeadline || !(math.Abs(v) >= alikeChange) {
			continue
		}
		if !change.line.isThroughput {
			return -v
		}
		return v
	}
	return 0
}

// foreignCPU is the share of a machine's CPU above which programs other than the tool and the servers distort the CPU
// time of a transaction.
const foreignCPU = 0.1

// isShared reports whether other programs used a part of the CPU of the runs' machines.
func isShared(runs []review.Row) bool {
	for i := range runs {
		for j := range runs[i].Machines {
			m := &runs[i].Machines[j]
			others := m.Value(host.OthersCPU)
			if others >= foreignCPU*(others+m.Value(host.ToolCPU)+m.Value(host.ServersCPU)) {
				return true
			}
		}
	}
	return false
}

// hasReplicas reports whether runs had several servers.
func hasReplicas(runs []review.Row) bool {
	return slices.ContainsFunc(runs, func(r review.Row) bool { return len(r.Servers) > 1 })
}
