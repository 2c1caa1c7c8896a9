package stall

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// load is the intervals of a tool with one transaction rate, and stretches in which no client gets on.
type load struct {
	rate, length float64
	// stops are the stretches of a standstill.
	stops []series.Span
	// level is the part of the rate that remains in them.
	level float64
	// silent: the tool prints nothing during them, and then one report for all of the time.
	silent bool
}

func (l load) intervals(seconds float64, noise *rand.Rand) (all []Interval) {
	from := 0.0
	for to := l.length; to <= seconds; to += l.length {
		stopped, within := 0.0, false
		for _, s := range l.stops {
			stopped += max(0, min(to, s.To)-max(from, s.From))
			within = within || to > s.From && to < s.To
		}
		if within && l.silent {
			continue
		}
		n := l.rate * (to - from - (1-l.level)*stopped)
		n = max(0, math.Round(n+math.Sqrt(n)*noise.NormFloat64()))
		i := Interval{From: to - l.length, To: to, Rate: n / (to - from), Latency: 0.01 * (1 + 0.1*noise.Float64()), Quantile: 0.95}
		all = append(all, i)
		from = to
	}
	return all
}

func dips(all []Interval) []Dip {
	d := &Detector{}
	for _, i := range all {
		d.Add(i)
	}
	d.Close()
	return d.Dips
}

func TestDips(t *testing.T) {
	for name, c := range map[string]load{
		"a standstill":                     {rate: 800, length: 1, stops: []series.Span{{From: 40.6, To: 48.8}}},
		"a standstill of one interval":     {rate: 800, length: 1, stops: []series.Span{{From: 40.1, To: 41.3}}},
		"two":                              {rate: 300, length: 1, stops: []series.Span{{From: 20, To: 23.5}, {From: 60.5, To: 62}}},
		"few transactions":                 {rate: 12, length: 1, stops: []series.Span{{From: 30.2, To: 37.4}}},
		"a third of the throughput":        {rate: 800, length: 1, level: 0.33, stops: []series.Span{{From: 40, To: 46}}},
		"intervals of 10 s":                {rate: 50, length: 10, stops: []series.Span{{From: 83, To: 91}}},
		"a paused tool":                    {rate: 500, length: 1, silent: true, stops: []series.Span{{From: 50.3, To: 56.2}}},
		"longer than a change of the rate": {rate: 100, length: 1, stops: []series.Span{{From: 20, To: 420}}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				found := dips(c.intervals(500, rand.New(rand.NewPCG(seed, 1))))
				if len(found) != len(c.stops) {
					t.Fatalf("seed %d: %d dips, expected %d: %+v", seed, len(found), len(c.stops), found)
				}
				for i, s := range c.stops {
					f := found[i]
					lost := c.rate * (s.To - s.From) * (1 - c.level)
					if math.Abs(f.Seconds-(s.To-s.From)) > max(1, c.length/5, 20/c.rate) || math.Abs(f.From-s.From) > max(1, c.length/5, 20/c.rate) {
						t.Errorf("%.2f s from %.2f, expected %.2f s from %.2f", f.Seconds, f.From, s.To-s.From, s.From)
					}
					if math.Abs(f.Lost-lost) > max(0.25*lost, 5*math.Sqrt(c.rate*c.length)) {
						t.Errorf("%.0f transactions lost, expected %.0f", f.Lost, lost)
					}
				}
			}
		})
	}
}

// TestPhases: a standstill that ends in a time in which less is done than before is a dip of its own, and so is that time.
func TestPhases(t *testing.T) {
	for name, c := range map[string]struct {
		rates []float64
		dips  []series.Span
	}{
		"a standstill, then less":   {[]float64{0, 0, 0, 0, 50, 200, 210, 190, 200}, []series.Span{{From: 10, To: 14.75}, {From: 14.75, To: 19}}},
		"less, then a standstill":   {[]float64{200, 200, 100, 0, 0, 0}, []series.Span{{From: 10, To: 12.5}, {From: 12.5, To: 16}}},
		"only a slow recovery":      {[]float64{0, 0, 0, 200}, []series.Span{{From: 10, To: 13.75}}},
		"hardly more than nothing":  {[]float64{20, 50, 30, 10, 70, 80, 20}, []series.Span{{From: 10, To: 17}}},
		"less, with one standstill": {[]float64{200, 0, 200, 200, 200}, []series.Span{{From: 10, To: 15}}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []Interval
			add := func(rate float64) {
				at := float64(len(all))
				all = append(all, Interval{From: at, To: at + 1, Rate: rate, Latency: series.Unknown()})
			}
			for range 10 {
				add(800)
			}
			for _, rate := range c.rates {
				add(rate)
			}
			for range 5 {
				add(800)
			}
			found := dips(all)
			if len(found) != len(c.dips) {
				t.Fatalf("%+v", found)
			}
			for i, d := range found {
				if math.Abs(d.From-c.dips[i].From) > 0.3 || math.Abs(d.To-c.dips[i].To) > 0.3 || d.Seconds != d.To-d.From {
					t.Errorf("%.2f to %.2f, expected %v", d.From, d.To, c.dips[i])
				}
			}
		})
	}
}

// TestBacklog: the queue of a tool that drains after a standstill is neither part of it nor another dip. What it does
// more than usual is what the standstill had cost.
func TestBacklog(t *testing.T) {
	type second struct{ rate, latency float64 }
	for name, c := range map[string]struct {
		after    []second
		seconds  float64
		regained float64
	}{
		"drained within a second":        {[]second{{480, 4.9}}, 5, 400},
		"released within a second":       {[]second{{300, 5.4}}, 5.4, 220},
		"drained for seconds":            {[]second{{160, 5}, {160, 4}, {160, 3}, {160, 2}, {160, 1}}, 5, 400},
		"less than usual, then draining": {[]second{{50, 5.2}, {200, 5}, {200, 3}}, 5.375, 240},
		"drained slowly, with pauses":    {[]second{{80, 5}, {82, 6}, {250, 5}, {110, 4}, {82, 3}, {300, 2}}, 5, 0},
		"nothing waited":                 {nil, 5, 0},
		"draining, without latencies":    {[]second{{120, math.NaN()}, {400, math.NaN()}}, 5.7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var all []Interval
			add := func(s second) {
				at := float64(len(all))
				all = append(all, Interval{From: at, To: at + 1, Rate: s.rate, Latency: s.latency, Quantile: 0.95})
			}
			usual := second{80, 0.01}
			if len(c.after) > 0 && math.IsNaN(c.after[0].latency) {
				usual.latency = math.NaN()
			}
			for range 10 {
				add(usual)
			}
			for range 5 {
				add(second{0, math.NaN()})
			}
			for _, s := range c.after {
				add(s)
			}
			for range 5 {
				add(usual)
			}
			found := dips(all)
			if len(found) != 1 || math.Abs(found[0].Seconds-c.seconds) > 0.01 || found[0].From != 10 || math.Abs(found[0].Regained-c.regained) > 0.01 {
				t.Errorf("%+v, expected %v s", found, c.seconds)
			}
		})
	}
}

// TestNoDips: loads without a standstill have none, however noisy, slow or short they are.
func TestNoDips(t *testing.T) {
	for name, all := range map[string]func(*rand.Rand) []Interval{
		"steady":           func(r *rand.Rand) []Interval { return load{rate: 800, length: 1}.intervals(3600, r) },
		"few transactions": func(r *rand.Rand) []Interval { return load{rate: 3, length: 1}.intervals(3600, r) },
		"noisy": func(r *rand.Rand) []Interval {
			steady := load{rate: 800, length: 1}.intervals(3600, r)
			for i := range steady {
				steady[i].Rate *= max(0, 1+0.14*r.NormFloat64())
			}
			return steady
		},
		"a ramp": func(r *rand.Rand) []Interval {
			steady := load{rate: 800, length: 1}.intervals(300, r)
			for i := range steady {
				steady[i].Rate *= float64(i) / 300
			}
			return steady
		},
		"the last interval": func(r *rand.Rand) []Interval {
			return append(load{rate: 800, length: 1}.intervals(60, r), Interval{From: 60, To: 61, Rate: 20})
		},
		"a lower level": func(r *rand.Rand) []Interval {
			return append(load{rate: 800, length: 1}.intervals(60, r),
				load{rate: 200, length: 1, stops: []series.Span{{From: -1, To: -1}}}.intervals(900, r)[60:]...)
		},
		"a report that is late": func(r *rand.Rand) []Interval {
			return load{rate: 800, length: 1, level: 1, silent: true, stops: []series.Span{{From: 30.2, To: 31.2}}}.intervals(60, r)
		},
		"unknown rates": func(*rand.Rand) []Interval {
			var all []Interval
			for i := range 100 {
				all = append(all, Interval{From: float64(i), To: float64(i + 1), Rate: series.Unknown(), Latency: 1})
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				if found := dips(all(rand.New(rand.NewPCG(seed, 2)))); len(found) > 0 {
					t.Errorf("%+v", found)
				}
			}
		})
	}
}

func TestSlowDip(t *testing.T) {
	all := load{rate: 200, length: 1}.intervals(60, rand.New(rand.NewPCG(1, 1)))
	for i := 40; i < 43; i++ {
		all[i].Latency = 0.2
	}
	found := dips(all)
	if len(found) != 1 || !found[0].Slow || found[0].From != 40 || found[0].Seconds != 3 || found[0].Latency != 0.2 {
		t.Errorf("%+v", found)
	}
	for i := range all {
		all[i].Quantile = 1 // a maximum
	}
	if found := dips(all); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestCurrent: a dip is known with the first interval that shows it.
func TestCurrent(t *testing.T) {
	d := &Detector{}
	for _, i := range (load{rate: 800, length: 1, stops: []series.Span{{From: 20.7, To: 30}}}).intervals(23, rand.New(rand.NewPCG(1, 1))) {
		if began := d.Add(i); began != (i.To >= 22) {
			t.Errorf("at %v: %v", i.To, began)
		}
	}
	if x, ok := d.Current(); !ok || math.Abs(x.From-20.7) > 0.3 || x.To != 23 {
		t.Errorf("%+v", x)
	}
	if d.Length() != 1 {
		t.Errorf("intervals of %v s", d.Length())
	}
}

func FuzzDetector(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 100, 0, 0, 0, 9})
	values := []float64{0, 1, -1, 1e300, 100, 99, 101, series.Unknown(), math.Inf(1), math.Inf(-1), 0.001}
	f.Fuzz(func(t *testing.T, text []byte) {
		d := &Detector{}
		at := 0.0
		for i := 0; i+3 < len(text); i += 4 {
			value := func(k int) float64 { return values[int(text[i+k])%len(values)] }
			at += float64(text[i] % 4)
			d.Add(Interval{From: at - value(1), To: at, Rate: value(2), Latency: value(3), Quantile: 0.95})
			d.Current()
		}
		d.Close()
		for _, x := range d.Dips {
			if !(x.Seconds >= 0) {
				t.Errorf("%+v", x)
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	all := load{rate: 800, length: 1}.intervals(4096, rand.New(rand.NewPCG(1, 1)))
	d := &Detector{}
	b.ReportAllocs()
	for i := range b.N {
		d.Add(all[i%len(all)])
		if i%len(all) == len(all)-1 {
			d.Reset()
		}
	}
}
