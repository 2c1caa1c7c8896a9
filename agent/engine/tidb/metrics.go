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
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

const (
	fetchTimeout = 5 * time.Second
	// fetchShare is the share of the time that may go into reading the status
	// port: a fetch of 20 ms is made every 0.4 s at most. The answer is 0.8 MB,
	// and the server needs about 10 ms to write it.
	fetchShare = 0.05
	maxPause   = 10 * time.Second
	// keepFor is how long the last answer replaces a missing one.
	keepFor = 15 * time.Second
	// maxBody bounds what is read of an answer.
	maxBody = 64 << 20
)

var (
	// numbers are the families that are one number.
	numbers engine.Table

	_ = numbers.Map(engine.Connections, "tidb_server_connections")
	_ = numbers.Map(engine.ThreadsRunning, "tidb_server_tokens")
)

var (
	commandsTotal    = measure.NewCounter("tidb_commands_total", "Commands of the MySQL protocol received, by command (Query, StmtExecute, StmtPrepare …).", "command")
	commandErrors    = measure.NewCounter("tidb_command_errors_total", "Commands that ended in an error.", "command")
	statementsTotal  = measure.NewCounter("tidb_statements_total", "Statements executed, by kind.", "kind")
	statementSeconds = measure.NewCounter("tidb_statement_duration_seconds_total", "Time spent in statements of clients, by kind; over tidb_statement_durations_total it is their mean latency.", "kind")
	statementCount   = measure.NewCounter("tidb_statement_durations_total", "Statements counted in tidb_statement_duration_seconds_total. Preparing is in it, as kind general.", "kind")
	executeErrors    = measure.NewCounter("tidb_execute_errors_total", "Errors of statements by code, from the first of its kind on (kv:9007 is a write conflict, executor:1213 a deadlock).", "code")
	pessimisticRetry = numbers.Map(measure.NewCounter("tidb_pessimistic_retries_total", "Statements repeated because of a conflict in a pessimistic transaction."), "tidb_session_statement_pessimistic_retry_count_sum")
	kvBackoffs       = measure.NewCounter("tidb_kv_backoffs_total", "Waits before a request to the storage was repeated, by cause (txnLock, regionMiss …).", "cause")
	planCacheHits    = measure.NewCounter("tidb_plan_cache_hits_total", "Statements whose plan was in the cache.", "kind")
	planCacheMisses  = measure.NewCounter("tidb_plan_cache_misses_total", "Statements whose plan was not in the cache.", "kind")
	cpuSeconds       = numbers.Map(measure.NewCounter("tidb_cpu_seconds_total", "CPU time of the TiDB server."), "process_cpu_seconds_total")
	cpuLimit         = numbers.Map(measure.NewGauge("tidb_max_procs", "Cores that the TiDB server may use."), "tidb_server_maxprocs")
	residentMemory   = numbers.Map(measure.NewGauge("tidb_resident_memory_bytes", "Memory of the TiDB server."), "process_resident_memory_bytes")
	metricsAge       = measure.NewGauge("tidb_metrics_age_seconds", "Age of the values from the status port, which is read at a slower pace than the ticks when it is slow.")
)

// The measures of a TiDB server.
var (
	_ = engine.ServerLatency.Or(measure.RateOf(statementSeconds).Over(statementCount))
	_ = engine.ServerCPU.Or(measure.RateOf(cpuSeconds))
	_ = engine.ServerMemory.Or(measure.ValueOf(residentMemory))

	_ = engine.NewMeasure(500, "command_errors", "Failed commands", "per second", measure.PerSecond, measure.Increase, measure.RateOf(commandErrors))
	_ = engine.NewMeasure(510, "pessimistic_retries", "Pessimistic retries", "statements repeated because of a conflict per second", measure.PerSecond, measure.Increase,
		measure.RateOf(pessimisticRetry))
	_ = engine.NewMeasure(520, "kv_backoffs", "Storage backoffs", "waits before a request to TiKV was repeated per second", measure.PerSecond, measure.Mean,
		measure.RateOf(kvBackoffs))
	_ = engine.NewMeasure(530, "plan_cache_hits", "Plan cache hits", "share of the statements whose plan was in the cache", measure.Ratio, measure.Mean,
		measure.RateOf(planCacheHits).Over(planCacheHits, planCacheMisses))
)

// metrics are the values of the status port, as read last.
type metrics struct {
	next    time.Time // when to read again
	readAt  time.Time
	values  []engine.Value
	problem string // why the last reading failed
}

// read reads the status port if it is time, and sets what is known. A status
// port that can't be read leaves the server's load unknown, not the server.
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

// explain returns one line, the same for the same cause.
func explain(address string, err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
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

// families are series by name. Histograms come apart into their series.
type families map[string]*dto.MetricFamily

// decode reads the wanted series of an exposition. The other 98 of 100 lines are
// dropped before they are parsed.
func decode(r io.Reader) (families, error) {
	lines, err := filter(r)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(lines))
}

// maxLine is the longest line that is read; longer ones are dropped.
const maxLine = 64 << 10

// filter returns the lines of wanted series. An incomplete last line, as of a
// connection that was cut off, is dropped.
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
		if err == nil && !tooLong && wanted[string(name)] {
			kept = append(kept, line...)
		}
		tooLong = err != nil
	}
}

// wanted are the names of the series that are read.
var wanted = map[string]bool{
	"tidb_server_query_total":                            true,
	"tidb_executor_statement_total":                      true,
	"tidb_server_handle_query_duration_seconds_sum":      true,
	"tidb_server_handle_query_duration_seconds_count":    true,
	"tidb_server_connections":                            true,
	"tidb_server_tokens":                                 true,
	"tidb_server_packet_io_bytes":                        true,
	"tidb_server_execute_error_total":                    true,
	"tidb_session_statement_pessimistic_retry_count_sum": true,
	"tidb_tikvclient_backoff_seconds_count":              true,
	"tidb_server_plan_cache_total":                       true,
	"tidb_server_plan_cache_miss_total":                  true,
	"tidb_server_maxprocs":                               true,
	"process_cpu_seconds_total":                          true,
	"process_resident_memory_bytes":                      true,
}

// each calls f for the series of a family.
func (f families) each(name string, visit func(label func(string) string, v float64)) {
	family := f[name]
	if family == nil {
		return
	}
	for _, m := range family.GetMetric() {
		v := m.GetUntyped().GetValue()
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		visit(func(name string) string {
			for _, l := range m.GetLabel() {
				if l.GetName() == name {
					return l.GetValue()
				}
			}
			return ""
		}, v)
	}
}

// sums adds up a family by one label: which others there are depends on the
// version (resource_group, db).
func (f families) sums(name, label string) map[string]float64 {
	sums := map[string]float64{}
	f.each(name, func(get func(string) string, v float64) { sums[get(label)] += v })
	return sums
}

// sum adds up a family; false if it has no series.
func (f families) sum(name string) (float64, bool) {
	sum, known := 0.0, false
	f.each(name, func(_ func(string) string, v float64) { sum, known = sum+v, true })
	return sum, known
}

// operations are the kinds of statements that other engines count too.
var operations = map[string]string{
	"Select": "select", "Insert": "insert", "Update": "update", "Delete": "delete", "Replace": "replace", "Begin": "begin",
}

// readFamilies sets the metrics. A kind of statement that never ran has no
// series, and none is made up.
func readFamilies(s *engine.Status, f families) {
	readCommands(s, f)
	readStatements(s, f)
	numbers.Read(s, f.sum)
	for direction, labels := range map[string][2]string{"received": {"In", "read"}, "sent": {"Out", "write"}} {
		totals := f.sums("tidb_server_packet_io_bytes", "type")
		for _, label := range labels { // now, before
			if v, ok := totals[label]; ok {
				s.Set(engine.BytesTotal, v, direction)
				break
			}
		}
	}
	for metric, family := range map[*measure.Metric][2]string{
		executeErrors:   {"tidb_server_execute_error_total", "type"},
		kvBackoffs:      {"tidb_tikvclient_backoff_seconds_count", "type"},
		planCacheHits:   {"tidb_server_plan_cache_total", "type"},
		planCacheMisses: {"tidb_server_plan_cache_miss_total", "type"},
	} {
		for label, v := range f.sums(family[0], family[1]) {
			if label = strings.TrimSpace(label); label != "" {
				s.Set(metric, v, label)
			}
		}
	}
}

// readCommands sets what clients asked: a statement is sent as text (Query) or
// prepared (StmtExecute). Preparing, closing and pinging is no statement.
func readCommands(s *engine.Status, f families) {
	total, errs := map[string]float64{}, map[string]float64{}
	f.each("tidb_server_query_total", func(get func(string) string, v float64) {
		command := get("type")
		total[command] += v
		if get("result") == "Error" {
			errs[command] += v
		}
	})
	asked, known := 0.0, false
	for command, n := range total {
		s.Set(commandsTotal, n, command)
		if command == "Query" || command == "StmtExecute" {
			asked, known = asked+n, true
		}
	}
	for command, n := range errs {
		s.Set(commandErrors, n, command)
	}
	if known {
		s.Set(engine.QueriesTotal, asked)
	}
}

// readStatements sets what was executed.
func readStatements(s *engine.Status, f families) {
	executed := f.sums("tidb_executor_statement_total", "type")
	all := 0.0
	for kind, n := range executed {
		s.Set(statementsTotal, n, kind)
		all += n
		if op, ok := operations[kind]; ok {
			s.Set(engine.OperationsTotal, n, op)
		}
	}
	if len(executed) > 0 {
		s.Set(engine.StatementsTotal, all)
	}
	if n, ok := executed["Commit"]; ok {
		s.Set(engine.CommitsTotal, n)
	}
	if n, ok := executed["Rollback"]; ok {
		s.Set(engine.RollbacksTotal, n)
	}
	counts := f.sums("tidb_server_handle_query_duration_seconds_count", "sql_type")
	for kind, seconds := range f.sums("tidb_server_handle_query_duration_seconds_sum", "sql_type") {
		if n, ok := counts[kind]; ok && kind != "internal" {
			s.Set(statementSeconds, seconds, kind)
			s.Set(statementCount, n, kind)
		}
	}
}
