package review

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/stall"
)

// Stall is a dip of a run's throughput, or a rise of its latency.
type Stall struct {
	// Start is on the run's axis.
	Start   float64 `json:"start_seconds"`
	Seconds float64 `json:"seconds"`
	// Reason names what stalled the run; "not known" if nothing that was captured explains it.
	Reason string `json:"reason"`
	// Evidence is a sentence with the numbers.
	Evidence string `json:"evidence"`
	// Target is the server or machine that the reason is about.
	Target string `json:"target,omitempty"`
	// Also are other reasons that were captured.
	Also []string `json:"also,omitempty"`
	// Tree shows which session waited for which, the waiting ones below the one that they waited for.
	Tree []string `json:"tree,omitempty"`
	// Capture is the number of the capture in stalls.jsonl; absent if nothing was captured.
	Capture int `json:"capture,omitempty"`
	// Usual is the throughput before the stall, Low the lowest one during it, in transactions per second.
	Usual float64 `json:"usual_per_second"`
	Low   float64 `json:"low_per_second"`
	// Lost is how many transactions fewer than usual there were, without those that a queue of the tool made up for.
	Lost float64 `json:"lost_transactions"`
}

// StallEffect is what the stalls of a run cost together.
type StallEffect struct {
	Count int `json:"count"`
	// Uncaptured counts the stalls during which nothing was captured: the run was not followed, or there were too many.
	Uncaptured int     `json:"not_captured,omitempty"`
	Seconds    float64 `json:"seconds"`
	Lost       float64 `json:"lost_transactions"`
	// LostShare is the part of the throughput that the run would have had without the stalls.
	LostShare float64 `json:"lost_share"`
	// Without is the throughput that the run would have had, in transactions per second.
	Without series.Optional[float64] `json:"per_second_without,omitzero"`
}

// stalls returns the stalls of a run and what they cost; nil if there are none.
func stalls(h *record.History, r *Row) ([]Stall, *StallEffect) {
	found := &h.Intervals.Stalls
	if len(found.Dips) == 0 {
		return nil, nil
	}
	all := make([]Stall, len(found.Dips))
	effect := &StallEffect{Count: len(all) + found.Dropped}
	for i := range found.Dips {
		all[i] = explained(h, i, float64(r.Threads))
		effect.Seconds += all[i].Seconds
		effect.Lost += all[i].Lost
		if all[i].Capture == 0 {
			effect.Uncaptured++
		}
	}
	tps := r.Values.Of(tool.Throughput)
	done := tps.Value * r.DurationSeconds
	if rate := h.Snapshot.Meta.RatePerSecond; rate > 0 && tps.Known { // what was made up for is not lost
		effect.Lost = min(effect.Lost, max(0, float64(rate)*r.DurationSeconds-done))
	}
	if tps.Known && done+effect.Lost > 0 {
		effect.LostShare = effect.Lost / (done + effect.Lost)
		effect.Without = series.Some(tps.Value / (1 - effect.LostShare))
		if effect.LostShare >= 1 {
			effect.Without = series.Optional[float64]{}
		}
	}
	return all, effect
}

// explained returns dip i with the reason that follows from what was captured during it.
func explained(h *record.History, i int, clients float64) Stall {
	d := &h.Intervals.Stalls.Dips[i]
	s := Stall{Start: d.From, Seconds: d.Seconds, Usual: d.Usual, Low: d.Low, Lost: max(0, d.Lost-d.Regained), Reason: evidence.Unknown}
	moments, number, captured := record.During(h.Captures, d, h.Elapsed)
	s.Capture = number
	e := evidence.Explain(cmp.Or(captured, clients), d.Seconds, moments)
	s.Reason, s.Evidence, s.Target, s.Also, s.Tree = e.Reason, e.Text, e.Target, e.Also, e.Tree
	if s.Reason == evidence.Unknown {
		s.Evidence = dipText(d) + "; " + e.Text
	}
	return s
}

// dipText describes what the tool's output shows of a dip.
func dipText(d *stall.Dip) string {
	switch {
	case d.Silent:
		return "the tool printed nothing, and as many transactions ended as before"
	case d.Slow:
		return fmt.Sprintf("the latency rose to %s ms, from %s ms before", table.Milliseconds.Format(d.Latency), table.Milliseconds.Format(d.UsualLatency))
	case d.Low == 0:
		return fmt.Sprintf("no transaction ended, %s/s before", table.Digits.Format(d.Usual))
	}
	return fmt.Sprintf("the throughput fell to %s transactions/s, from %s before", table.Digits.Format(d.Low), table.Digits.Format(d.Usual))
}

// Captured is what the servers said when a condition held, without a stall.
type Captured struct {
	// At is on the run's axis, Trigger is the condition with its value.
	At      float64 `json:"at_seconds"`
	Trigger string  `json:"trigger"`
	// Reason and Evidence are as for a stall.
	Reason   string   `json:"reason"`
	Evidence string   `json:"evidence"`
	Tree     []string `json:"tree,omitempty"`
}

// captures returns the captures of a run that belong to no stall.
func captures(h *record.History, r *Row) (all []Captured) {
	for i := range h.Captures {
		c := &h.Captures[i]
		if slices.ContainsFunc(r.Stalls, func(s Stall) bool { return s.Capture == c.Number }) {
			continue
		}
		e := evidence.Explain(c.Clients, c.End.Sub(c.Begin).Seconds(), c.Moments)
		all = append(all, Captured{At: h.Elapsed(c.Begin), Trigger: c.Trigger, Reason: e.Reason, Evidence: e.Text, Tree: e.Tree})
	}
	return all
}

// Title is the length and the begin of a stall: "8.2 s from 0:41".
func (s *Stall) Title() string {
	return fmt.Sprintf("%.1f s from %s", s.Seconds, table.Clock(s.Start))
}

// String describes what the stalls cost.
func (e *StallEffect) String() string {
	text := fmt.Sprintf("%s for %.1f s", table.Plural(e.Count, "stall"), e.Seconds)
	if e.Count > 1 {
		text += " together"
	}
	if lost := math.Round(e.Lost); lost > 0 {
		text += fmt.Sprintf(", with about %s transactions fewer than usual", table.Rounded(lost))
	} else {
		text += ", and no transaction fewer than usual: they took longer, or ended afterwards"
	}
	if e.Without.Known && math.Round(e.Lost) > 0 {
		text += fmt.Sprintf(": %s of the throughput, which would be about %s/s without them", table.Share(e.LostShare), table.Digits.Format(e.Without.Value))
	}
	if e.Uncaptured > 0 && e.Uncaptured < e.Count {
		text += fmt.Sprintf("; nothing was captured of %d", e.Uncaptured)
	}
	return text
}

// StallsText describes the stalls of runs in a comparison: "stalled 3 times for 14 s: row lock, checkpoint twice";
// "never stalled" if there are none.
func StallsText(runs []Row) string {
	count, seconds, stalled := 0, 0.0, 0
	counts, order := map[string]int{}, []string{}
	for i := range runs {
		e := runs[i].StallEffect
		if e == nil {
			continue
		}
		stalled++
		count, seconds = count+e.Count, seconds+e.Seconds
		for j := range runs[i].Stalls {
			reason := runs[i].Stalls[j].Reason
			if counts[reason]++; counts[reason] == 1 {
				order = append(order, reason)
			}
		}
	}
	if count == 0 {
		return "never stalled"
	}
	for i, reason := range order {
		if n := counts[reason]; n > 1 && len(order) > 1 {
			order[i] = fmt.Sprintf("%s %d times", reason, n)
		}
	}
	times := "once"
	if count > 1 {
		times = fmt.Sprintf("%d times", count)
	}
	if len(runs) > 1 {
		times += fmt.Sprintf(" in %d of %d runs", stalled, len(runs))
	}
	return fmt.Sprintf("stalled %s for %.0f s: %s", times, seconds, strings.Join(order, ", "))
}
