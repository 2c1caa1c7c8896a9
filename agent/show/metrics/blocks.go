package metrics

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

const (
	// blockRange is how much time one block covers, in milliseconds: as after Prometheus has compacted its blocks of
	// two hours twice.
	blockRange = int64(18 * time.Hour / time.Millisecond)
	// chunkSamples is how many samples Prometheus puts into a chunk.
	chunkSamples = 120
)

// WriteBlocks writes everything as blocks that a Prometheus loads from its data directory, and returns their number.
// Unlike the text, they hold the ends of series. Each block appears in dir when it is complete.
func (b *Backfill) WriteBlocks(ctx context.Context, dir string) (int, error) {
	cursors, stop := b.cursors()
	defer stop()
	for n := 0; ; n++ {
		if err := cmp.Or(ctx.Err(), b.samples.err); err != nil {
			return n, fmt.Errorf("write blocks: %w", err)
		}
		number, more := int64(math.MaxInt64), false
		for _, c := range cursors {
			if c.more {
				number, more = min(number, c.t/blockRange), true
			}
		}
		if !more {
			return n, nil
		}
		if err := writeBlock(ctx, dir, number, cursors); err != nil {
			return n, fmt.Errorf("write blocks: %w", err)
		}
	}
}

// cursor goes through the samples of a series.
type cursor struct {
	labels labels.Labels
	pull   func() (int64, float64, bool)
	t      int64
	v      float64
	more   bool // t and v are a sample
}

func (c *cursor) next() { c.t, c.v, c.more = c.pull() }

// cursors returns a cursor at the first sample of each series, in the order of a block.
func (b *Backfill) cursors() (all []*cursor, stop func()) {
	var stops []func()
	for name, f := range b.families {
		for _, s := range f.series {
			set := []string{model.MetricNameLabel, name}
			for i, l := range s.names {
				if v := strings.ToValidUTF8(s.values[i], "\uFFFD"); v != "" {
					set = append(set, l, v)
				}
			}
			next, stop := iter.Pull2(s.each)
			c := &cursor{labels: labels.FromStrings(set...), pull: next}
			c.next()
			all, stops = append(all, c), append(stops, stop)
		}
	}
	slices.SortFunc(all, func(a, b *cursor) int { return labels.Compare(a.labels, b.labels) })
	return all, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// writeBlock writes the samples of one range.
func writeBlock(ctx context.Context, dir string, number int64, cursors []*cursor) error {
	b, err := newBlock(dir)
	if err != nil {
		return err
	}
	for _, c := range cursors {
		if err = b.add(number, c); err != nil {
			break
		}
	}
	if err == nil {
		err = b.finish(ctx)
	} else {
		b.chunks.Close()
	}
	if err != nil {
		os.RemoveAll(b.temp)
	}
	return err
}

// add writes the chunks of a series.
func (b *block) add(number int64, c *cursor) error {
	for c.more && c.t/blockRange == number {
		x := chunkenc.NewXORChunk()
		chunk := chunks.Meta{Chunk: x, MinTime: c.t}
		appender, err := x.Appender()
		if err != nil {
			return err
		}
		for ; c.more && c.t/blockRange == number && x.NumSamples() < chunkSamples; c.next() {
			v := c.v
			if math.IsNaN(v) {
				v = math.Float64frombits(value.StaleNaN)
			}
			appender.Append(0, c.t, v)
			chunk.MaxTime = c.t
		}
		if err := b.write(c.labels, chunk); err != nil {
			return err
		}
	}
	return nil
}

func newBlock(dir string) (*block, error) {
	id := newULID(time.Now())
	b := &block{id: id, path: filepath.Join(dir, id), minTime: math.MaxInt64, maxTime: math.MinInt64}
	b.temp = b.path + ".tmp-for-creation" // Prometheus removes such when it starts
	var err error
	if err = os.MkdirAll(b.temp, 0o777); err != nil {
		return nil, err
	}
	if b.chunks, err = chunks.NewWriter(filepath.Join(b.temp, "chunks")); err != nil {
		os.RemoveAll(b.temp)
		return nil, err
	}
	return b, nil
}

// block is a block that is being written.
type block struct {
	id, path, temp   string
	chunks           *chunks.Writer
	series           []blockSeries
	minTime, maxTime int64
	samples, nChunks uint64
}

type blockSeries struct {
	labels labels.Labels
	chunks []chunks.Meta // without their samples
}

// write writes the next chunk of the newest series or of one after it.
func (b *block) write(set labels.Labels, chunk chunks.Meta) error {
	metas := []chunks.Meta{chunk}
	if err := b.chunks.WriteChunks(metas...); err != nil {
		return err
	}
	if n := len(b.series); n == 0 || !labels.Equal(b.series[n-1].labels, set) {
		b.series = append(b.series, blockSeries{labels: set})
	}
	s := &b.series[len(b.series)-1]
	s.chunks = append(s.chunks, chunks.Meta{Ref: metas[0].Ref, MinTime: chunk.MinTime, MaxTime: chunk.MaxTime})
	b.minTime, b.maxTime = min(b.minTime, chunk.MinTime), max(b.maxTime, chunk.MaxTime)
	b.samples += uint64(chunk.Chunk.NumSamples())
	b.nChunks++
	return nil
}

// finish writes what describes the chunks and gives the block its name.
func (b *block) finish(ctx context.Context) error {
	if err := errors.Join(b.chunks.Close(), b.writeIndex(ctx), b.writeMeta()); err != nil {
		return err
	}
	return os.Rename(b.temp, b.path)
}

func (b *block) writeIndex(ctx context.Context) error {
	w, err := index.NewWriter(ctx, filepath.Join(b.temp, "index"))
	if err != nil {
		return err
	}
	symbols := map[string]bool{}
	for _, s := range b.series {
		s.labels.Range(func(l labels.Label) { symbols[l.Name], symbols[l.Value] = true, true })
	}
	for _, symbol := range slices.Sorted(maps.Keys(symbols)) {
		if err := w.AddSymbol(symbol); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	for i, s := range b.series {
		if err := w.AddSeries(storage.SeriesRef(i), s.labels, s.chunks...); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// writeMeta writes meta.json (prometheus/prometheus, tsdb.BlockMeta).
func (b *block) writeMeta() error {
	type stats struct {
		Samples uint64 `json:"numSamples"`
		Series  int    `json:"numSeries"`
		Chunks  uint64 `json:"numChunks"`
	}
	type compaction struct {
		Level   int      `json:"level"`
		Sources []string `json:"sources"`
	}
	data, err := json.Marshal(struct {
		ID         string     `json:"ulid"`
		MinTime    int64      `json:"minTime"`
		MaxTime    int64      `json:"maxTime"` // exclusive
		Stats      stats      `json:"stats"`
		Compaction compaction `json:"compaction"`
		Version    int        `json:"version"`
	}{b.id, b.minTime, b.maxTime + 1, stats{b.samples, len(b.series), b.nChunks}, compaction{1, []string{b.id}}, 1})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.temp, "meta.json"), append(data, '\n'), 0o666)
}

// newULID returns the name of a block: 48 bits of time and 80 random ones in
// Crockford's base 32 (github.com/ulid/spec).
func newULID(now time.Time) string {
	var id [20]byte // the first 30 bits are 0, the first six characters left out
	binary.BigEndian.PutUint64(id[2:], uint64(now.UnixMilli()))
	_, _ = rand.Read(id[10:]) // never fails
	return base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").EncodeToString(id[:])[6:]
}
