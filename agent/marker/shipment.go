package marker

import (
	"context"
	"errors"
	"os"
)

// shipment is one marker on its way. The goroutine that sends it owns it until
// it is handed back.
type shipment struct {
	queue   *queue
	lock    *os.File
	grafana *Grafana
	marker  Marker
	version string // of the marker's content
	verify  bool   // it was delivered: only see to it that Grafana has it once

	annotation int64 // Grafana's id
	doubtful   bool  // Grafana may have created it, or may yet, although that failed
	removeErr  error
	err        error
}

// send brings Grafana to have the marker exactly once. It begins with asking
// what Grafana has, so it can be repeated whatever became of an earlier attempt,
// also one of another process or one that is not known of any more.
func (s *shipment) send(ctx context.Context) {
	want := annotationOf(&s.marker)
	found, err := s.grafana.find(ctx, &s.marker)
	if err != nil {
		s.err = err
		return
	}
	if len(found) == 0 && s.verify {
		return // somebody deleted it
	}
	if len(found) == 0 {
		s.annotation, s.err = s.grafana.create(ctx, want)
		var e *requestError
		s.doubtful = errors.As(s.err, &e) && e.perhapsDone()
		return
	}
	s.annotation = found[0].ID
	for _, extra := range found[1:] {
		if err := s.grafana.remove(ctx, extra.ID); err != nil {
			s.removeErr = err
		}
	}
	if s.verify || want.has(&found[0]) {
		return
	}
	s.err = s.grafana.update(ctx, s.annotation, want)
}
