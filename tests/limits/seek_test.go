//go:build limits

package limits

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/limits"
)

// outcome is what a sweep or a search prints.
type outcome struct {
	Settings []struct {
		Values  map[string]string
		Latency map[string]float64       `json:"latency_seconds"`
		TPS     struct{ Median float64 } `json:"transactions_per_second"`
	}
	Found struct{ Value int }
}

// The highest rate that seek finds is within 5 % of the rate of an exhaustive sweep, in a third of its time, twice. The
// server is 10 ms away, so the rate of 16 threads hardly depends on other load or chance: with four threads single runs
// differed by 10 %.
func TestSeekFindsTheRateOfASweep(t *testing.T) {
	const seconds = 4
	host, port, err := net.SplitHostPort(delayed(t, env.server.Address(1), always(10*time.Millisecond)))
	must(t, err)
	tool := append(sysbench("oltp_point_select", "--threads=16", fmt.Sprintf("--time=%d", seconds), "--percentile=95", "--rate={rate}"), "--mysql-host="+host, "--mysql-port="+port, "run")
	const limit = 100.0 // ms
	result := func(data string, args ...string) (out outcome, took time.Duration) {
		t.Helper()
		began := time.Now()
		cmd := exec.Command(env.binary, append(append(args, "--data-dir="+data, "--format=json", "--"), tool...)...)
		var messages strings.Builder
		cmd.Stderr = &messages
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, text, messages.String())
		}
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return out, time.Since(began)
	}
	var rates []string
	for rate := 400.0; rate < 1200; rate *= 1.05 {
		rates = append(rates, fmt.Sprintf("%.0f", rate))
	}
	all, long := result(t.TempDir(), "sweep", "--set=rate="+strings.Join(rates, ","))
	// The highest rate is the one that leaves the fewest runs on the wrong side.
	within := make([]bool, len(all.Settings))
	for i, s := range all.Settings {
		rate, err := strconv.ParseFloat(s.Values["rate"], 64)
		must(t, err)
		made, _ := limits.MadeRate(s.TPS.Median, rate, seconds, math.NaN())
		within[i] = made && 1000*s.Latency["p95"] < limit
	}
	highest, fewest := 0.0, len(within)+1
	for last := range within {
		wrong := 0
		for i, in := range within {
			if in != (i <= last) {
				wrong++
			}
		}
		if wrong < fewest {
			fewest = wrong
			highest, _ = strconv.ParseFloat(all.Settings[last].Values["rate"], 64)
		}
	}
	for i, s := range all.Settings {
		t.Logf("%s/s: p95 %.1f ms, %.1f/s, within: %v", s.Values["rate"], 1000*s.Latency["p95"], s.TPS.Median, within[i])
	}
	t.Logf("sweep of %d rates: %.0f in %.0f s", len(rates), highest, long.Seconds())
	for range 2 {
		found, took := result(t.TempDir(), "seek", "--max=rate", "--from=400", fmt.Sprintf("--subject-to=p95 < %.0fms", limit))
		value := float64(found.Found.Value)
		t.Logf("seek: %.0f (%+.1f %%) in %.0f s, %.0f %% of the sweep's time", value, 100*(value/highest-1), took.Seconds(), 100*took.Seconds()/long.Seconds())
		if math.Abs(value/highest-1) > 0.05 || 3*took > long {
			t.Errorf("%.0f instead of %.0f in %v instead of %v", value, highest, took, long)
		}
	}
}
