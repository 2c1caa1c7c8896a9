package mysql

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestFlushing guards what InnoDB's own reads and writes of pages explain.
func TestFlushing(t *testing.T) {
	run := func(grown values, over map[*measure.Measure][]float64) *cause.View {
		return &cause.View{Limit: cause.State, Share: 0.8, Seconds: 20, Threads: 4, Throughput: 100, Record: &causetest.Record{Grown: grown, Over: over, Settings: map[string]string{"innodb_io_capacity": "200"}}}
	}
	pool := func(dirty float64) map[*measure.Measure][]float64 {
		return map[*measure.Measure][]float64{dirtyPages: {dirty, dirty}, allPages: {1000}, engine.PagesRead: {50, 50}}
	}
	for name, c := range map[string]struct {
		find func(*cause.View) (cause.Found, bool)
		view *cause.View
		part float64 // 0: silent
		text string
	}{
		"pages written for room":           {slowFlushing, run(values{flushedForRoom: 800}, pool(800)), 0.8, "for 80 % of the pages that statements read, a page that was not yet written was in the way; 40 pages a second were written to make room for others; 80 % of the buffer pool"},
		"waits for a free page":            {slowFlushing, run(values{freeWaits: 400}, pool(800)), 0.4, "waited 20 times a second"},
		"more written than read":           {slowFlushing, run(values{flushedForRoom: 4000}, pool(800)), 1, "for 100 % of the pages"},
		"few pages written for room":       {slowFlushing, run(values{flushedForRoom: 40}, pool(800)), 0, ""},
		"nothing read":                     {slowFlushing, run(values{flushedForRoom: 4000}, map[*measure.Measure][]float64{engine.PagesRead: {0, 0}}), 1, ""},
		"unknown pages":                    {slowFlushing, run(values{flushedForRoom: 4000}, nil), 0, ""},
		"pages written twice":              {doublewritten, run(values{writtenTwice: 80 << 20, bytesWritten: 170 << 20}, pool(0)), 0.43, "read 800 KiB a second; 43 % of that was the doublewrite buffer"},
		"written twice beside reads":       {doublewritten, run(values{writtenTwice: 8 << 20, bytesWritten: 17 << 20}, map[*measure.Measure][]float64{engine.PagesRead: {2000, 2000}}), 0.01, ""},
		"more written twice than at all":   {doublewritten, run(values{writtenTwice: 80 << 20, bytesWritten: 17 << 20}, pool(0)), 0, ""},
		"no doublewrite":                   {doublewritten, run(values{writtenTwice: 0, bytesWritten: 170 << 20}, pool(0)), 0, ""},
		"read ahead and evicted":           {vainReadAhead, run(values{readBefore: 9000, readForNothing: 6000}, pool(0)), 0.6, "67 % of them evicted without any use"},
		"read ahead and used":              {vainReadAhead, run(values{readBefore: 9000, readForNothing: 60}, pool(0)), 0, ""},
		"read ahead on an unknown version": {vainReadAhead, run(nil, pool(0)), 0, ""},
	} {
		found, is := c.find(c.view)
		if is != (c.part > 0) || is && (math.Abs(found.Part-c.part) > 0.01 || !strings.Contains(found.Evidence, c.text)) {
			t.Errorf("%s: %v %+v, want %v", name, is, found, c.part)
		}
	}
}
