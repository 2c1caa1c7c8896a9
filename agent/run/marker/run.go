package marker

import (
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Began opens the region of a run. It changes nothing if the run has a region or has ended.
// Generators of a group have no region, only the group has.
func (d *Deliverer) Began(dir rundir.Directory, meta rundir.Meta) {
	if !meta.Ended() && !meta.IsGenerator() {
		d.append(dir, ofRun(&meta, nil))
	}
}

// Settled closes the region of a run with its outcome.
func (d *Deliverer) Settled(dir rundir.Directory, snap ingest.Snapshot) {
	if !snap.Meta.IsGenerator() {
		d.append(dir, ofRun(&snap.Meta, snap.Summary))
	}
}

func (d *Deliverer) append(dir rundir.Directory, m Marker) {
	if err := Append(dir, m); err != nil {
		d.log.Error("marker not recorded", "run", m.Run, "err", err)
	}
	d.Kick()
}

// ofRun is the region of a run. Its text is the title, the workload and, after the end, the outcome
// and the throughput if the tool reported it.
func ofRun(meta *rundir.Meta, sum *ingest.Summary) Marker {
	m := Marker{Kind: Run, Run: meta.ID, Start: meta.StartedAt}
	var what []string
	for _, f := range meta.Facts() {
		_, isLabel := meta.Labels[f.Name]
		switch {
		case f.Value == "":
			continue
		case f.Name == "threads":
			what = append(what, table.Plural(meta.Threads, "thread"))
		case f.Name == "tool" || f.Name == "workload":
			what = append(what, f.Value)
		case !isLabel:
			continue // Grafana limits the tags of an annotation
		}
		m.Tags = append(m.Tags, f.Name+":"+f.Value)
	}
	m.Text = meta.Title + "\n" + strings.Join(what, ", ")
	if !meta.Ended() {
		return m
	}
	m.End = *meta.EndedAt
	m.Tags = append(m.Tags, "result:"+string(meta.Outcome))
	m.Text += "\n" + string(meta.Outcome)
	if meta.Reason != "" {
		m.Text += ": " + meta.Reason
	}
	if sum != nil {
		if v := sum.Report().Rate(tool.Transaction); v.Known {
			m.Text += fmt.Sprintf("\n%.1f transactions/s", v.Value)
		}
	}
	return m
}
