package ingest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// A run of any tool that printed the latency of its work has a headline latency, and
// never that of cleanup or of failed operations.
func TestEveryToolHasAHeadline(t *testing.T) {
	for _, tl := range allTools {
		headlines := 0
		for i, out := range recordings(t, tl) {
			log := filepath.Join(t.TempDir(), "log")
			write(t, log, string(out))
			im := Import{DataDir: t.TempDir(), Log: Log{Path: log, Tool: tl}}
			runs, err := im.Run(t.Context())
			if err != nil {
				continue // nothing in it
			}
			for _, r := range runs {
				snap, err := Read(t.Context(), rundir.At(im.DataDir, r.Meta.ID), tool.Set{tl})
				if err != nil || snap.Summary == nil {
					continue
				}
				all := snap.Summary.Report()
				l := all.Headline()
				known := slices.ContainsFunc(all.Latencies, func(x tool.Latency) bool {
					return (x.Operation == tool.Transaction || x.Operation == tool.NewOrder) && (x.Stat == "avg" || x.Stat[0] == 'p')
				})
				if known && !l.Known {
					t.Errorf("%s, recording %d: no headline of %v", tl.Name, i, all.Latencies)
				}
				if l.Known {
					headlines++
				}
			}
		}
		if headlines == 0 && tl.Name != "mysqlslap" {
			t.Errorf("%s: no recording has a headline", tl.Name)
		}
	}
}
