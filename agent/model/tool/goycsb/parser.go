package goycsb

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/histogram"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/properties"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// parser reads go-ycsb's output. Everything is on stdout except fatal errors at the start; stderr
// does not affect the rest.
type parser struct {
	reader reader
	run    int // 0 until a run begins
	stage  stage

	start      tool.Report
	properties int // read of the current dump
	secrets    []string
	redactor   *secret.Redactor

	block   block
	before  before
	table   bool
	columns int // values of a row in this run
	row     row
	elapsed series.Optional[float64]
	samples []samples // of measurementtype raw

	out, err message.Flood
	report   tool.Report
}

func newParser(tool.Description) tool.Parser {
	return &parser{reader: reader{columns: scan.NewColumns(newColumn)}}
}

// stage is how far the run has progressed.
type stage uint8

const (
	opening  stage = iota // the workload was created
	listing               // inside the dump of properties
	running               // after the dump
	finished              // "Run finished" was read; the final block follows
	done                  // the summary was reported
)

// samples are the rows of one operation in the raw output.
type samples struct {
	op        *operation
	n         uint64
	latencies histogram.Recorder
}

var (
	workloadMade = []byte("Using request distribution '")
	dumpBegins   = []byte("***************** properties *****************")
	runFinished  = []byte("Run finished, takes ")
	rawHeader    = []byte("operation,timestamp_us,latency_us")
	operationErr = []byte("operation err: ")
)

// deadly are messages after which go-ycsb exits before the test.
var deadly = []string{
	"totalOpCount(operationcount/insertcount/recordcount): ",
	"create db ",
	"create workload ",
	"panic: ",
	"fatal error: ",
	"Error: ",
}

// Parse implements tool.Parser.
func (p *parser) Parse(line tool.Line, emit func(*tool.Report)) tool.Verdict {
	text := bytes.TrimSuffix(line.Text, []byte("\r"))
	if line.Stream == tool.Stderr {
		return p.message(text, &p.err, nil, 1, emit)
	}
	if v, ok := p.rows(text, line.Cut, emit); ok {
		return v
	}
	if !p.table {
		p.finishBlock(emit)
	}
	switch {
	case len(text) == 0:
		return tool.Ignored
	case bytes.HasPrefix(text, workloadMade):
		if p.stage != opening || p.run == 0 {
			p.newRun(emit)
		}
		return tool.Ignored
	case bytes.Equal(text, dumpBegins):
		if p.stage != opening || p.run == 0 {
			p.newRun(emit)
		}
		p.stage, p.properties = listing, 0
		p.start.Reset(tool.Start, p.run)
		p.start.Tool = Name
		return tool.Ignored
	case p.stage == listing && !bytes.HasPrefix(text, runFinished):
		return p.property(text, emit)
	case bytes.HasPrefix(text, runFinished):
		if p.stage == listing { // an excerpt without the end of the list
			p.endList(emit)
		}
		return p.finish(string(text[len(runFinished):]), line.Cut)
	case p.stage == finished:
		if v, ok := p.sample(text); ok {
			return v
		}
	}
	return p.message(text, &p.out, p.redactor, p.runNumber(), emit)
}

func (p *parser) runNumber() int { return max(p.run, 1) }

// rows reads rows and tables. ok is false if text is neither.
func (p *parser) rows(text []byte, cut bool, emit func(*tool.Report)) (v tool.Verdict, ok bool) {
	switch {
	case isPlain(text):
		if p.table {
			p.finishBlock(emit)
		}
		if cut || !p.reader.plain(text, &p.row) {
			// The end of the block is unknown now.
			p.finishBlock(emit)
			p.block.broken = true
			return tool.Malformed, true
		}
		// Rows are sorted by name: a break in the order begins the next block.
		if n := len(p.block.rows); n > 0 && p.row.op.raw <= p.block.rows[n-1].op.raw {
			p.finishBlock(emit)
		}
		return p.addRow(), true
	case isJSON(text):
		p.finishBlock(emit)
		v := tool.Reported
		if cut || !p.reader.json(text, &p.row, func() { v = max(v, p.addRow()) }) {
			// The objects belong together; a part of them would mislead.
			p.block.reset()
			return tool.Malformed, true
		}
		p.finishBlock(emit)
		return v, true
	case isHeader(text):
		p.finishBlock(emit)
		p.table = !cut && p.reader.columns.Head(text)
		return tool.Ignored, true
	case !p.table:
		return 0, false
	case isRule(text):
		if len(p.block.rows) > 0 {
			p.finishBlock(emit)
		}
		return tool.Ignored, true
	case len(text) == 0 || text[0] != '|':
		return 0, false // a message among the rows
	case cut || !p.reader.row(text, &p.row):
		p.block.broken = true
		return tool.Malformed, true
	}
	return p.addRow(), true
}

// minColumns is the minimum number of values in a row.
const minColumns = 6

func (p *parser) addRow() tool.Verdict {
	if p.row.columns < max(p.columns, minColumns) || len(p.block.rows) == maxOperations || p.block.find(p.row.op.name) != nil {
		p.block.broken = true
		return tool.Malformed
	}
	p.columns = p.row.columns
	p.block.rows = append(p.block.rows, p.row)
	return tool.Reported
}

// finishBlock reports the collected rows.
func (p *parser) finishBlock(emit func(*tool.Report)) {
	p.table = false
	if len(p.block.rows) == 0 {
		return
	}
	if p.stage == done || !p.before.isAfter(&p.block) {
		columns := p.columns
		b := p.block
		p.block = block{}
		p.newRun(emit)
		p.block, p.columns = b, columns
	}
	p.run = p.runNumber()
	if p.stage == finished {
		p.summary(emit)
	} else {
		p.stage = running
		p.before.interval(&p.block, p.run, &p.report)
		emit(&p.report)
		p.before.add(&p.block)
	}
	p.block.reset()
}

// summary reports the final block, or the part of it that was read.
func (p *parser) summary(emit func(*tool.Report)) {
	p.stage = done
	p.rest(emit)
	r := &p.report
	if len(p.block.rows) == 0 {
		p.distributions(emit)
	}
	r.Reset(tool.Summary, p.run)
	r.ElapsedSeconds = p.elapsed
	p.block.summary(r)
	if len(p.block.rows) == 0 {
		p.addSamples(r)
	}
	emit(r)
}

// finish reads the duration of the whole run: 3.721606322s, 1m2.5s.
func (p *parser) finish(text string, cut bool) tool.Verdict {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if cut || err != nil || d < 0 {
		return tool.Malformed
	}
	p.run = p.runNumber()
	p.stage = finished
	p.elapsed = series.Some(d.Seconds())
	p.samples = p.samples[:0]
	return tool.Reported
}

// sample counts one row of the raw style: READ,1795226167356159,1107.
func (p *parser) sample(text []byte) (v tool.Verdict, ok bool) {
	if bytes.Equal(text, rawHeader) {
		return tool.Ignored, true
	}
	name, rest, ok := bytes.Cut(text, []byte(","))
	if !ok {
		return 0, false
	}
	a, b, ok := bytes.Cut(rest, []byte(","))
	if !ok || !scan.Only(a, scan.Digits) || !scan.Only(b, scan.Digits) {
		return 0, false
	}
	op := p.reader.operations.Find(name, newOperation)
	if op == nil {
		return 0, false
	}
	latency, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return tool.Malformed, true
	}
	i := slices.IndexFunc(p.samples, func(s samples) bool { return s.op == op })
	if i < 0 {
		i = len(p.samples)
		p.samples = append(p.samples, samples{op: op, latencies: histogram.Recorder{Unit: 1e-6}})
	}
	p.samples[i].n++
	p.samples[i].latencies.Record(latency, 1)
	return tool.Reported, true
}

// distributions reports the latency distributions of the raw style.
func (p *parser) distributions(emit func(*tool.Report)) {
	for i := range p.samples {
		r := &p.report
		r.Reset(tool.Histogram, p.run)
		r.Operation, r.Cumulative = p.samples[i].op.name, true
		r.AddBuckets(p.samples[i].latencies.Histogram())
		emit(r)
	}
}

// addSamples adds the counts of the raw style.
func (p *parser) addSamples(r *tool.Report) {
	for _, s := range p.samples {
		p.block.rows = append(p.block.rows, row{op: s.op, count: s.n})
	}
	p.block.summary(r)
	p.block.reset()
}

const maxProperties = 1000

// property reads a line of the dump: "key"="value".
func (p *parser) property(text []byte, emit func(*tool.Report)) tool.Verdict {
	p.properties++
	if len(bytes.Trim(text, "*")) == 0 || p.properties > maxProperties {
		p.endList(emit)
		return tool.Reported
	}
	key, value, ok := strings.Cut(string(text[:min(len(text), message.MaxRead)]), `"="`)
	if !ok {
		return tool.Ignored
	}
	key, value = strings.TrimPrefix(key, `"`), strings.TrimSuffix(value, `"`)
	p.secrets = append(p.secrets, properties.Secrets(key, value)...)
	switch key {
	case "command":
		p.start.Command = value
	case "workload":
		p.start.Workload = value
	case "threadcount":
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			p.start.Threads = series.Some(n)
		}
	default:
		return tool.Ignored
	}
	return tool.Reported
}

// endList reports the start after the end of the dump.
func (p *parser) endList(emit func(*tool.Report)) {
	p.stage = running
	p.redactor = secret.New(p.secrets...)
	emit(&p.start)
}

// message reads a line that is not a report, perhaps an error message.
func (p *parser) message(text []byte, f *message.Flood, r *secret.Redactor, run int, emit func(*tool.Report)) tool.Verdict {
	fatal := isDeadly(text)
	if !fatal && !bytes.HasPrefix(text, operationErr) {
		return tool.Ignored
	}
	if f.Add(text, fatal) {
		p.error(message.CleanWith(text, r), run, f.Failed, emit)
	}
	return tool.Reported
}

func isDeadly(text []byte) bool {
	return scan.HasAnyPrefix(text, deadly...) || bytes.HasSuffix(text, []byte(" is not registered")) ||
		bytes.Contains(text, []byte("bad property: `"))
}

func (p *parser) error(text string, run int, failed bool, emit func(*tool.Report)) {
	p.report.ResetError(run, text, failed)
	emit(&p.report)
}

// newRun ends the current run and begins the next.
func (p *parser) newRun(emit func(*tool.Report)) {
	p.end(emit)
	p.run++
	p.stage, p.columns, p.elapsed = opening, 0, series.Optional[float64]{}
	p.before.reset()
	p.out = message.Flood{}
	p.secrets, p.redactor = nil, nil
}

// end reports everything held back for the run.
func (p *parser) end(emit func(*tool.Report)) {
	if p.stage == listing {
		p.endList(emit)
	}
	p.finishBlock(emit)
	if p.stage == finished {
		p.summary(emit)
	}
	p.rest(emit)
}

// rest reports the last of many error messages.
func (p *parser) rest(emit func(*tool.Report)) {
	if rest := p.out.Rest(p.redactor); rest != "" {
		p.error(rest, p.runNumber(), false, emit)
	}
}

// Flush implements tool.Flusher. In the plain style only the next block shows that a block has
// ended. A block with every row of the previous one is complete, since rows never disappear.
func (p *parser) Flush(emit func(*tool.Report)) {
	n := len(p.block.rows)
	if n == 0 || p.table || p.before.blocks == 0 || p.block.broken {
		return
	}
	last := p.block.rows[n-1].op
	for i := range p.before.rows {
		past := &p.before.rows[i]
		if past.block == p.before.blocks && (p.block.find(past.op.name) == nil || past.op.raw > last.raw) {
			return
		}
	}
	p.finishBlock(emit)
}

// Close implements tool.Parser.
func (p *parser) Close(emit func(*tool.Report)) {
	p.end(emit)
	if rest := p.err.Rest(nil); rest != "" {
		p.error(rest, 1, false, emit)
	}
}

var _ tool.Flusher = (*parser)(nil)
