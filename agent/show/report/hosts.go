package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// hostCPU asks node_exporter's series for the CPU of each host whose name matches a
// quoted expression. rate needs two samples, so the range is a few scrape intervals.
const hostCPU = `100 * (1 - avg by (nodename) (sum without (mode) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[30s]))
  * on (job, instance) group_left (nodename) max by (job, instance, nodename) (node_uname_info{nodename=~%s})))`

const (
	// hostPoints is roughly the number of points requested for each host.
	hostPoints = 400
	// longestAnswer bounds what is read from Prometheus.
	longestAnswer = 32 << 20
)

// AddHosts adds a chart of the CPU of the run's own hosts, as far as Prometheus has
// series of them. It adds nothing if there are none. The error never contains the
// address, which may hold a password.
func (r *Report) AddHosts(ctx context.Context, h *record.History, prometheus string) error {
	var names []string
	roles := map[string]string{}
	for _, host := range h.Snapshot.Meta.Hosts() {
		if roles[host.Nodename] == "" {
			names = append(names, regexp.QuoteMeta(host.Nodename))
		} else {
			roles[host.Nodename] += ", "
		}
		roles[host.Nodename] += string(host.Role)
	}
	if len(names) == 0 {
		return nil
	}
	a := newAxis(h)
	step := math.Ceil(max(1, (a.to-a.from)/hostPoints))
	query := url.Values{
		"query": {fmt.Sprintf(hostCPU, strconv.Quote(strings.Join(names, "|")))},
		"start": {strconv.FormatInt(h.At(a.from).Unix(), 10)},
		"end":   {strconv.FormatInt(h.At(a.to).Unix()+1, 10)},
		"step":  {strconv.FormatFloat(step, 'f', 0, 64)},
	}
	lines, err := askRange(ctx, strings.TrimSuffix(prometheus, "/")+"/api/v1/query_range?"+query.Encode(), h)
	if err != nil {
		return fmt.Errorf("ask Prometheus for the hosts' CPU: %w", err)
	}
	c := Chart{Scope: measure.Host, Title: "CPU of the run's hosts", Unit: "% of all their cores, from Prometheus", From: a.from, To: a.to, Bands: a.bands, Markers: a.markers}
	for _, l := range lines {
		c.add(fmt.Sprintf("%s (%s)", l.Name, roles[l.Name]), l.X, l.Y, series.TallyOf(l.X, l.Y, math.Inf(1)))
	}
	if !c.Empty() {
		r.Charts = append(r.Charts, c)
		r.Sections = r.sections()
	}
	return nil
}

// prometheusClient follows no redirect: the configuration names the address.
var prometheusClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// askRange reads the answer to a range query as lines on the history's axis.
func askRange(ctx context.Context, address string, h *record.History) ([]Line, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := prometheusClient.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok { // the address may hold a password
			err = inner.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Result []struct {
				Metric map[string]string    `json:"metric"`
				Values [][2]json.RawMessage `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, longestAnswer)).Decode(&answer)
	switch {
	case response.StatusCode != http.StatusOK && answer.Error != "":
		return nil, errors.New(table.Clip(answer.Error, 200))
	case response.StatusCode != http.StatusOK:
		return nil, errors.New(response.Status)
	case err != nil:
		return nil, fmt.Errorf("unexpected answer: %w", err)
	}
	var lines []Line
	for _, host := range answer.Data.Result {
		l := Line{Name: host.Metric["nodename"]}
		for _, v := range host.Values {
			at, err1 := strconv.ParseFloat(string(v[0]), 64)
			value, err2 := strconv.ParseFloat(strings.Trim(string(v[1]), `"`), 64)
			if err1 == nil && err2 == nil {
				l.X, l.Y = append(l.X, h.Elapsed(time.UnixMilli(int64(at*1000)))), append(l.Y, value)
			}
		}
		lines = append(lines, l)
	}
	return lines, nil
}
