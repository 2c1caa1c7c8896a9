package series

import "math"

// Level summarises consecutive values: their mean, the smallest one, and one of them.
type Level struct {
	From, To        float64 // on the axis
	Mean, Low, Some float64
	N               int
	length          float64 // of the value Some
}

// Levels are means over equal numbers of values. Up to mostRows values each value is a level;
// beyond that levels are joined in pairs, repeatedly.
type Levels struct {
	// N counts the values.
	N   int
	all []Level
	n   int // values per level

	mean, squares float64 // of all values, by Welford's method
}

// Add adds a value for the time between from and to on the axis; from may be unknown.
func (l *Levels) Add(from, to, v float64) {
	l.N++
	l.n = max(l.n, 1)
	d := v - l.mean
	l.mean += d / float64(l.N)
	l.squares += d * (v - l.mean)
	l.all = append(l.all, Level{from, to, v, v, v, 1, to - from})
	for k := len(l.all); k > 1 && l.all[k-1].N < l.n && l.all[k-2].N == l.all[k-1].N; k = len(l.all) {
		l.all[k-2] = join(l.all[k-2], l.all[k-1])
		l.all = l.all[:k-1]
	}
	if len(l.all) <= mostRows {
		return
	}
	joined := l.all[:0]
	i := 0
	for ; i+1 < len(l.all) && l.all[i+1].N == l.n; i += 2 {
		joined = append(joined, join(l.all[i], l.all[i+1]))
	}
	l.all = append(joined, l.all[i:]...)
	l.n *= 2
}

func join(a, b Level) Level {
	return Level{From: a.From, To: b.To, Mean: (a.Mean + b.Mean) / 2, Low: min(a.Low, b.Low), Some: a.Some, N: a.N + b.N}
}

// All returns the levels with the full number of values, so the last values may be missing. A value
// whose duration is unknown gets the usual one. Where each value is a level, values over less than
// half the usual duration are left out, such as the last one of a run.
func (l *Levels) All(usual float64) []Level {
	var all []Level
	for _, v := range l.all {
		if !IsKnown(v.From) {
			v.From, v.length = v.To-usual, usual
		}
		if v.N == l.n && (v.N > 1 || v.length >= usual/2) {
			all = append(all, v)
		}
	}
	return all
}

// During returns the mean over the levels whose middle is in span, unknown if there are none. All
// explains usual.
func (l *Levels) During(span Span, usual float64) float64 {
	sum, seconds := 0.0, 0.0
	for _, v := range l.All(usual) {
		if middle := (v.From + v.To) / 2; middle >= span.From && middle <= span.To {
			sum, seconds = sum+v.Mean*(v.To-v.From), seconds+v.To-v.From
		}
	}
	if seconds == 0 {
		return Unknown()
	}
	return sum / seconds
}

// Variation returns the coefficient of variation: standard deviation divided by mean. all is the
// result of All.
func (l *Levels) Variation(all []Level) float64 {
	n, mean, squares := float64(l.N), l.mean, l.squares
	if l.n == 1 {
		n, mean, squares = float64(len(all)), 0, 0
		for _, v := range all {
			mean += v.Mean / n
		}
		for _, v := range all {
			squares += (v.Mean - mean) * (v.Mean - mean)
		}
	}
	return math.Sqrt(squares/(n-1)) / mean
}
