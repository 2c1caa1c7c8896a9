package sysbench

import (
	"math"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// sysbench 0.5 prints the number of COMMIT statements as the number of transactions. A workload
// without COMMIT (select.lua, update_index.lua, insert.lua …) therefore shows `tps: 0.00` and
// `transactions: 0`. Each of its events is a single statement, so its reads and writes are its
// transactions.
//
// Zero transactions do not prove such a workload: an interval can have statements and no commit.
// The proof is an event that has ended (there is a latency) while no COMMIT has been counted since
// the run began. After the first COMMIT, tps counts as printed, as it does in 0.4, which counts
// transactions itself.

// trueTransactions corrects the transaction rate of a 0.5 interval; parts is the number of trailing
// parts of its line.
func (p *Parser) trueTransactions(r *tool.Report, parts int) {
	tps, reads, writes := r.Rate(tool.Transaction), r.Rate(tool.Read), r.Rate(tool.Write)
	if tps.Value > 0 {
		p.run.commits, p.run.noCommit = true, false
	}
	statements := reads.Value + writes.Value
	if p.run.commits || !tps.Known || statements == 0 {
		return
	}
	// After a checkpoint the latency still covers the time before it. Lines of early 2011 have no
	// latency and no other evidence.
	ended := len(r.Latencies) > 0 && !p.run.reset || parts == 1
	if !ended && !p.run.noCommit {
		return
	}
	p.run.noCommit = true
	for i := range r.Rates {
		if r.Rates[i].Operation == tool.Transaction {
			r.Rates[i].PerSecond = hundredths(statements)
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

// hundredths rounds a sum of rates to the decimals with which sysbench prints them.
func hundredths(perSecond float64) float64 { return math.Round(perSecond*100) / 100 }
