package metrics

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

const (
	// writeRange is how much time, in milliseconds, one request has of all series: a
	// receiver takes what is not too old, and the newest sample of any series decides
	// what that is.
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
	var cursors []*cursor
	defer func() {
		for _, c := range cursors {
			c.stop()
		}
	}()
	var sent Sent
	for _, s := range b.labelled() {
		next, stop := iter.Pull2(s.each)
		c := &cursor{labels: s.labels, pull: next, stop: stop}
		c.next()
		if c.more {
			sent.Series++
		}
		cursors = append(cursors, c)
	}
	request, n := &prompb.WriteRequest{}, 0
	send := func() error {
		if n == 0 {
			return nil
		}
		if _, err := to.Write(ctx, remote.WriteV1MessageType, request); err != nil {
			return fmt.Errorf("remote write: %w", err)
		}
		sent.Samples += n
		request.Timeseries, n = request.Timeseries[:0], 0
		return nil
	}
	for {
		first := int64(math.MaxInt64)
		for _, c := range cursors {
			if c.more {
				first = min(first, c.t)
			}
		}
		if first == math.MaxInt64 {
			break
		}
		for _, c := range cursors {
			if !c.more || c.t >= first+writeRange {
				continue
			}
			one := prompb.TimeSeries{Labels: writeLabels(c.labels)}
			for ; c.more && c.t < first+writeRange; c.next() {
				v := c.v
				if math.IsNaN(v) {
					v = math.Float64frombits(value.StaleNaN)
				}
				one.Samples = append(one.Samples, prompb.Sample{Value: v, Timestamp: c.t})
			}
			request.Timeseries = append(request.Timeseries, one)
			if n += len(one.Samples); n >= writeSamples {
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

func writeLabels(set labels.Labels) []prompb.Label {
	all := make([]prompb.Label, 0, set.Len())
	set.Range(func(l labels.Label) { all = append(all, prompb.Label{Name: l.Name, Value: l.Value}) })
	return all
}
