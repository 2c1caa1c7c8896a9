package sweep

import (
	"strconv"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// TestPlateau guards when the throughput counts as no longer growing.
func TestPlateau(t *testing.T) {
	for name, c := range map[string]struct {
		condition string
		tps       string // by threads 1, 2, 4 …: - has failed, ? was not run, several are repeats
		want      string // the last number of threads and the gains; empty: it still grows
	}{
		"grows":                       {"gain<5%", "100 200 400", ""},
		"too little":                  {"gain<5%", "100 200 209", "4: +4.5 % at threads=4"},
		"just enough":                 {"gain<5%", "100 200 210", ""},
		"only one of two":             {"gain<5% for 2 steps", "100 200 205", ""},
		"two in a row":                {"gain<5% for 2 steps", "100 200 205 190", "8: +2.5 % at threads=4, -7.3 % at threads=8"},
		"two that do not follow":      {"gain<5% for 2 steps", "100 102 200 205", ""},
		"over the best, not the last": {"gain<5% for 2 steps", "100 200 150 190", "8: -25.0 % at threads=4, -5.0 % at threads=8"},
		"one has failed":              {"gain<5% for 2 steps", "100 200 - 190 195", "16: -5.0 % at threads=8, -2.5 % at threads=16"},
		"one is missing":              {"gain<5%", "100 200 ? 190", ""},
		"medians of repeats":          {"gain<5%", "100,90,110 104,300,101", "2: +4.0 % at threads=2"},
		"the first alone":             {"gain<5%", "100", ""},
		"nothing":                     {"gain<5%", "0 0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parsePlateau(c.condition)
			if err != nil {
				t.Fatal(err)
			}
			s := &Sweep{Sets: []Set{set(t, "threads=1,2,4,8,16,32"), set(t, "mode=a,b")}}
			for i, at := range strings.Fields(c.tps) {
				for text := range strings.SplitSeq(at, ",") {
					step := Step{Values: map[string]string{"threads": strconv.Itoa(1 << i), "mode": "a"}, State: Done}
					switch text {
					case "-":
						step.State = Failed
					case "?":
						step.State = Pending
					default:
						tps, err := strconv.ParseFloat(text, 64)
						if err != nil {
							t.Fatal(err)
						}
						step.Throughput = series.Some(tps)
					}
					s.Steps = append(s.Steps, step)
				}
			}
			of := &s.Steps[0]
			s.Steps = append(s.Steps, Step{Values: map[string]string{"threads": "32", "mode": "b"}, State: Done, Throughput: series.Some(1.0)})
			got := ""
			if last, gains := p.reached(s, of); last != nil {
				got = last.Values["threads"] + ": " + strings.ReplaceAll(gains, " mode=a", "")
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestCheckStop guards what --stop-when takes.
func TestCheckStop(t *testing.T) {
	for text, ok := range map[string]bool{
		"p95>100ms": true, "gain<5%": true, "gain < 2.5% for 3 steps": true, "gain<5% for 1 step": true,
		"gain": false, "gain>5%": false, "gain<5": false, "gain<5% for 0 steps": false, "gain<5% for steps": false, "gain<-5%": false, "speed>5": false,
	} {
		if err := CheckStop(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
