package observer

import (
	"context"
	"log/slog"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/metrics"
	"github.com/benchwatch/benchwatch/agent/run"
)

type markers struct{ log *slog.Logger }

func newMarkers(c *config.Config, log *slog.Logger) (*markers, error) { return &markers{log: log}, nil }
func (m *markers) began(run.Directory, run.Meta)                      {}
func (m *markers) settled(run.Directory, run.Snapshot)                {}
func (m *markers) run(ctx context.Context)                            { <-ctx.Done() }
func (m *markers) reload(c *config.Config) error                      { return nil }
func (m *markers) deliveries() metrics.Deliveries                     { return metrics.Deliveries{} }
func (m *markers) points() []metrics.Point                            { return nil }
func (m *markers) pending() int                                       { return 0 }
