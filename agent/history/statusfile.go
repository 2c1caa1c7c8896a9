package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// longestStatus bounds a line of status.jsonl; a longer one is unreadable.
const LongestStatus = 1 << 20

// readStatus adds all of status.jsonl to the history. A line that is no status
// is counted, and so is half a line at the end; of a run that goes on that one
// is just being written.
func (h *History) readStatus(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, LongestStatus)
	decoder := NewStatusDecoder()
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			line = bytes.TrimSpace(line)
			if len(line) > 0 && !decoder.Add(h, line) {
				h.Damage.UnreadableStatus++
			}
		case errors.Is(err, io.EOF):
			h.Damage.TornStatus = len(line) > 0 && h.Snapshot.Meta.Ended()
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			h.Damage.UnreadableStatus++
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
		default:
			return fmt.Errorf("read status: %w", err)
		}
	}
}

// statusDecoder reads lines of status.jsonl. Those that a recorder wrote are
// read in one pass without a map for each: a run of ten hours with three servers
// has a hundred thousand, of which the page wants a few values each. Any other
// JSON is read the general way.
type statusDecoder struct {
	columns map[*ServerHistory]*columnNames
	texts   texts

	// Of the line that is being read.
	status Status
	asked  time.Time
	wanted []reading
}

func NewStatusDecoder() *statusDecoder {
	return &statusDecoder{columns: map[*ServerHistory]*columnNames{}, texts: texts{}}
}

// reading is a value and the column that it belongs into.
type reading struct {
	column int
	value  float64
}

// columnNames are a server's columns by their names in the JSON. Lines of one
// server hold the same names in the same order, so the next one is guessed.
type columnNames struct {
	byName map[string]int
	order  []columnName
}

type columnName struct {
	quoted string // the name as it stands in the JSON, with quotes and colon
	column int    // -1: not kept
}

// valuesMember is where a line's values begin; nothing follows them.
var valuesMember = []byte(`,"values":{`)

// add adds a line to the history; false if it is unreadable.
func (d *statusDecoder) Add(h *History, line []byte) bool {
	head, values, some := bytes.Cut(line, valuesMember)
	if d.head(head, some) {
		// A server's first line is read the general way: that it is one is then sure.
		if s := h.Server(d.status.Target); s != nil && (!some || d.values(h, s, values)) {
			if !s.row(&d.status, h.Zero) {
				h.Damage.MisplacedStatus++
				return true
			}
			for _, r := range d.wanted {
				s.SetAt(r.column, r.value)
			}
			return true
		}
	}
	var s Status
	if json.Unmarshal(line, &s) != nil || s.Target == "" || s.Tick.IsZero() {
		return false
	}
	h.AddStatus(&s)
	return true
}

// head reads what stands in front of the values, which an open object is if
// there are some.
func (d *statusDecoder) head(b []byte, open bool) bool {
	d.status, d.wanted = Status{}, d.wanted[:0]
	if open {
		b = append(b[:len(b):len(b)], '}')
	}
	rest, ok := flatMembers(b, d.member)
	return ok && len(rest) == 0 && d.status.Target != "" && !d.status.Tick.IsZero()
}

// member takes a fact of a line's head; false if it is none that a recorder
// writes.
func (d *statusDecoder) member(name, value []byte) (ok bool) {
	s := &d.status
	switch string(name) {
	case "tick":
		s.Tick, ok = flatTime(value)
	case "asked":
		d.asked, ok = flatTime(value)
		s.Asked = &d.asked
	case "answered":
		s.Answered, ok = flatTime(value)
	case "target":
		s.Target, ok = d.texts.of(value)
	case "engine":
		s.Engine, ok = d.texts.of(value)
	case "cluster":
		s.Cluster, ok = d.texts.of(value)
	case "role":
		s.Role, ok = d.texts.of(value)
	case "version":
		s.Version, ok = d.texts.of(value)
	case "flavour":
		s.Flavour, ok = d.texts.of(value)
	case "error":
		s.Error, ok = d.texts.of(value)
	case "position":
		if ok = len(value) >= 2 && value[0] == '"'; ok {
			s.Position = string(value[1 : len(value)-1])
		}
	case "up":
		s.Up = string(value) == "true"
		ok = s.Up || string(value) == "false"
	case "restarts":
		var n float64
		n, ok = flatNumber(value)
		ok = ok && n >= 0 && n < 1<<53
		s.Restarts = uint64(n)
	case "lag_transactions":
		s.LagTransactions.Value, ok = flatNumber(value)
		s.LagTransactions.Known = ok
	case "lag_seconds":
		s.LagSeconds.Value, ok = flatNumber(value)
		s.LagSeconds.Known = ok
	}
	return ok
}

// values reads the values of a line to its end, those that are kept into wanted;
// false if there stands anything else.
func (d *statusDecoder) values(h *History, s *ServerHistory, b []byte) bool {
	if string(b) == "}}" {
		return true
	}
	names := d.columns[s]
	if names == nil {
		names = &columnNames{byName: map[string]int{}}
		d.columns[s] = names
	}
	for i := 0; ; i++ {
		column := -1
		if i < len(names.order) && hasPrefix(b, names.order[i].quoted) {
			column = names.order[i].column
			b = b[len(names.order[i].quoted):]
		} else {
			end := nameEnd(b)
			if end < 0 {
				return false
			}
			column = names.find(h, s, i, b[:end])
			b = b[end:]
		}
		end := numberEnd(b)
		if end <= 0 || end == len(b) {
			return false
		}
		if column >= 0 {
			v, ok := flatNumber(b[:end])
			if !ok {
				return false
			}
			d.wanted = append(d.wanted, reading{column, v})
		}
		switch b[end] {
		case ',':
			b = b[end+1:]
		case '}':
			return string(b[end:]) == "}}"
		default:
			return false
		}
	}
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// nameEnd is the length of a name in quotes with its colon; -1 if there is none.
func nameEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return -1
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			if i+1 < len(b) && b[i+1] == ':' {
				return i + 2
			}
			return -1
		}
	}
	return -1
}

// numberEnd is the length of what stands for a number.
func numberEnd(b []byte) int {
	for i, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return i
		}
	}
	return len(b)
}

// find returns the column of the name that stands at place i of a line, quotes and
// colon with it.
func (c *columnNames) find(h *History, s *ServerHistory, i int, quoted []byte) int {
	column, ok := c.byName[string(quoted)]
	if !ok {
		column = -1
		var text string
		if json.Unmarshal(quoted[:len(quoted)-1], &text) == nil && (h.keep == nil || h.keep(text)) {
			column = s.Column(text)
		}
		if len(c.byName) < 2*maxTexts {
			c.byName[string(quoted)] = column
		}
	}
	for len(c.order) <= i && i < maxTexts {
		c.order = append(c.order, columnName{})
	}
	if i < len(c.order) {
		c.order[i] = columnName{string(quoted), column}
	}
	return column
}
