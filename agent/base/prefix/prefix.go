// Package prefix removes what other programs put before the lines of a log: names of containers, timestamps of a
// continuous integration or of syslog, JSON around a line, colours, indentation, and what people put around lines that
// they quote.
//
// A line is judged by itself, so that a log may begin to have a prefix anywhere, and so that a log has the same lines
// from whichever place it is read. Only an indentation and a syslog tag without a process id are learned from earlier
// lines of the same log. Forms lists what is recognised.
package prefix

import (
	"bytes"
	"strings"
	"time"
)

// Form is one kind of prefix.
type Form struct {
	// Name is how documentation calls the form, Example is a line that has it before the text "TEXT".
	Name, Example string
	// first are the bytes with which such a line can begin; only escapes may begin anywhere.
	first string
	// strip returns the line without the prefix; ok is false if the line does not have it.
	strip func(s *Stripper, line []byte, l *Line) (text []byte, ok bool)
}

const (
	digits  = "0123456789"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	word    = digits + capital + "abcdefghijklmnopqrstuvwxyz-_."
)

// Forms are all kinds of prefixes. Those of one first byte are tried in this order.
var Forms = []Form{
	{"ANSI colours and cursor codes", "\x1b[0;32mTEXT\x1b[0m", "\x1b", (*Stripper).escapes},
	{"docker's and other JSON lines", `{"log":"TEXT\n","stream":"stdout","time":"2024-05-10T11:14:15.1Z"}`, "{", (*Stripper).object},
	{"Ansible's stdout_lines", `        "TEXT",`, "\" \t", (*Stripper).quoted},
	{"date and time: kubectl logs --timestamps, GitHub Actions, GitLab CI, containerd, ts '%F %T', Jenkins, rsyslog, journalctl -o short-iso, log4j",
		"2024-05-10T11:14:15.123Z TEXT", digits + "[", (*Stripper).dated},
	{"kubectl logs --prefix", "[pod/sysbench-0/sysbench] TEXT", "[", (*Stripper).pod},
	{"syslog priority", "<13>May 10 11:14:15 client1 bench: TEXT", "<", (*Stripper).priority},
	{"month and time: ts, journalctl, syslog", "May 10 11:14:15 client1 bench[123]: TEXT", "JFMASOND", (*Stripper).classic},
	{"time of day or since the start: ts -s, Jenkins", "00:00:10 TEXT", digits + "[", (*Stripper).timeOfDay},
	{"day of the week and date: journalctl -o short-full", "Fri 2024-05-10 11:14:15 UTC client1 bench[123]: TEXT", "MTWFS", (*Stripper).weekday},
	{"seconds since the machine started: journalctl -o short-monotonic, the kernel", "[ 1234.567890] client1 bench[123]: TEXT", "[", (*Stripper).uptime},
	{"seconds since 1970: ts %.s, journalctl -o short-unix", "1715339655.123456 TEXT", digits, (*Stripper).epoch},
	{"log4j with the level first", "[INFO ] 2024-05-10 11:14:15,123 [main] a.b.C run - TEXT", "[", (*Stripper).levelFirst},
	{"docker compose", "gen1-1  | TEXT", word, (*Stripper).container},
	{"GitHub Actions, from gh run view --log", "job\tstep\t2024-05-10T11:14:15.1234567Z TEXT", word, (*Stripper).job},
	{"quotation in mail and Markdown", "> TEXT", ">", quotation},
	{"comment in a script or in SQL", "# TEXT", "#-/", comment},
	{"line that a patch adds", "+TEXT", "+", added},
	{"bold in Markdown", "**TEXT**", "*", bold},
}

// candidates are the forms by the first byte of a line.
var candidates = func() (by [256][]*Form) {
	for i := range Forms {
		for _, c := range []byte(Forms[i].first) {
			by[c] = append(by[c], &Forms[i])
		}
	}
	return by
}()

// byteOrderMark begins files of some editors and systems.
const byteOrderMark = "\ufeff"

// mostLayers is how many prefixes a line may have, one before the other.
const mostLayers = 5

// Line is a line without its prefix.
type Line struct {
	// Text is valid until the next call of Strip.
	Text []byte
	// Time is when the line was written according to its prefix; zero if it has none, or one without a date.
	Time time.Time
	// Source is the container that wrote the line; empty if the prefix names none. It is valid as long as the
	// argument of Strip.
	Source []byte
}

// Stripper removes prefixes from the lines of one log. The zero value is ready. One goroutine uses it.
type Stripper struct {
	// Written is about when the log was written. It completes dates without a year; zero: now.
	Written time.Time
	// Keep, if not nil, reports whether what a line begins with is the tool's own text, such as a time that it prints.
	Keep func(line []byte) bool
	// Margin are texts that the tool never indents. A line that begins with one of them after more blanks than the
	// lines before begins an indented part, such as an example in a document. An empty text: the tool indents nothing.
	Margin []string

	buffer []byte
	indent int    // blanks before each line so far
	lines  bool   // a line that is not empty was seen
	tag    []byte // "host program: " of the last syslog line without a process id
	line   Line   // the result, here so that it is not allocated
	minute minute
}

// Strip returns a line without its prefixes, which is valid until the next call. It does not allocate.
func (s *Stripper) Strip(line []byte) *Line {
	l := &s.line
	*l = Line{Text: line}
	if len(line) == 0 {
		return l
	}
	if line[0] >= 0xef && strings.HasPrefix(string(line[:min(len(line), len(byteOrderMark))]), byteOrderMark) {
		l.Text = line[len(byteOrderMark):]
	}
	s.buffer = s.buffer[:0]
	if bytes.IndexByte(line, 0x1b) >= 0 {
		l.Text, _ = s.escapes(l.Text, l)
	}
	for range mostLayers {
		if plain(l.Text) || s.Keep != nil && s.Keep(l.Text) || !s.layer(l) {
			break
		}
	}
	s.unindent(l)
	if bytes.IndexByte(l.Text, '*') >= 0 {
		l.Text = s.withoutBold(l.Text)
	}
	return l
}

// layer removes one prefix.
func (s *Stripper) layer(l *Line) bool {
	for _, form := range candidates[l.Text[0]] {
		if text, ok := form.strip(s, l.Text, l); ok {
			l.Text = text
			return true
		}
	}
	return false
}

// plain reports quickly that a line has no prefix: most lines of most logs.
func plain(line []byte) bool {
	if len(line) < 2 {
		return true
	}
	switch next := line[1]; line[0] {
	case '[':
		return next == ' ' && uptimeEnd(line) == 0 || 'A' <= next && next <= 'Z' && !isLevel(line)
	case ' ':
		return next >= '0' && next <= '9' // such as tpcc-mysql's intervals
	}
	return false
}

// unindent removes the blanks that all lines so far have.
func (s *Stripper) unindent(l *Line) {
	text := l.Text
	blanks := 0
	for blanks < len(text) && (text[blanks] == ' ' || text[blanks] == '\t') {
		blanks++
	}
	if blanks == len(text) {
		l.Text = text[:0]
		return
	}
	if !s.lines || blanks < s.indent {
		s.indent, s.lines = blanks, true
	} else if blanks > s.indent && s.atMargin(text[blanks:]) {
		s.indent = blanks
	}
	l.Text = text[s.indent:]
}

func (s *Stripper) atMargin(text []byte) bool {
	for _, begin := range s.Margin {
		if len(text) >= len(begin) && string(text[:len(begin)]) == begin {
			return true
		}
	}
	return false
}

// All returns a text with each of its lines stripped. For margin, see Stripper.
func All(text []byte, margin ...string) []byte {
	s := Stripper{Margin: margin}
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		body := bytes.TrimSuffix(line, []byte("\n"))
		if i := bytes.LastIndexByte(bytes.TrimRight(body, "\r"), '\r'); i >= 0 {
			body = body[i+1:]
		}
		out = append(out, s.Strip(body).Text...)
		if len(body) < len(line) {
			out = append(out, '\n')
		}
	}
	return out
}
