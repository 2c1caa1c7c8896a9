// Package prefix removes what other programs put before the lines of a log: names of containers, timestamps of a
// continuous integration or of syslog, JSON around a line, colours, indentation.
//
// A line is judged by itself, so that a log may begin to have a prefix anywhere, and so that a log has the same lines
// from whichever place it is read. Only an indentation and a syslog tag without a process id are learned from earlier
// lines of the same log. Forms lists what is recognised.
package prefix

import (
	"bytes"
	"time"
)

// Form is one kind of prefix.
type Form struct {
	// Name is how documentation calls the form, Example is a line that has it before the text "TEXT".
	Name, Example string
	// strip returns the line without the prefix; ok is false if the line does not have it.
	strip func(s *Stripper, line []byte, l *Line) (text []byte, ok bool)
}

// Forms are all kinds of prefixes, in the order in which they are tried.
var Forms = []Form{
	{"ANSI colours and cursor codes", "\x1b[0;32mTEXT\x1b[0m", (*Stripper).escapes},
	{"docker's and other JSON lines", `{"log":"TEXT\n","stream":"stdout","time":"2024-05-10T11:14:15.1Z"}`, (*Stripper).object},
	{"Ansible's stdout_lines", `        "TEXT",`, (*Stripper).quoted},
	{"docker compose", "gen1-1  | TEXT", (*Stripper).container},
	{"kubectl logs --prefix", "[pod/sysbench-0/sysbench] TEXT", (*Stripper).pod},
	{"GitHub Actions, from gh run view --log", "job\tstep\t2024-05-10T11:14:15.1234567Z TEXT", (*Stripper).job},
	{"syslog priority", "<13>May 10 11:14:15 client1 bench: TEXT", (*Stripper).priority},
	{"date and time: kubectl logs --timestamps, GitHub Actions, GitLab CI, containerd, ts '%F %T', Jenkins, rsyslog, journalctl -o short-iso, log4j",
		"2024-05-10T11:14:15.123Z TEXT", (*Stripper).dated},
	{"month and time: ts, journalctl, syslog", "May 10 11:14:15 client1 bench[123]: TEXT", (*Stripper).classic},
	{"time of day or since the start: ts -s, Jenkins", "00:00:10 TEXT", (*Stripper).timeOfDay},
	{"day of the week and date: journalctl -o short-full", "Fri 2024-05-10 11:14:15 UTC client1 bench[123]: TEXT", (*Stripper).weekday},
	{"seconds since the machine started: journalctl -o short-monotonic, the kernel", "[ 1234.567890] client1 bench[123]: TEXT", (*Stripper).uptime},
	{"seconds since 1970: ts %.s, journalctl -o short-unix", "1715339655.123456 TEXT", (*Stripper).epoch},
	{"log4j with the level first", "[INFO ] 2024-05-10 11:14:15,123 [main] a.b.C run - TEXT", (*Stripper).levelFirst},
}

// byteOrderMark begins files of some editors and systems.
var byteOrderMark = []byte("\ufeff")

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

	buffer []byte
	indent int    // blanks before each line so far
	lines  bool   // a line that is not empty was seen
	tag    []byte // "host program: " of the last syslog line without a process id
	line   Line   // the result, here so that it is not allocated
}

// Strip returns a line without its prefixes. Without one it returns the line itself and does not allocate.
func (s *Stripper) Strip(line []byte) Line {
	line = bytes.TrimPrefix(line, byteOrderMark)
	if plain(line) {
		if len(line) > 0 {
			s.indent, s.lines = 0, true
		}
		return Line{Text: line}
	}
	s.line = Line{Text: line}
	l := &s.line
	s.buffer = s.buffer[:0]
	for range mostLayers {
		if s.Keep != nil && s.Keep(l.Text) {
			break
		}
		found := false
		for i := range Forms {
			if text, ok := Forms[i].strip(s, l.Text, l); ok {
				l.Text, found = text, true
				break
			}
		}
		if !found {
			break
		}
	}
	l.Text = s.unindent(l.Text)
	return s.line
}

// plain reports quickly that a line has no prefix: most lines of most logs.
func plain(line []byte) bool {
	if len(line) == 0 {
		return true
	}
	if bytes.IndexByte(line, 0x1b) >= 0 {
		return false
	}
	switch c := line[0]; {
	case c == '[':
		return len(line) > 1 && (line[1] == ' ' && uptimeEnd(line) == 0 || 'A' <= line[1] && line[1] <= 'Z' && !isLevel(line))
	case c == ' ', c == '\t', c == '{', c == '<', c == '"', '0' <= c && c <= '9':
		return false
	default:
		return bytes.IndexByte(line, '|') < 0 && bytes.IndexByte(line, '\t') < 0 && month(line) == 0 && !isWeekday(line)
	}
}

// unindent removes the blanks that all lines so far have.
func (s *Stripper) unindent(text []byte) []byte {
	blanks := len(text) - len(bytes.TrimLeft(text, " \t"))
	if blanks == len(text) {
		return text[:0]
	}
	if !s.lines || blanks < s.indent {
		s.indent, s.lines = blanks, true
	}
	return text[s.indent:]
}

// All returns a text with each of its lines stripped.
func All(text []byte) []byte {
	var s Stripper
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
