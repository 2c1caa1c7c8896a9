package metrics

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// spans are the samples of one series, in pieces at rising times. NaN ends the series
// until the next value.
type spans struct {
	labels        string
	names, values []string // the same
	// valid is how long a value lasts if none follows, in milliseconds; 0: until the
	// series' end is added.
	valid int64
	// emission is when the series was emitted last, see replay.
	emission int
	state    bool // of its family

	store    *sampleStore
	pieces   []piece
	chunk    *chunkenc.XORChunk // the samples of the last piece, until it is stored
	appender chunkenc.Appender
}

// piece is samples from one instant to another, in milliseconds since 1970.
type piece struct {
	first, last, offset int64
	size                int // in the store; 0: not there yet
}

// pieceSamples is how many samples of a series are held in memory.
const pieceSamples = 240

func (s *spans) add(at int64, v float64) {
	n := len(s.pieces)
	if s.chunk == nil || s.pieces[n-1].last >= at || s.chunk.NumSamples() >= pieceSamples {
		s.flush()
		s.chunk = chunkenc.NewXORChunk()
		s.appender, _ = s.chunk.Appender() // an empty chunk has one
		s.pieces = append(s.pieces, piece{first: at})
		n++
	}
	s.appender.Append(0, at, v)
	s.pieces[n-1].last = at
}

// flush stores the last piece.
func (s *spans) flush() {
	if s.chunk == nil {
		return
	}
	p := &s.pieces[len(s.pieces)-1]
	p.offset, p.size = s.store.add(s.chunk.Bytes())
	s.chunk, s.appender = nil, nil
}

// end ends the series at an instant, or after its last sample if that is later.
func (s *spans) end(at int64) {
	for _, p := range s.pieces {
		at = max(at, p.last+1)
	}
	s.add(at, math.NaN())
}

// each goes through the samples of a series by time; NaN is its end until the next
// one. Two runs that overlap have samples of the same servers: the samples of the run
// that began first count.
func (s *spans) each(yield func(at int64, v float64) bool) {
	s.flush()
	slices.SortStableFunc(s.pieces, func(a, b piece) int { return cmp.Compare(a.first, b.first) })
	last, ended := int64(math.MinInt64), true
	var it chunkenc.Iterator
	for _, p := range s.pieces {
		chunk, err := chunkenc.FromData(chunkenc.EncXOR, s.store.read(p.offset, p.size))
		if err != nil {
			return // it is in the store
		}
		for it = chunk.Iterator(it); it.Next() != chunkenc.ValNone; {
			t, v := it.At()
			if t <= last || ended && math.IsNaN(v) {
				continue
			}
			if !ended && s.valid > 0 && t-last > s.valid {
				if !yield(last+s.valid, math.NaN()) {
					return
				}
				if ended = true; math.IsNaN(v) {
					continue
				}
			}
			if !yield(t, v) {
				return
			}
			last, ended = t, math.IsNaN(v)
		}
	}
	if !ended && s.valid > 0 {
		yield(last+s.valid, math.NaN())
	}
}

// sampleStore holds pieces in a file without a name, the last ones in memory. After
// an error all that it returns is empty.
type sampleStore struct {
	file   *os.File
	stored int64 // bytes in the file
	last   []byte
	err    error
}

// storeBuffer is how many bytes are held in memory.
const storeBuffer = 1 << 20

func (s *sampleStore) add(data []byte) (offset int64, size int) {
	offset = s.stored + int64(len(s.last))
	s.last = append(s.last, data...)
	if len(s.last) >= storeBuffer && s.err == nil {
		s.err = s.write()
	}
	return offset, len(data)
}

func (s *sampleStore) write() error {
	if s.file == nil {
		file, err := os.CreateTemp("", "benchwatch-export-")
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		s.file = file
		if err := os.Remove(file.Name()); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	n, err := s.file.WriteAt(s.last, s.stored)
	s.stored, s.last = s.stored+int64(n), s.last[:0]
	if err != nil {
		return fmt.Errorf("export: write temporary file: %w", err)
	}
	return nil
}

func (s *sampleStore) read(offset int64, size int) []byte {
	data := make([]byte, size)
	if s.err != nil {
		return nil
	}
	if offset >= s.stored {
		copy(data, s.last[offset-s.stored:])
		return data
	}
	if _, err := s.file.ReadAt(data, offset); err != nil {
		s.err = fmt.Errorf("export: read temporary file: %w", err)
		return nil
	}
	return data
}

func (s *sampleStore) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
