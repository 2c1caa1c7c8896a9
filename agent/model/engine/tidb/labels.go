package tidb

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

const (
	// labelInterval is the pace of asking for the server's labels, which may be changed while it
	// runs.
	labelInterval = time.Minute
	// maxInfo bounds the answer.
	maxInfo = 1 << 20
)

// labels are those of the server's configuration, as the status port reports them. They may name
// its zone, for reads of the nearest replica.
type labels struct {
	next time.Time // when to ask again
	all  map[string]string
}

// region returns where the server is; empty if its labels do not have that, or can't be read.
func (l *labels) region(ctx context.Context, client *http.Client, address string, now time.Time) string {
	if !now.Before(l.next) {
		l.next = now.Add(labelInterval)
		ctx, cancel := engine.WithShare(ctx, 0.5)
		defer cancel()
		if found, err := readLabels(ctx, client, address); err == nil {
			l.all = found
		}
	}
	return engine.RegionIn(l.all)
}

func readLabels(ctx context.Context, client *http.Client, address string) (map[string]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "benchwatch")
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var info struct {
		Labels map[string]string `json:"labels"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, maxInfo)).Decode(&info)
	return info.Labels, err
}
