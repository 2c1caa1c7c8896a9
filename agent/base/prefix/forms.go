package prefix

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
)

// escapes removes the control sequences of a terminal (ECMA-48): ESC [ … final byte, ESC ] … BEL, and ESC with one more
// byte.
func (s *Stripper) escapes(line []byte, _ *Line) ([]byte, bool) {
	at := bytes.IndexByte(line, 0x1b)
	if at < 0 {
		return nil, false
	}
	begin := len(s.buffer)
	for ; at >= 0; at = bytes.IndexByte(line, 0x1b) {
		s.buffer = append(s.buffer, line[:at]...)
		line = line[at+1:]
		switch {
		case len(line) == 0:
		case line[0] == '[':
			end := 1
			for end < len(line) && (line[end] < 0x40 || line[end] > 0x7e) {
				end++
			}
			line = line[min(end+1, len(line)):]
		case line[0] == ']':
			end := bytes.IndexByte(line, 0x07)
			line = line[end+1:] // the text itself if it has no end
		default:
			line = line[1:]
		}
	}
	s.buffer = append(s.buffer, line...)
	text := s.buffer[begin:]
	return text[bytes.LastIndexByte(bytes.TrimRight(text, "\r"), '\r')+1:], true
}

// textKeys are the members of JSON objects in which logging programs keep the line: docker's json-file, journald, others.
var textKeys = [][]byte{[]byte("log"), []byte("MESSAGE"), []byte("message"), []byte("msg")}

// timeKeys are the members with its time.
var timeKeys = [][]byte{[]byte("time"), []byte("@timestamp"), []byte("timestamp"), []byte("ts")}

// object takes the line out of a JSON object with one of textKeys. An object whose line is cut off or is
// no string is left alone.
func (s *Stripper) object(line []byte, l *Line) ([]byte, bool) {
	if !bytes.HasPrefix(line, []byte("{")) {
		return nil, false
	}
	var text []byte
	found := false
	rest := trimBlanks(line[1:])
	for len(rest) > 0 && rest[0] == '"' {
		key, after, ok := quotedString(rest)
		after = trimBlanks(after)
		if !ok || len(after) == 0 || after[0] != ':' {
			break
		}
		value := trimBlanks(after[1:])
		if len(value) > 0 && value[0] == '"' {
			var raw []byte
			if raw, after, ok = quotedString(value); !ok {
				break
			}
			if isOneOf(key, textKeys) && !found {
				text, found = s.quotedText(raw), true
			} else if isOneOf(key, timeKeys) {
				if at, _, ok := s.date(raw); ok {
					l.Time = at
				}
			}
		} else {
			end := bytes.IndexByte(value, ',')
			if end < 0 {
				break
			}
			after = value[end:]
		}
		after = trimBlanks(after)
		if len(after) == 0 || after[0] != ',' {
			break
		}
		rest = trimBlanks(after[1:])
	}
	for n := len(text) - 1; n >= 0 && (text[n] == '\n' || text[n] == '\r'); n-- {
		text = text[:n]
	}
	return text, found
}

func trimBlanks(text []byte) []byte {
	for len(text) > 0 && text[0] == ' ' {
		text = text[1:]
	}
	return text
}

// lineEnd is the line end in a JSON string: the only escape in most lines.
const lineEnd = `\n`

// quotedText returns the text of a JSON string's content, without colours and cursor codes.
func (s *Stripper) quotedText(raw []byte) []byte {
	if text := bytes.TrimSuffix(raw, []byte(lineEnd)); bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	begin := len(s.buffer)
	s.unescape(raw)
	text := s.buffer[begin:]
	if plainText, escaped := s.escapes(text, nil); escaped {
		return plainText
	}
	return text
}

func isOneOf(key []byte, all [][]byte) bool {
	for _, one := range all {
		if bytes.Equal(key, one) {
			return true
		}
	}
	return false
}

// quotedString returns the content of the JSON string at the beginning of a text, escaped as it is, and what follows.
func quotedString(text []byte) (content, rest []byte, ok bool) {
	for i := 1; i < len(text); i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			break
		}
		i += n
		escapes := i - 1
		for text[escapes] == '\\' {
			escapes--
		}
		if (i-escapes)%2 == 1 { // an even number of backslashes before it
			return text[1:i], text[i+1:], true
		}
	}
	return nil, nil, false
}

// unescape appends the content of a JSON string to the buffer.
func (s *Stripper) unescape(raw []byte) {
	for i := 0; i < len(raw); i++ {
		n := bytes.IndexByte(raw[i:], '\\')
		if n < 0 || i+n+1 == len(raw) {
			s.buffer = append(s.buffer, raw[i:]...)
			return
		}
		s.buffer = append(s.buffer, raw[i:i+n]...)
		i += n + 1
		switch raw[i] {
		case 'n':
			s.buffer = append(s.buffer, '\n')
		case 't':
			s.buffer = append(s.buffer, '\t')
		case 'r':
			s.buffer = append(s.buffer, '\r')
		case 'b', 'f':
		case 'u':
			code, digits := rune(0), 0
			for ; digits < 4 && i+1 < len(raw); digits++ {
				d := hex(raw[i+1])
				if d < 0 {
					break
				}
				code, i = code<<4|rune(d), i+1
			}
			s.buffer = utf8.AppendRune(s.buffer, code)
		default:
			s.buffer = append(s.buffer, raw[i])
		}
	}
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// quoted takes the line out of an element of a JSON list of strings, one element a line: Ansible's stdout_lines.
func (s *Stripper) quoted(line []byte, _ *Line) ([]byte, bool) {
	blanks := 0
	for blanks < len(line) && (line[blanks] == ' ' || line[blanks] == '\t') {
		blanks++
	}
	if blanks == len(line) || line[blanks] != '"' {
		return nil, false
	}
	text := bytes.TrimRight(line[blanks:], " \r")
	content, rest, ok := quotedString(text)
	if !ok || len(rest) > 1 || len(rest) == 1 && rest[0] != ',' {
		return nil, false
	}
	return s.quotedText(content), true
}

// longestName bounds the name of a container.
const longestName = 80

// container is docker compose's: the name, padded with blanks, "| ".
func (s *Stripper) container(line []byte, l *Line) ([]byte, bool) {
	end := 1 // of the name
	for end < len(line) && isNameByte[line[end]] {
		end++
	}
	if end >= len(line) || line[end] != ' ' || end > longestName {
		return nil, false
	}
	bar := end + 1
	for bar < len(line) && line[bar] == ' ' && bar < longestName {
		bar++
	}
	if bar >= len(line) || line[bar] != '|' {
		return nil, false
	}
	if bar < 2 || line[bar-1] != ' ' || bar+1 < len(line) && line[bar+1] != ' ' {
		return nil, false
	}
	name := line[:end]
	if isNumbers(name) {
		return nil, false
	}
	l.Source = name
	return line[min(bar+2, len(line)):], true
}

// isNameByte are the bytes of names of containers, hosts and programs.
var isNameByte = func() (is [256]bool) {
	for _, c := range []byte(word) {
		is[c] = true
	}
	return is
}()

func isName(name []byte) bool {
	for _, c := range name {
		if !isNameByte[c] {
			return false
		}
	}
	return len(name) > 0
}

// pod is kubectl's: [pod/NAME/CONTAINER].
func (s *Stripper) pod(line []byte, l *Line) ([]byte, bool) {
	const begin = "[pod/"
	if !bytes.HasPrefix(line, []byte(begin)) {
		return nil, false
	}
	end := bytes.IndexByte(line, ']')
	if end < 0 || end+1 < len(line) && line[end+1] != ' ' {
		return nil, false
	}
	l.Source = line[len(begin):end]
	return line[min(end+2, len(line)):], true
}

// job is the form of `gh run view --log`: the job, the step and the time, separated by tabs.
func (s *Stripper) job(line []byte, l *Line) ([]byte, bool) {
	first := bytes.IndexByte(line[:min(len(line), longestHeader)], '\t')
	if first < 1 {
		return nil, false
	}
	second := bytes.IndexByte(line[first+1:], '\t')
	if second < 1 {
		return nil, false
	}
	text := bytes.TrimPrefix(line[first+second+2:], []byte("\ufeff"))
	if _, _, ok := s.date(text); !ok {
		return nil, false
	}
	l.Source = line[:first]
	return text, true
}

// priority is the beginning of a syslog message: <PRI>, and the version 1 of RFC 5424 with its structured header.
func (s *Stripper) priority(line []byte, l *Line) ([]byte, bool) {
	end := bytes.IndexByte(line[:min(len(line), 6)], '>')
	if end < 2 || line[0] != '<' || !areDigits(line[1:end]) {
		return nil, false
	}
	text := line[end+1:]
	if !bytes.HasPrefix(text, []byte("1 ")) {
		return text, true
	}
	// VERSION TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG
	at, rest, ok := s.date(text[2:])
	if !ok {
		return nil, false
	}
	rest = bytes.TrimLeft(rest, " ")
	for range 4 {
		_, after, found := bytes.Cut(rest, []byte(" "))
		if !found {
			return nil, false
		}
		rest = after
	}
	if bytes.HasPrefix(rest, []byte("[")) {
		end := bytes.LastIndex(rest, []byte("] "))
		if end < 0 {
			return nil, false
		}
		rest = rest[end+2:]
	} else if _, after, found := bytes.Cut(rest, []byte(" ")); found {
		rest = after
	} else {
		rest = rest[:0]
	}
	l.Time = at
	return bytes.TrimPrefix(rest, []byte("\ufeff")), true
}

func areDigits(text []byte) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}

// number reads exactly n digits.
func number(text []byte, n int) (v int, ok bool) {
	if len(text) < n {
		return 0, false
	}
	for _, c := range text[:n] {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = 10*v + int(c-'0')
	}
	return v, true
}

// date reads a date and time such as 2024-05-10T11:14:15.123Z, with a blank for T, a comma before the fraction, and with
// or without a zone (then local). YCSB's own status lines have a colon before the fraction: they are not a prefix.
func (s *Stripper) date(text []byte) (at time.Time, rest []byte, ok bool) {
	if len(text) < 19 || text[4] != '-' && text[4] != '/' || text[7] != text[4] || text[10] != 'T' && text[10] != ' ' {
		return at, nil, false
	}
	sec, nano, rest, ok := clock(text[11:])
	if !ok {
		return at, nil, false
	}
	zone, rest := zoneText(rest)
	if len(rest) > 0 && rest[0] != ' ' && rest[0] != ']' && rest[0] != '\t' {
		return at, nil, false
	}
	begin, ok := s.minute.begin(text[:len("2024-05-10T11:14")], zone)
	return begin.Add(time.Duration(sec)*time.Second + time.Duration(nano)), rest, ok
}

// minute is when the minute of the last date began. Most lines of a log have the minute of the line before, and a time
// zone is expensive to look up.
type minute struct {
	text [len("2024-05-10T11:14") + len("+01:00")]byte
	size int
	at   time.Time
}

// begin returns when a minute began. zone is empty if it is local.
func (m *minute) begin(text, zone []byte) (time.Time, bool) {
	if n := len(text); m.size == n+len(zone) && string(m.text[:n]) == string(text) && string(m.text[n:m.size]) == string(zone) {
		return m.at, true
	}
	year, ok := number(text, 4)
	mon, ok2 := number(text[5:], 2)
	day, ok3 := number(text[8:], 2)
	h, ok4 := number(text[11:], 2)
	minutes, ok5 := number(text[14:], 2)
	location, ok6 := zoneOf(zone)
	if !ok || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || mon < 1 || mon > 12 || day < 1 || day > 31 {
		return time.Time{}, false
	}
	m.size = copy(m.text[copy(m.text[:], text):], zone) + len(text)
	m.at = time.Date(year, time.Month(mon), day, h, minutes, 0, 0, location)
	return m.at, true
}

// clock reads the seconds and the fraction of a time of day such as 11:14:15.123.
func clock(text []byte) (sec, nano int, rest []byte, ok bool) {
	h, ok1 := number(text, 2)
	if !ok1 || len(text) < 8 || text[2] != ':' || text[5] != ':' {
		return 0, 0, nil, false
	}
	m, ok2 := number(text[3:], 2)
	sec, ok3 := number(text[6:], 2)
	if !ok2 || !ok3 || h > 23 || m > 59 || sec > 60 {
		return 0, 0, nil, false
	}
	rest = text[8:]
	if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') && '0' <= rest[1] && rest[1] <= '9' {
		unit := int(time.Second) / 10
		for rest = rest[1:]; len(rest) > 0 && '0' <= rest[0] && rest[0] <= '9'; rest = rest[1:] {
			nano, unit = nano+int(rest[0]-'0')*unit, unit/10
		}
	}
	return sec, nano, rest, true
}

// zoneText returns the Z, +0100 or +01:00 with which a text begins, or nothing, and the rest.
func zoneText(text []byte) (zone, rest []byte) {
	if len(text) > 0 && text[0] == 'Z' {
		return text[:1], text[1:]
	}
	if len(text) < 5 || text[0] != '+' && text[0] != '-' {
		return nil, text
	}
	size := 5
	if text[3] == ':' {
		size = 6
	}
	if len(text) < size || !areDigits(text[1:3]) || !areDigits(text[size-2:size]) {
		return nil, text
	}
	return text[:size], text[size:]
}

// zoneOf returns the zone of such a text; without one the time is local.
func zoneOf(text []byte) (*time.Location, bool) {
	if len(text) == 0 {
		return time.Local, true
	}
	if text[0] == 'Z' {
		return time.UTC, true
	}
	h, ok1 := number(text[1:], 2)
	m, ok2 := number(text[len(text)-2:], 2)
	offset := 3600*h + 60*m
	if text[0] == '-' {
		offset = -offset
	}
	if offset == 0 {
		return time.UTC, ok1 && ok2
	}
	return time.FixedZone("", offset), ok1 && ok2
}

// dated is a date and time, perhaps in brackets, with what logging programs add to it.
func (s *Stripper) dated(line []byte, l *Line) ([]byte, bool) {
	text, bracket := line, false
	if len(text) > 0 && text[0] == '[' {
		text, bracket = text[1:], true
	}
	at, rest, ok := s.date(text)
	if !ok || bracket && !bytes.HasPrefix(rest, []byte("]")) || !bracket && bytes.HasPrefix(rest, []byte("]")) {
		return nil, false
	}
	if bracket {
		rest = rest[1:]
	}
	l.Time = at
	rest = trimBlank(rest)
	switch {
	case len(rest) == 0:
	case isStream(rest): // GitLab CI: two digits, O or E, and a blank or + for a continued line
		rest = rest[4:]
	case bytes.HasPrefix(rest, []byte("stdout ")) || bytes.HasPrefix(rest, []byte("stderr ")): // containerd: stdout F
		if len(rest) > 8 && (rest[7] == 'F' || rest[7] == 'P') && rest[8] == ' ' {
			rest = rest[9:]
		}
	default:
		if logged, ok := logHeader(rest); ok {
			return logged, true
		}
		rest = s.sender(rest)
	}
	return rest, true
}

func trimBlank(text []byte) []byte {
	return bytes.TrimPrefix(text, []byte(" "))
}

func isStream(rest []byte) bool {
	return len(rest) >= 4 && areDigits(rest[:2]) && (rest[2] == 'O' || rest[2] == 'E') && (rest[3] == ' ' || rest[3] == '+')
}

var (
	levels = [][]byte{[]byte("TRACE"), []byte("DEBUG"), []byte("INFO"), []byte("WARN"), []byte("ERROR"), []byte("FATAL")}
	months = "JanFebMarAprMayJunJulAugSepOctNovDec"
)

// longestHeader bounds the names of thread and logger.
const longestHeader = 200

// logHeader is log4j's after the time: level, thread in brackets and logger in any order, and " - ".
func logHeader(rest []byte) ([]byte, bool) {
	if c := rest[0]; c != ' ' && (c != '[' || len(rest) > 1 && rest[1] == ' ') && (c < 'A' || c > 'Z') {
		return nil, false
	}
	head := rest[:min(len(rest), longestHeader)]
	end := bytes.Index(head, []byte(" - "))
	if end < 0 {
		return nil, false
	}
	for _, level := range levels {
		if i := bytes.Index(head[:end], level); i == 0 || i > 0 && (head[i-1] == ' ' || head[i-1] == '[') {
			return rest[end+3:], true
		}
	}
	return nil, false
}

func isLevel(line []byte) bool {
	if len(line) < 2 || line[0] != '[' {
		return false
	}
	for _, level := range levels {
		if line[1] == level[0] && bytes.HasPrefix(line[1:], level) {
			return true
		}
	}
	return false
}

// levelFirst is log4j's with the level before the time: [INFO ] 2024-05-10 11:14:15,123 [thread] logger - .
func (s *Stripper) levelFirst(line []byte, l *Line) ([]byte, bool) {
	if !isLevel(line) {
		return nil, false
	}
	end := bytes.IndexByte(line, ']')
	if end < 0 || end+2 > len(line) {
		return nil, false
	}
	at, rest, ok := s.date(bytes.TrimLeft(line[end+1:], " "))
	if !ok {
		return nil, false
	}
	dash := bytes.Index(rest[:min(len(rest), longestHeader)], []byte(" - "))
	if dash < 0 {
		return nil, false
	}
	l.Time = at
	return rest[dash+3:], true
}

// month returns the number of the month that a line begins with, in English, followed by a blank; 0 if there is none.
func month(line []byte) time.Month {
	if len(line) < 4 || line[3] != ' ' || line[0] < 'A' || line[0] > 'S' {
		return 0
	}
	for m := range 12 {
		if string(line[:3]) == months[3*m:3*m+3] {
			return time.Month(m + 1)
		}
	}
	return 0
}

// classic is syslog's time of RFC 3164, as journalctl and ts print it: the year is missing.
func (s *Stripper) classic(line []byte, l *Line) ([]byte, bool) {
	if len(line) < 15 || line[3] != ' ' || line[6] != ' ' {
		return nil, false
	}
	sec, nano, rest, ok := clock(line[7:])
	if !ok || len(rest) > 0 && rest[0] != ' ' {
		return nil, false
	}
	begin, ok := s.minute.withoutYear(line[:len("May 10 11:14")], s.Written)
	if !ok {
		return nil, false
	}
	l.Time = begin.Add(time.Duration(sec)*time.Second + time.Duration(nano))
	return s.sender(trimBlank(rest)), true
}

// withoutYear returns when a minute began whose year is missing: the latest one that is not after the log was written.
func (m *minute) withoutYear(text []byte, written time.Time) (time.Time, bool) {
	if string(m.text[:m.size]) == string(text) {
		return m.at, true
	}
	mon := month(text)
	day, ok1 := number(text[4:], 2)
	if text[4] == ' ' { // before a day of one digit
		day, ok1 = number(text[5:], 1)
	}
	h, ok2 := number(text[7:], 2)
	minutes, ok3 := number(text[10:], 2)
	if mon == 0 || !ok1 || !ok2 || !ok3 {
		return time.Time{}, false
	}
	if written.IsZero() {
		written = time.Now()
	}
	at := time.Date(written.Year(), mon, day, h, minutes, 0, 0, time.Local)
	if at.After(written.Add(24 * time.Hour)) {
		at = time.Date(written.Year()-1, mon, day, h, minutes, 0, 0, time.Local)
	}
	m.size, m.at = copy(m.text[:], text), at
	return at, true
}

// sender removes "HOST PROGRAM[PID]: ". Without a process id, text such as "total time: 10s" has the same form: such a
// sender is removed only if the line before had the same one, or if the program's name is repeated in the text, as the
// banner of a tool does.
func (s *Stripper) sender(text []byte) []byte {
	blank := 0
	for blank < len(text) && isNameByte[text[blank]] {
		blank++
	}
	if blank == 0 || blank == len(text) || text[blank] != ' ' {
		return text
	}
	host, rest := text[:blank], text[blank+1:]
	colon := bytes.Index(rest[:min(len(rest), longestName)], []byte(":"))
	if colon < 1 || colon+1 < len(rest) && rest[colon+1] != ' ' {
		return text
	}
	program, after := rest[:colon], trimBlank(rest[colon+1:])
	if open := bytes.IndexByte(program, '['); open > 0 && program[len(program)-1] == ']' && areDigits(program[open+1:len(program)-1]) {
		return after
	}
	if !isName(program) {
		return text
	}
	tag := text[:len(host)+1+colon+1]
	if bytes.Equal(tag, s.tag) {
		return after
	}
	known := len(s.tag) == 0 && !isWord(host)
	s.tag = append(s.tag[:0], tag...)
	if known {
		return after
	}
	return text
}

// isWord reports whether a name could be a word at the beginning of a sentence of a benchmark tool, such as "total" of
// "total time: 10s". Names of hosts mostly have a digit, a dot or a dash.
func isWord(name []byte) bool {
	for _, c := range name {
		if '0' <= c && c <= '9' || c == '-' || c == '.' {
			return false
		}
	}
	return true
}

// timeOfDay is a time without a date, as Jenkins and ts -s print it. It says nothing about when the line was written.
func (s *Stripper) timeOfDay(line []byte, _ *Line) ([]byte, bool) {
	text, bracket := line, len(line) > 0 && line[0] == '['
	if bracket {
		text = text[1:]
	}
	_, _, rest, ok := clock(text)
	if bracket && ok {
		ok, rest = bytes.HasPrefix(rest, []byte("]")), bytes.TrimPrefix(rest, []byte("]"))
	}
	if !ok || len(rest) > 0 && rest[0] != ' ' {
		return nil, false
	}
	rest = trimBlank(rest)
	if len(line)-len(rest) > len("00:00:10 ") && !bracket { // Jenkins' has a fraction, and two blanks after it
		rest = trimBlank(rest)
	}
	return s.sender(rest), true
}

// weekday is journalctl's short-full: the day of the week, the date, the time and the name of the zone.
func (s *Stripper) weekday(line []byte, l *Line) ([]byte, bool) {
	if len(line) < 24 || line[3] != ' ' || line[0] < 'F' || line[0] > 'W' {
		return nil, false
	}
	at, rest, ok := s.date(line[4:])
	if !ok || at.Weekday().String()[:3] != string(line[:3]) || len(rest) == 0 {
		return nil, false
	}
	zone, after, _ := bytes.Cut(rest[1:], []byte(" "))
	switch {
	case string(zone) == "UTC":
		at = time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	case !isZoneName(zone):
		return nil, false
	}
	l.Time = at
	return s.sender(after), true
}

// isZoneName reports whether a text is an abbreviation of a time zone, such as CEST or +03.
func isZoneName(text []byte) bool {
	for _, c := range text {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '-' {
			return false
		}
	}
	return len(text) > 1 && len(text) < 6
}

// uptime is the kernel's and journalctl's short-monotonic: seconds since the machine started, in brackets.
func (s *Stripper) uptime(line []byte, _ *Line) ([]byte, bool) {
	end := uptimeEnd(line)
	if end == 0 || end+1 < len(line) && line[end+1] != ' ' {
		return nil, false
	}
	return s.sender(trimBlank(line[end+1:])), true
}

// uptimeEnd returns the index of the bracket after such a time; 0 if the line does not begin with one.
func uptimeEnd(line []byte) int {
	i, point := 1, 0
	for i < len(line) && line[i] == ' ' {
		i++
	}
	for ; i < len(line) && i < 24; i++ {
		switch c := line[i]; {
		case c == '.' && point == 0 && i > 1:
			point = i
		case c == ']' && point > 0 && i == point+7:
			return i
		case c < '0' || c > '9':
			return 0
		}
	}
	return 0
}

// epoch is seconds since 1970 with a fraction before a text. Lines of numbers between blanks, such as pgbench's logs, are
// left alone.
func (s *Stripper) epoch(line []byte, l *Line) ([]byte, bool) {
	if len(line) < 13 || line[10] != '.' || !areDigits(line[:10]) {
		return nil, false
	}
	end := 11
	for end < len(line) && '0' <= line[end] && line[end] <= '9' {
		end++
	}
	if end == 11 || end < len(line) && line[end] != ' ' {
		return nil, false
	}
	rest := trimBlank(line[end:])
	if len(rest) > 0 && isNumbers(rest) && bytes.IndexByte(rest, ',') < 0 {
		return nil, false
	}
	seconds, _ := number(line, 10)
	nano, digits := 0, 0
	for _, c := range line[11:end] {
		if digits < 9 {
			nano, digits = 10*nano+int(c-'0'), digits+1
		}
	}
	for ; digits < 9; digits++ {
		nano *= 10
	}
	l.Time = time.Unix(int64(seconds), int64(nano))
	return s.sender(rest), true
}

// isNumbers reports whether a text has digits, and nothing but numbers.
func isNumbers(text []byte) bool {
	digits := false
	for _, c := range text {
		digit := '0' <= c && c <= '9'
		digits = digits || digit
		if !digit && strings.IndexByte(" .,-+eE", c) < 0 {
			return false
		}
	}
	return digits
}

// quotation is the sign with which mail programs and Markdown quote a line. Many of them are a tool's own, such as
// HammerDB's ">>>>> PROC: NEWORD".
func quotation(_ *Stripper, line []byte, _ *Line) ([]byte, bool) {
	if bytes.HasPrefix(line, []byte(">>>>")) {
		return nil, false
	}
	return trimBlank(line[1:]), true
}

// withoutBold removes the pairs of asterisks with which Markdown makes a part of a line bold.
func (s *Stripper) withoutBold(line []byte) []byte {
	begin, last := len(s.buffer), 0
	for i := 0; i+1 < len(line); i++ {
		if line[i] != '*' {
			continue
		}
		end := i
		for end < len(line) && line[end] == '*' {
			end++
		}
		if end == i+2 {
			s.buffer = append(s.buffer, line[last:i]...)
			last = end
		}
		i = end
	}
	if last == 0 {
		return line
	}
	s.buffer = append(s.buffer, line[last:]...)
	return s.buffer[begin:]
}

// added is a line that a patch adds. The frame of a table and the marks of set -x stay.
func added(_ *Stripper, line []byte, _ *Line) ([]byte, bool) {
	if len(line) < 2 || strings.IndexByte("+-= ", line[1]) >= 0 && !bytes.HasPrefix(line, []byte("+  ")) {
		return nil, false
	}
	return line[1:], true
}

// comment is a sign with which scripts, SQL and configuration files begin a comment. A line of the form "--name=value" is an
// option of a command.
func comment(_ *Stripper, line []byte, _ *Line) ([]byte, bool) {
	for _, sign := range []string{"# ", "-- ", "// "} {
		if rest, ok := bytes.CutPrefix(line, []byte(sign)); ok {
			return rest, true
		}
	}
	rest, ok := bytes.CutPrefix(line, []byte("--"))
	if !ok || len(rest) == 0 || rest[0] == '-' || !bytes.Contains(rest, []byte(": ")) && !bytes.Contains(rest, []byte(" = ")) {
		return nil, false
	}
	return rest, true
}

// IsRemark reports whether the rest of a line, which follows a blank, is what a person wrote behind it: a comment, or text
// in a language with other letters than a tool uses.
func IsRemark(rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	switch c := rest[0]; c {
	case '#':
		return true
	case '/', '-':
		return len(rest) > 1 && rest[1] == c
	case '<':
		return len(rest) > 1 && rest[1] == '-'
	default:
		return c >= utf8.RuneSelf
	}
}

// bold is Markdown's: a line between two pairs of asterisks, and no more of them.
func bold(_ *Stripper, line []byte, _ *Line) ([]byte, bool) {
	text := bytes.TrimRight(line, " \r")
	inner := len(text) - 4
	if inner < 1 || string(text[:2]) != "**" || string(text[2+inner:]) != "**" || text[2] == '*' || text[1+inner] == '*' {
		return nil, false
	}
	return text[2 : 2+inner], true
}
