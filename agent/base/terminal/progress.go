package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Progress is a line at the bottom of a terminal that is rewritten while other lines are printed
// above it. It prints nothing if the output is not a terminal. Its methods are safe for concurrent
// use.
type Progress struct {
	mu     sync.Mutex
	w      io.Writer
	width  int
	line   string // what is shown
	began  time.Time
	drawn  time.Time
	inLine bool // the last output above did not end its line
}

// NewProgress returns a line on w that shows nothing until Set. It returns nil if w is not a
// terminal; the methods of a nil Progress do nothing.
func NewProgress(w io.Writer) *Progress {
	t := Of(w)
	if !t.Is || t.Width < narrowest {
		return nil
	}
	return &Progress{w: w, width: t.Width, began: time.Now()}
}

const (
	eraseLine = "\r\x1b[K"
	// redrawn is the minimum time between two updates of the line.
	redrawn = 100 * time.Millisecond
)

// Set shows a line.
func (p *Progress) Set(line string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if line == p.line || p.line != "" && line != "" && time.Since(p.drawn) < redrawn {
		return
	}
	p.line, p.drawn = line, time.Now()
	p.draw()
}

// Count shows how much of a whole is done, such as "import: 3 of 10 logs", and the remaining time.
func (p *Progress) Count(what string, done, all int, unit string) {
	if p == nil {
		return
	}
	p.Set(fmt.Sprintf("%s: %d of %d %s%s", what, done, all, unit, left(time.Since(p.began), float64(done), float64(all))))
}

// Time shows how much of a duration has passed and how much remains.
func (p *Progress) Time(what string, passed, all time.Duration) {
	if p == nil {
		return
	}
	passed = min(passed, all)
	p.Set(fmt.Sprintf("%s %s %s of %s, %s left", what, bar(passed.Seconds()/all.Seconds()), Short(passed), Short(all), Short(all-passed)))
}

// Clear removes the line.
func (p *Progress) Clear() { p.Set("") }

func (p *Progress) draw() {
	if p.inLine {
		return
	}
	line := []rune(p.line)
	_, _ = io.WriteString(p.w, eraseLine+string(line[:min(len(line), p.width-1)]))
}

// Above returns a writer to out that keeps the line below the text written to it. A nil Progress
// returns out.
func (p *Progress) Above(out io.Writer) io.Writer {
	if p == nil {
		return out
	}
	return above{p, out}
}

type above struct {
	p   *Progress
	out io.Writer
}

func (a above) Write(b []byte) (int, error) {
	p := a.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line != "" && !p.inLine {
		_, _ = io.WriteString(p.w, eraseLine)
	}
	n, err := a.out.Write(b)
	if len(b) > 0 && Of(a.out).Is {
		p.inLine = b[len(b)-1] != '\n'
	}
	if p.line != "" {
		p.draw()
	}
	return n, err
}

// left returns the remaining time, such as ", 12s left"; empty if it cannot be estimated yet.
func left(spent time.Duration, done, all float64) string {
	if done <= 0 || all <= done || spent < time.Second {
		return ""
	}
	return ", " + Short(time.Duration(float64(spent)*(all-done)/done)) + " left"
}

// Short returns a duration in whole seconds for a line of progress: 45s, 12m05s, 3h20m.
func Short(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return d.String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// barWidth is the width of the bar between its brackets.
const barWidth = 20

// bar returns a bar for a share between 0 and 1.
func bar(share float64) string {
	full := int(max(0, min(1, share)) * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
}
