package report

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/measure"
	"github.com/benchwatch/benchwatch/agent/run/promql"
	"github.com/benchwatch/benchwatch/agent/run/record"
)

// hostCPU queries node_exporter's series for the CPU of each host whose name matches a quoted expression. rate needs
// two samples, so the range is a few scrape intervals.
const hostCPU = `100 * (1 - avg by (nodename) (sum without (mode) (rate(node_cpu_seconds_total{mode=~"idle|iowait"}[30s]))
  * on (job, instance) group_left (nodename) max by (job, instance, nodename) (node_uname_info{nodename=~%s})))`

// hostPoints is roughly the number of points requested for each host.
const hostPoints = 400

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
	step := time.Duration(math.Ceil(max(1, (a.to-a.from)/hostPoints))) * time.Second
	query := fmt.Sprintf(hostCPU, strconv.Quote(strings.Join(names, "|")))
	matrix, err := promql.Server{URL: prometheus}.Range(ctx, query, h.At(a.from), h.At(a.to).Add(time.Second), step)
	if err != nil {
		return fmt.Errorf("ask Prometheus for the hosts' CPU: %w", err)
	}
	c := Chart{Scope: measure.Host, Title: "CPU of the run's hosts",
		Unit: "% of all their cores, from Prometheus", From: a.from, To: a.to, Bands: a.bands, Markers: a.markers}
	for _, one := range matrix {
		var x, y []float64
		for _, v := range one.Values {
			x, y = append(x, h.Elapsed(v.Timestamp.Time())), append(y, float64(v.Value))
		}
		name := string(one.Metric["nodename"])
		c.add(fmt.Sprintf("%s (%s)", name, roles[name]), x, y, series.TallyOf(x, y, math.Inf(1)))
	}
	if !c.Empty() {
		r.Charts = append(r.Charts, c)
		r.Sections = r.sections()
	}
	return nil
}
