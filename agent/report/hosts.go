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
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/history"
	"github.com/benchwatch/benchwatch/agent/table"
)

// hostCPU asks node_exporter's series for the CPU of each host. rate needs two
// samples, so the range is a few scrape intervals.
const hostCPU = `100 * (1 - avg by (instance) (sum without (mode) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[30s]))))`

const (
	// hostPoints is roughly the number of points requested for each host.
	hostPoints = 400
	// longestAnswer bounds what is read from Prometheus.
	longestAnswer = 32 << 20
)

// AddHosts adds a chart of the CPU of all hosts that Prometheus has series of. It
// adds nothing if there are none. The error never contains the address, which may
// hold a password.
func (r *Report) AddHosts(ctx context.Context, h *history.History, prometheus string) error {
	a := newAxis(h)
	step := math.Ceil(max(1, (a.to-a.from)/hostPoints))
	query := url.Values{
		"query": {hostCPU},
		"start": {strconv.FormatInt(h.At(a.from).Unix(), 10)},
		"end":   {strconv.FormatInt(h.At(a.to).Unix()+1, 10)},
		"step":  {strconv.FormatFloat(step, 'f', 0, 64)},
	}
	lines, err := askRange(ctx, strings.TrimSuffix(prometheus, "/")+"/api/v1/query_range?"+query.Encode(), h)
	if err != nil {
		return fmt.Errorf("ask Prometheus for the hosts' CPU: %w", err)
	}
	c := Chart{Title: "CPU of the hosts", Unit: "% of all their cores, from Prometheus", From: a.from, To: a.to, Bands: a.bands, Marks: a.marks}
	for _, l := range lines {
		c.add(l.Name, l.X, l.Y)
	}
	if !c.Empty() {
		r.Charts = append(r.Charts, c)
	}
	return nil
}

// askRange reads the answer to a range query as lines on the history's axis.
func askRange(ctx context.Context, address string, h *history.History) ([]Line, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
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
		l := Line{Name: host.Metric["instance"]}
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
