package metrics

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const historyLabels = " The labels of history.by are labels, too. Only of the measures of history.measures in the configuration, of each the history.max_series with the newest runs."

// historyFamily declares a metric of a measure over months.
func historyFamily(name, help string) *Family {
	return stateFamily("history_"+name, help+historyLabels, append([]string{"measure"}, history.KindFacts...)...)
}

var (
	historyValue    = historyFamily("value", "A measure of the newest succeeded run of one kind, in the base unit (per second, seconds, share of 1).")
	historyStarted  = historyFamily("run_timestamp_seconds", "When the newest succeeded run of one kind began, as Unix time.")
	historyMean     = historyFamily("level", "Mean of a measure over the runs since its level changed last, of all runs if it did not, in the base unit.")
	historyRuns     = historyFamily("level_runs", "How many runs there are since the level changed last.")
	historySince    = historyFamily("level_start_timestamp_seconds", "When the first run of the present level began, as Unix time.")
	historyChange   = historyFamily("level_change_ratio", "By what share the level changed last: -0.1 is a tenth less. Absent if it did not change.")
	historyLeftOver = stateFamily("history_dropped_series", "Series of tracked measures that history.max_series leaves out. Absent if no measure is tracked.")
)

// history emits the levels of the tracked measures.
func (c *Collector) history(emit emit) {
	if c.sources.Levels == nil {
		return
	}
	levels, dropped := c.sources.Levels()
	if len(levels) == 0 {
		return
	}
	emit(historyLeftOver, float64(dropped))
	for i := range levels {
		l := &levels[i]
		one := func(f *Family, v float64) { emitKind(emit, f, v, l.Measure, l.Facts) }
		one(historyValue, l.Last)
		one(historyStarted, seconds(l.Started))
		one(historyMean, l.Mean)
		one(historyRuns, float64(l.Runs))
		one(historySince, seconds(l.Since))
		if l.Change.Known {
			one(historyChange, l.Change.Value)
		}
	}
}

// emitKind emits a series with the facts of a kind of runs as labels. Which these are the
// configuration decides, so the family is made for each series.
func emitKind(emit emit, f *Family, v float64, measure string, facts []rundir.Fact) {
	names, values := []string{"measure"}, []string{measure}
	for _, fact := range facts {
		names, values = append(names, fact.Name), append(values, label(fact.Value))
	}
	own := newFamily(strings.TrimPrefix(f.Name, prefix), f.Help, names)
	emit(own, v, values...)
}
