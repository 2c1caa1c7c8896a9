package hammerdb

import (
	"bytes"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/decimal"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// procedures are HammerDB's names of TPROC-C's transactions.
var procedures = map[string]string{
	"NEWORD": tool.NewOrder, "PAYMENT": "payment", "DELIVERY": "delivery", "SLEV": "stock_level", "OSTAT": "order_status",
}

// profileStats are the statistics of the time profile. SD and RATIO are left out. CALLS are, too: they include those of
// the ramp-up, and the sums of all virtual users count each call twice.
var profileStats = map[string]string{"MIN": "min", "AVG": "avg", "MAX": "max", "P99": "p99", "P95": "p95", "P75": "p75", "P50": "p50", "P25": "p25"}

// profile is the state within a time profile, hdbxtprofile.log.
type profile struct {
	open      bool   // its header was read
	summary   bool   // the part with all virtual users
	operation string // empty: none that is known
	latencies []tool.Latency
}

// profileHeader is in the first line of a time profile, which is a run of its own: the file has those of several runs, and
// the output of a run does not contain it.
const profileHeader = " Hammerdb Time Profile Report @ "

// openProfile begins the run of a time profile.
func (p *Parser) openProfile(text []byte, emit func(*tool.Report)) tool.Verdict {
	_, at, _ := bytes.Cut(text, []byte(profileHeader))
	p.close(emit)
	p.began = clock(at)
	p.open(verbRun, series.Optional[int]{}, emit, oltp)
	p.profile.open = true
	return tool.Reported
}

// timing reads a line of the time profile.
func (p *Parser) timing(text []byte) tool.Verdict {
	if !p.profile.open {
		return tool.Ignored // the log does not begin with the profile
	}
	if heading, ok := bytes.CutPrefix(text, []byte(">>>>> ")); ok {
		if procedure, ok := bytes.CutPrefix(heading, []byte("PROC: ")); ok {
			p.profile.operation = procedures[string(procedure)]
			return tool.Reported
		}
		p.endProfile()
		p.profile.open = true
		p.profile.summary = bytes.HasPrefix(heading, []byte("SUMMARY OF "))
		return tool.Reported
	}
	if !p.profile.summary || p.profile.operation == "" {
		return tool.Ignored
	}
	verdict := tool.Ignored
	for field := range bytes.SplitSeq(text, []byte("\t")) {
		name, value, ok := bytes.Cut(field, []byte(": "))
		stat := profileStats[string(name)]
		if !ok || stat == "" {
			continue
		}
		number, ok := bytes.CutSuffix(bytes.TrimSpace(value), []byte("ms"))
		seconds, valid := decimal.Parse(number, -3)
		if !ok || !valid || !scan.Only(number, scan.Digits+".") {
			return tool.Malformed
		}
		if len(p.profile.latencies) < len(procedures)*len(profileStats) {
			p.profile.latencies = append(p.profile.latencies, tool.Latency{Operation: p.profile.operation, Stat: stat, Seconds: seconds})
			verdict = tool.Reported
		}
	}
	return verdict
}

// endProfile adds the latencies of all virtual users to the summary of the run.
func (p *Parser) endProfile() {
	latencies := p.profile.latencies
	p.profile = profile{open: p.profile.open}
	if len(latencies) > 0 {
		r := p.summary.Begin(tool.Summary, p.number)
		r.Latencies = append(r.Latencies[:0], latencies...)
	}
}
