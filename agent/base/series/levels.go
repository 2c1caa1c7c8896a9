package series

import "math"

// Level is the mean of values that follow each other, the smallest of them, and one
// of them.
type Level struct {
	From, To        float64 // on the axis
	Mean, Low, Some float64
	N               int
	length          float64 // of the one value
}

// Levels are means over equal numbers of values. Of at most mostRows values each is
// a level of its own; of more, two become one again and again.
type Levels struct {
	// N counts the values.
	N   int
	all []Level
	n   int // values of a level

	mean, squares float64 // of all values, by Welford's method
}

// Add adds a value over the stretch of the axis from from, which may be unknown, to to.
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

// All returns the levels, each of the same number of values: the last values may be
// in none. Stretches whose length is unknown have the usual one. Values over less than
// half of that, such as the last of a run, are left out where each is a level.
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

// During returns the mean over the levels whose middle is in a span, unknown if there are
// none; usual is as for All.
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

// Variation returns the coefficient of variation of the values, the standard
// deviation over the mean; all is what All returned.
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
