package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// readBlocks returns the samples of all blocks in a folder, by series, with the
// names of the text format.
func readBlocks(t *testing.T, dir string) map[string]sampled {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]sampled{}
	entries, err := os.ReadDir(dir)
	must(err)
	for _, e := range entries {
		r, err := index.NewFileReader(filepath.Join(dir, e.Name(), "index"), index.DecodePostingsRaw)
		must(err)
		c, err := chunks.NewDirReader(filepath.Join(dir, e.Name(), "chunks"), nil)
		must(err)
		postings, err := r.Postings(t.Context(), "", "")
		must(err)
		for postings.Next() {
			var builder labels.ScratchBuilder
			var metas []chunks.Meta
			must(r.Series(postings.At(), &builder, &metas))
			var names, values []string
			builder.Labels().Range(func(l labels.Label) {
				if l.Name != model.MetricNameLabel {
					names, values = append(names, l.Name), append(values, l.Value)
				}
			})
			name := canonical(t, builder.Labels().Get(model.MetricNameLabel)+string(appendLabels(nil, names, values)))
			s := all[name]
			for _, m := range metas {
				chunk, _, err := c.ChunkOrIterable(m)
				must(err)
				it := chunk.Iterator(nil)
				for it.Next() == chunkenc.ValFloat {
					at, v := it.At()
					s.times, s.values = append(s.times, at), append(s.values, v)
				}
				must(it.Err())
			}
			all[name] = s
		}
		must(errors.Join(postings.Err(), c.Close(), r.Close()))
	}
	return all
}

var empty = regexp.MustCompile(`([{,])(?:\w+="",?)+`)

// TestBlocksEndTheirSeries guards that blocks hold the values of the text, over
// several blocks, and that each series is ended, at the latest some seconds after
// the run.
func TestBlocksEndTheirSeries(t *testing.T) {
	data, err := os.ReadFile("../../model/tool/ycsb/testdata/0.17.0/jdbc-run-a-t10-int1/stderr.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := runOf(t, "ycsb", string(data), true)
	began := time.UnixMilli(blockRange * (start.UnixMilli()/blockRange + 1)).Add(-10 * time.Second) // the end of a block
	meta, err := dir.Update(func(m *rundir.Meta) {
		end := began.Add(m.EndedAt.Sub(m.StartedAt))
		m.StartedAt, m.ClockStartedAt, m.EndedAt, m.ClosedAt = began, &began, &end, &end
	})
	if err != nil {
		t.Fatal(err)
	}
	recorder := record.NewRecorder(dir, began)
	defer recorder.Close()
	for i := range 30 {
		if i > 10 && i < 20 {
			continue // the agent was away
		}
		tick := began.Add(time.Duration(i) * time.Second)
		s := engine.Sample{Target: &engine.Target{Name: "n1", Engine: "mysql", Cluster: "c"}, Tick: tick, Asked: tick, Answered: tick}
		s.Status = &engine.Status{Role: "primary"}
		s.Status.Set(engine.QueriesTotal, float64(i))
		if i > 24 {
			s.Status.Role = "replica"
		}
		if err := recorder.Record(engine.Frame{Tick: tick, Samples: []engine.Sample{s}}); err != nil {
			t.Fatal(err)
		}
	}
	h, err := record.Read(t.Context(), dir, registry.Tools)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBackfill()
	defer b.Close()
	if err := b.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if n, err := b.WriteBlocks(t.Context(), folder); err != nil || n != 2 {
		t.Fatalf("%d blocks, %v", n, err)
	}
	got := readBlocks(t, folder)
	for name, want := range backfill(t, h) {
		name = strings.Replace(empty.ReplaceAllString(name, "$1"), ",}", "}", 1) // a block leaves them out
		var known sampled
		ends := 0
		for i, v := range got[name].values {
			if value.IsStaleNaN(v) {
				ends++
				continue
			}
			known.times, known.values = append(known.times, got[name].times[i]), append(known.values, v)
		}
		if fmt.Sprint(known) != fmt.Sprint(want) {
			t.Errorf("%s is %v, in the text %v", name, known, want)
		}
		last := len(got[name].values) - 1
		if ends == 0 || !value.IsStaleNaN(got[name].values[last]) {
			t.Errorf("%s has no end", name)
		} else if after := time.UnixMilli(got[name].times[last]).Sub(*meta.ClosedAt); after > 9*time.Second {
			t.Errorf("%s ends %s after the run", name, after)
		}
	}
	endOf := func(name string) (ends []float64) {
		for i, v := range got[canonical(t, name)].values {
			if math.IsNaN(v) {
				ends = append(ends, time.UnixMilli(got[canonical(t, name)].times[i]).Sub(began).Seconds())
			}
		}
		return ends
	}
	if ends := endOf(prefix + `db_queries_total{cluster="c",engine="mysql",role="primary",target="n1"}`); fmt.Sprint(ends) != "[15 25]" {
		t.Errorf("the primary's series ends at %v", ends)
	}
}

// TestBlocksAreWhole guards that a block that can't be finished does not appear.
func TestBlocksAreWhole(t *testing.T) {
	b := NewBackfill()
	defer b.Close()
	b.point(runActive, 1, 1, "r")
	if _, err := b.WriteBlocks(t.Context(), filepath.Join(t.TempDir(), "gone", "\x00")); err == nil {
		t.Error("written into a folder that can't be")
	}
	dir := t.TempDir()
	if n, err := b.WriteBlocks(t.Context(), dir); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if left, err := fs.Glob(os.DirFS(dir), "*"); err != nil || len(left) != 1 || len(left[0]) != 26 {
		t.Errorf("%v, %v", left, err)
	}
}
