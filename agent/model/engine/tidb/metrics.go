package tidb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

const (
	fetchTimeout = 5 * time.Second
	// fetchShare is the maximum share of time for reading the status port: a fetch that takes 20 ms
	// is made at most every 0.4 s. The answer has 0.8 MB, and the server needs about 10 ms to write
	// it.
	fetchShare = 0.05
	maxPause   = 10 * time.Second
	// keepFor is how long the last answer may replace a missing one.
	keepFor = 15 * time.Second
	// maxBody is the number of bytes read from an answer.
	maxBody = 64 << 20
)

var (
	// numbers are the families, or series of them, that become one value.
	numbers engine.Table

	_ = numbers.Map(engine.Connections, "tidb_server_connections")
	_ = numbers.Map(engine.ThreadsRunning, "tidb_server_tokens")
	_ = numbers.Map(engine.BytesTotal, // the label's value now | before
		"received: tidb_server_packet_io_bytes{type=In} | tidb_server_packet_io_bytes{type=read}",
		"sent: tidb_server_packet_io_bytes{type=Out} | tidb_server_packet_io_bytes{type=write}")
	// Clients send a statement as text or prepared. Preparing, closing and pinging do not count as
	// statements.
	_ = numbers.Map(engine.QueriesTotal, "tidb_server_query_total{type=Query} + tidb_server_query_total{type=StmtExecute}")
	_ = numbers.Map(engine.StatementsTotal, "tidb_executor_statement_total")
	_ = numbers.Map(engine.CommitsTotal, "tidb_executor_statement_total{type=Commit}")
	_ = numbers.Map(engine.RollbacksTotal, "tidb_executor_statement_total{type=Rollback}")
	_ = numbers.Map(engine.OperationsTotal,
		"select: tidb_executor_statement_total{type=Select}", "insert: tidb_executor_statement_total{type=Insert}",
		"update: tidb_executor_statement_total{type=Update}", "delete: tidb_executor_statement_total{type=Delete}",
		"replace: tidb_executor_statement_total{type=Replace}", "begin: tidb_executor_statement_total{type=Begin}")
)

var (
	commandsTotal = measure.NewCounter("tidb_commands_total",
		"Commands of the MySQL protocol received, by command (Query, StmtExecute, StmtPrepare …).", "command")
	commandErrors    = measure.NewCounter("tidb_command_errors_total", "Commands that ended in an error.", "command")
	statementsTotal  = measure.NewCounter("tidb_statements_total", "Statements executed, by kind.", "kind")
	statementSeconds = measure.NewCounter("tidb_statement_duration_seconds_total",
		"Time spent in statements of clients, by kind; divided by tidb_statement_durations_total it is their mean "+
			"latency.", "kind")
	statementCount = measure.NewCounter("tidb_statement_durations_total",
		"Statements counted in tidb_statement_duration_seconds_total. Includes preparing, as kind general.", "kind")
	executeErrors = measure.NewCounter("tidb_execute_errors_total",
		"Errors of statements by code, absent before the first one (kv:9007 is a write conflict, executor:1213 a "+
			"deadlock).", "code")
	pessimisticRetry = numbers.Map(measure.NewCounter("tidb_pessimistic_retries_total",
		"Statements repeated because of a conflict in a pessimistic transaction."), "tidb_session_statement_pessimistic_retry_count_sum")
	kvBackoffs = measure.NewCounter("tidb_kv_backoffs_total",
		"Waits before a request to the storage was repeated, by cause (txnLock, regionMiss …).", "cause")
	backoffSeconds  = measure.NewCounter("tidb_kv_backoff_seconds_total", "Time of the waits before a request to the storage was repeated, by cause.", "cause")
	planCacheHits   = measure.NewCounter("tidb_plan_cache_hits_total", "Statements whose plan was in the cache.", "kind")
	planCacheMisses = measure.NewCounter("tidb_plan_cache_misses_total", "Statements whose plan was not in the cache.", "kind")
	cpuSeconds      = numbers.Map(measure.NewCounter("tidb_cpu_seconds_total", "CPU time of the TiDB server."), "process_cpu_seconds_total")
	cpuLimit        = numbers.Map(measure.NewGauge("tidb_max_procs", "Cores that the TiDB server may use."), "tidb_server_maxprocs")
	residentMemory  = numbers.Map(measure.NewGauge("tidb_resident_memory_bytes", "Memory of the TiDB server."), "process_resident_memory_bytes")
	metricsAge      = measure.NewGauge("tidb_metrics_age_seconds",
		"Age of the values from the status port, which is read less often than every tick when it is slow.")
)

// The measures of a TiDB server.
var (
	_ = engine.ServerLatency.Or(measure.RateOf(statementSeconds).Over(statementCount))
	_ = engine.ServerCPU.Or(measure.RateOf(cpuSeconds))
	_ = engine.ServerMemory.Or(measure.ValueOf(residentMemory))

	_       = engine.NewMeasure(500, "command_errors", "Failed commands", "per second", measure.PerSecond, measure.Increase, measure.RateOf(commandErrors))
	retries = engine.NewMeasure(510, "pessimistic_retries", "Pessimistic retries",
		"statements repeated because of a conflict per second", measure.PerSecond, measure.Increase,
		measure.RateOf(pessimisticRetry))
	_ = engine.NewMeasure(520, "kv_backoffs", "Storage backoffs", "waits before a request to TiKV was repeated per second", measure.PerSecond, measure.Mean,
		measure.RateOf(kvBackoffs))
	_ = engine.NewMeasure(530, "plan_cache_hits", "Plan cache hits", "share of the statements whose plan was in the cache", measure.Ratio, measure.Mean,
		measure.RateOf(planCacheHits).Over(planCacheHits, planCacheMisses))
)

// Counters that causes read.
var (
	backoffTime  = measure.NewEvidence(measure.Server, measure.RateOf(backoffSeconds))
	failedByCode = measure.NewEvidence(measure.Server, measure.RateOf(executeErrors))
)

// metrics are the values of the status port as last read.
type metrics struct {
	next    time.Time // when to read again
	readAt  time.Time
	values  []engine.Value
	problem string // why the last reading failed
}

// read reads the status port if it is time, and sets what is known. If the port can't be read, only
// the server's load is unknown.
func (m *metrics) read(ctx context.Context, client *http.Client, address string, now time.Time, out *engine.Status) {
	if !now.Before(m.next) {
		m.fetch(ctx, client, address)
	}
	if m.problem != "" {
		out.Missing = append(out.Missing, m.problem)
	}
	age := now.Sub(m.readAt)
	if m.readAt.IsZero() || age > keepFor {
		return
	}
	out.Values = append(out.Values, m.values...)
	out.Set(metricsAge, max(0, age.Seconds()))
}

func (m *metrics) fetch(ctx context.Context, client *http.Client, address string) {
	ctx, cancel := engine.WithShare(ctx, 0.8)
	defer cancel()
	start := time.Now()
	families, err := get(ctx, client, address)
	took := time.Since(start)
	m.next = start.Add(min(maxPause, time.Duration(float64(took)/fetchShare)))
	if err != nil {
		m.problem = explain(address, err)
		return
	}
	var s engine.Status
	readFamilies(&s, families)
	m.problem, m.values, m.readAt = "", s.Values, start
}

var errNoTiDB = errors.New("there are no metrics of TiDB")

// explain returns the error as one line, the same for the same cause.
func explain(address string, err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	text := engine.OneLine(err.Error())
	if errors.Is(err, context.DeadlineExceeded) {
		text = "no answer in time"
	}
	return fmt.Sprintf("status port %s: %s: statements, commits, connections, bytes (option %s)", address, text, optionStatusAddress)
}

// get reads the wanted series.
func get(ctx context.Context, client *http.Client, address string) (families, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", "benchwatch")
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", answer.Status)
	}
	found, err := decode(io.LimitReader(answer.Body, maxBody))
	if err == nil && len(found) == 0 {
		err = errNoTiDB
	}
	return found, err
}

// families are series by name. Each series of a histogram is an entry of its own.
type families map[string]*dto.MetricFamily

// decode reads the wanted series of an exposition. It drops the other 98 % of the lines before
// parsing.
func decode(r io.Reader) (families, error) {
	lines, err := filter(r)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(lines))
}

// maxLine is the maximum length of a line; longer lines are dropped.
const maxLine = 64 << 10

// filter returns the lines of wanted series. It drops an incomplete last line, which a lost
// connection leaves.
func filter(r io.Reader) (kept []byte, err error) {
	in := bufio.NewReaderSize(r, maxLine)
	for tooLong := false; ; {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return kept, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
		name := line
		if i := bytes.IndexAny(line, "{ \t"); i >= 0 {
			name = line[:i]
		}
		if err == nil && !tooLong && wanted()[string(name)] {
			kept = append(kept, line...)
		}
		tooLong = err != nil
	}
}

// byLabel are the metrics with one value for each value of a label. The family's other labels
// depend on the version (resource_group, db).
var byLabel = []struct {
	metric          *measure.Metric
	selector, label string
}{
	{commandsTotal, "tidb_server_query_total", "type"},
	{commandErrors, "tidb_server_query_total{result=Error}", "type"},
	{statementsTotal, "tidb_executor_statement_total", "type"},
	{executeErrors, "tidb_server_execute_error_total", "type"},
	{kvBackoffs, "tidb_tikvclient_backoff_seconds_count", "type"},
	{backoffSeconds, "tidb_tikvclient_backoff_seconds_sum", "type"},
	{planCacheHits, "tidb_server_plan_cache_total", "type"},
	{planCacheMisses, "tidb_server_plan_cache_miss_total", "type"},
}

const (
	durationSum   = "tidb_server_handle_query_duration_seconds_sum"
	durationCount = "tidb_server_handle_query_duration_seconds_count"
)

// wanted returns the names of the series to read.
var wanted = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{durationSum: true, durationCount: true}
	for _, b := range byLabel {
		names[strings.SplitN(b.selector, "{", 2)[0]] = true
	}
	for _, selector := range numbers.Names() {
		names[strings.SplitN(selector, "{", 2)[0]] = true
	}
	return names
})

// sums adds up the series of a selector, a name or name{label=value}, by one label.
func (f families) sums(selector, by string) map[string]float64 {
	name, condition, _ := strings.Cut(strings.TrimSuffix(selector, "}"), "{")
	label, value, _ := strings.Cut(condition, "=")
	sums := map[string]float64{}
	for _, m := range f[name].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = strings.TrimSpace(l.GetValue())
		}
		if v := m.GetUntyped().GetValue(); labels[label] == value && !math.IsNaN(v) && !math.IsInf(v, 0) {
			sums[labels[by]] += v
		}
	}
	return sums
}

// sum adds up the series of a selector; false if there are none.
func (f families) sum(selector string) (float64, bool) {
	sum, known := f.sums(selector, "")[""]
	return sum, known
}

// readFamilies sets the metrics. A kind of statement that never ran has no series and no value.
func readFamilies(s *engine.Status, f families) {
	numbers.Read(s, f.sum)
	for _, b := range byLabel {
		for label, v := range f.sums(b.selector, b.label) {
			if label != "" {
				s.Set(b.metric, v, label)
			}
		}
	}
	counts := f.sums(durationCount, "sql_type")
	for kind, seconds := range f.sums(durationSum, "sql_type") {
		if n, ok := counts[kind]; ok && kind != "internal" {
			s.Set(statementSeconds, seconds, kind)
			s.Set(statementCount, n, kind)
		}
	}
}
