package metrics

import (
	"context"
	"fmt"
	"math"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// writeRange is how much time, in milliseconds, one request covers for all series. A receiver refuses samples that
	// are too old compared with the newest sample of any series.
	writeRange = 15_000
	// writeSamples is how many samples one request has at most, about.
	writeSamples = 5000
)

// RemoteWriter sends a request, see [remote.API].
type RemoteWriter interface {
	Write(ctx context.Context, msgType remote.WriteMessageType, msg any, opts ...remote.WriteOption) (remote.WriteResponseStats, error)
}

// Sent is what RemoteWrite has sent.
type Sent struct{ Series, Samples int }

// RemoteWrite sends everything by Prometheus' remote write 1.0, in the order of time
// and with the ends of series as stale markers. What was sent before an error remains.
func (b *Backfill) RemoteWrite(ctx context.Context, to RemoteWriter) (Sent, error) {
	cursors, stop := b.cursors()
	defer stop()
	var sent Sent
	for _, c := range cursors {
		if c.more {
			sent.Series++
		}
	}
	request, n := writeRequest{}, 0
	send := func() error {
		if n == 0 {
			return nil
		}
		if _, err := to.Write(ctx, remote.WriteV1MessageType, request); err != nil {
			return fmt.Errorf("remote write: %w", err)
		}
		sent.Samples += n
		request, n = request[:0], 0
		return nil
	}
	for first := earliest(cursors); first < math.MaxInt64; first = earliest(cursors) {
		for _, c := range cursors {
			if !c.more || c.t >= first+writeRange {
				continue
			}
			one := appendSeriesLabels(nil, c.labels)
			for ; c.more && c.t < first+writeRange; c.next() {
				v := c.v
				if math.IsNaN(v) {
					v = math.Float64frombits(value.StaleNaN)
				}
				one = appendSample(one, v, c.t)
				n++
			}
			request = appendMessage(request, requestSeries, one)
			if n >= writeSamples {
				if err := send(); err != nil {
					return sent, err
				}
			}
		}
	}
	if b.samples.err != nil {
		return sent, b.samples.err
	}
	return sent, send()
}

// earliest returns the time of the first remaining sample, the largest number without samples.
func earliest(cursors []*cursor) int64 {
	first := int64(math.MaxInt64)
	for _, c := range cursors {
		if c.more {
			first = min(first, c.t)
		}
	}
	return first
}

// Numbers of fields in the messages of remote write 1.0: a request has series, a series
// labels and samples.
const (
	requestSeries                = protowire.Number(1)
	seriesLabel, seriesSample    = protowire.Number(1), protowire.Number(2)
	labelName, labelValue        = protowire.Number(1), protowire.Number(2)
	sampleValue, sampleTimestamp = protowire.Number(1), protowire.Number(2)
)

// writeRequest is a request in its encoding. Its methods are the ones for which
// [remote.API] looks.
type writeRequest []byte

// Size is the length of the encoding.
func (r writeRequest) Size() int { return len(r) }

// MarshalToSizedBuffer copies the encoding to a buffer of its size.
func (r writeRequest) MarshalToSizedBuffer(buffer []byte) (int, error) { return copy(buffer, r), nil }

func appendMessage(to []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), message)
}

func appendSeriesLabels(series []byte, set labels.Labels) []byte {
	set.Range(func(l labels.Label) {
		label := appendMessage(nil, labelName, []byte(l.Name))
		series = appendMessage(series, seriesLabel, appendMessage(label, labelValue, []byte(l.Value)))
	})
	return series
}

// appendSample takes the time in Unix milliseconds.
func appendSample(series []byte, v float64, t int64) []byte {
	sample := protowire.AppendFixed64(protowire.AppendTag(nil, sampleValue, protowire.Fixed64Type), math.Float64bits(v))
	sample = protowire.AppendVarint(protowire.AppendTag(sample, sampleTimestamp, protowire.VarintType), uint64(t))
	return appendMessage(series, seriesSample, sample)
}
