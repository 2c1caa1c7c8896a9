package haproxy

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// statistics are the rows of `show stat`: one for each frontend, backend and server. Columns that a version lacks are
// absent.
type statistics struct {
	// exported: they are from the endpoint for Prometheus.
	exported bool
	columns  map[string]int
	rows     [][]string
}

// row is one row of the statistics.
type row struct {
	of    *statistics
	cells []string
}

// text returns a cell; empty if the version lacks the column.
func (r *row) text(column string) string {
	if i, ok := r.of.columns[column]; ok && i < len(r.cells) {
		return r.cells[i]
	}
	return ""
}

// number returns a cell as a number.
func (r *row) number(column string) (float64, bool) {
	n, err := strconv.ParseFloat(r.text(column), 64)
	return n, err == nil && n >= 0
}

// samples is the number of connections whose times HAProxy averages (TIME_STATS_SAMPLES).
const samples = 512

// mean returns the mean of a time of the last connections to a server, in seconds. HAProxy keeps a sum over the last 512
// connections. In mode tcp it divides it by the number of connections for which it chose a server at once, which leaves
// out those from the queue: 2.6 to 3.2 show 6504 ms for 36 ms. The endpoint for Prometheus always divides by 512.
func (r *row) mean(column string) (seconds float64, ok bool) {
	ms, ok := r.number(column)
	total, _ := r.number("stot")
	if !ok || total == 0 {
		return 0, false
	}
	divisor := float64(samples)
	if !r.of.exported {
		if r.text("mode") != "tcp" {
			return ms / 1000, true
		}
		chosen, _ := r.number("lbtot")
		divisor = min(max(chosen, 1), samples)
	}
	return ms / 1000 * divisor / min(total, samples), true
}

// kind returns the kind of the row, which is in the name of its server: FRONTEND, BACKEND, or anything for a server.
func (r *row) kind() string {
	switch name := r.text("svname"); name {
	case "FRONTEND", "BACKEND":
		return name
	}
	return server
}

const (
	frontend = "FRONTEND"
	backend  = "BACKEND"
	server   = "server"
)

// parseStatistics reads CSV, whose first line is "# pxname,svname,…".
func parseStatistics(text []byte) (*statistics, error) {
	text, ok := bytes.CutPrefix(bytes.TrimLeft(text, "\n"), []byte("# "))
	if !ok {
		return nil, errors.New("the answer is not HAProxy's CSV")
	}
	in := csv.NewReader(bytes.NewReader(text))
	in.FieldsPerRecord, in.LazyQuotes = -1, true
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("HAProxy's CSV: %w", err)
	}
	s := &statistics{columns: map[string]int{}}
	for i, name := range header {
		if _, twice := s.columns[name]; !twice {
			s.columns[name] = i
		}
	}
	for _, name := range []string{"pxname", "svname", "scur", "status"} {
		if _, ok := s.columns[name]; !ok {
			return nil, fmt.Errorf("HAProxy's CSV has no column %s", name)
		}
	}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("HAProxy's CSV: %w", err)
		}
		if len(cells) > 1 {
			s.rows = append(s.rows, cells)
		}
	}
}

// info is the answer to `show info`: a name and a value in each line.
type info map[string]string

func parseInfo(text []byte) info {
	out := info{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[name] = strings.TrimSpace(value)
		}
	}
	return out
}

func (i info) number(name string) (float64, bool) {
	n, err := strconv.ParseFloat(i[name], 64)
	return n, err == nil && n >= 0
}

// exported are the metrics of the endpoint for Prometheus, without haproxy_frontend_, haproxy_backend_ and
// haproxy_server_, by their column of the CSV. Times are in seconds there and in milliseconds in the CSV.
var exported = map[string]string{
	"current_queue": "qcur", "current_sessions": "scur", "limit_sessions": "slim", "sessions_total": "stot",
	"bytes_in_total": "bin", "bytes_out_total": "bout", "requests_denied_total": "dreq", "denied_connections_total": "dcon",
	"denied_sessions_total": "dses", "connection_errors_total": "econ", "response_errors_total": "eresp",
	"retry_warnings_total": "wretr", "redispatch_warnings_total": "wredis", "client_aborts_total": "cli_abrt",
	"server_aborts_total": "srv_abrt", "weight": "weight", "check_failures_total": "chkfail", "check_up_down_total": "chkdown",
	"queue_limit": "qlimit", "queue_time_average_seconds": "qtime", "connect_time_average_seconds": "ctime",
	"response_time_average_seconds": "rtime", "connection_attempts_total": "connect", "connection_reuses_total": "reuse",
	"connections_total": "conn_tot",
}

// exportedInfo are the metrics of the process, without haproxy_process_, by their name in `show info`.
var exportedInfo = map[string]string{
	"nbthread": "Nbthread", "max_connections": "Maxconn", "current_connections": "CurrConns", "idle_time_percent": "Idle_pct",
	"uptime_seconds": "Uptime_sec", "start_time_seconds": "Start_time_sec", "max_fds": "Ulimit-n",
}

// parseMetrics reads the endpoint for Prometheus into the form of the runtime socket.
func parseMetrics(text []byte) (*statistics, info, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, nil, fmt.Errorf("HAProxy's metrics: %w", err)
	}
	s := &statistics{exported: true, columns: map[string]int{"pxname": 0, "svname": 1, "status": 2, "mode": 3}}
	for _, column := range exported {
		s.columns[column] = len(s.columns)
	}
	process, rows := info{}, map[[2]string][]string{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
			if short, ok := strings.CutPrefix(name, "haproxy_process_"); ok {
				process.export(short, value, labels)
				continue
			}
			key, short := exportedRow(name, labels)
			if short == "" {
				continue
			}
			if rows[key] == nil {
				cells := make([]string, len(s.columns))
				cells[0], cells[1] = key[0], key[1]
				rows[key] = cells
				s.rows = append(s.rows, cells)
			}
			s.export(rows[key], short, value, labels)
		}
	}
	if len(s.rows) == 0 {
		return nil, nil, errors.New("the answer has no metrics of HAProxy")
	}
	return s, process, nil
}

// exportedRow returns the row to which a metric belongs, and its name without the row's kind.
func exportedRow(name string, labels map[string]string) (key [2]string, short string) {
	for prefix, row := range map[string]string{
		"haproxy_frontend_": frontend, "haproxy_backend_": backend, "haproxy_server_": labels["server"],
	} {
		if short, ok := strings.CutPrefix(name, prefix); ok && row != "" && labels["proxy"] != "" {
			return [2]string{labels["proxy"], row}, short
		}
	}
	return key, ""
}

func (s *statistics) export(cells []string, short string, value float64, labels map[string]string) {
	switch { // only a section in mode http counts requests
	case short == "http_requests_total":
		cells[s.columns["mode"]] = "http"
	case cells[s.columns["mode"]] == "":
		cells[s.columns["mode"]] = "tcp"
	}
	if short == "status" && value == 1 && labels["state"] != "" {
		cells[s.columns["status"]] = labels["state"]
	}
	column, ok := exported[short]
	if !ok || labels["code"] != "" || math.IsNaN(value) {
		return
	}
	if strings.HasSuffix(short, "_average_seconds") {
		value *= 1000
	}
	cells[s.columns[column]] = strconv.FormatFloat(value, 'f', -1, 64)
}

func (i info) export(short string, value float64, labels map[string]string) {
	if short == "build_info" {
		i["Version"] = labels["version"]
	}
	if name, ok := exportedInfo[short]; ok {
		i[name] = strconv.FormatFloat(value, 'f', -1, 64)
	}
}
