package sysbench

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// sysbench 0.5 takes the number of COMMIT statements for that of transactions.
// A workload without COMMIT (select.lua, update_index.lua, insert.lua …) so
// shows `tps: 0.00` and `transactions: 0` while it works. Each of its events is
// one statement, so the transactions are its reads and writes there.
//
// Zero alone does not show such a workload: one that commits can have an interval
// with statements and no commit. What shows it is an event that has ended (there is
// a latency) while no COMMIT was counted since the run began. Once a
// COMMIT was seen, tps is taken as printed. So it is in 0.4, which counts
// transactions itself.

// trueTransactions corrects the transaction rate of an interval of 0.5, whose
// line had so many trailing parts.
func (p *Parser) trueTransactions(r *tool.Report, parts int) {
	tps, reads, writes := r.Rate(tool.Transaction), r.Rate(tool.Read), r.Rate(tool.Write)
	if tps.Value > 0 {
		p.run.commits, p.run.noCommit = true, false
	}
	statements := reads.Value + writes.Value
	if p.run.commits || !tps.Known || statements == 0 {
		return
	}
	// Behind a checkpoint the latency is still that of the time before. A line
	// of early 2011 has no latency and nothing else to go by.
	ended := len(r.Latencies) > 0 && !p.run.reset || parts == 1
	if !ended && !p.run.noCommit {
		return
	}
	p.run.noCommit = true
	for i := range r.Rates {
		if r.Rates[i].Operation == tool.Transaction {
			r.Rates[i].PerSecond = math.Round(statements*100) / 100
		}
	}
}

// trueTotals corrects the transactions of a summary of 0.5.
func (p *Parser) trueTotals(m *summary) {
	if !m.statements.count.Known || !m.transaction.count.Known || p.run.before05 {
		return
	}
	if m.transaction.count.Value > 0 {
		p.run.commits, p.run.noCommit = true, false
	}
	if p.run.commits || m.statements.count.Value == 0 || m.events.Known && m.events.Value == 0 {
		return
	}
	p.run.noCommit = true
	m.transaction = m.statements
}
