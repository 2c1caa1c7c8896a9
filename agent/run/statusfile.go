package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/benchwatch/benchwatch/agent/tool/decimal"
)

// longestStatus bounds a line of status.jsonl; a longer one is unreadable.
const longestStatus = 1 << 20

// readStatus adds all of status.jsonl to the history. A line that is no status
// is counted, and so is half a line at the end; of a run that goes on that one
// is just being written.
func (h *History) readStatus(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read status: %w", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, longestStatus)
	decoder := statusDecoder{columns: map[*ServerHistory]*columnNames{}}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			line = bytes.TrimSpace(line)
			if len(line) > 0 && !decoder.add(h, line) {
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
// read in one pass without a map for each: a run of ten hours has a hundred
// thousand. Any other JSON is read the general way.
type statusDecoder struct {
	columns map[*ServerHistory]*columnNames
	pairs   []pair
}

// pair is a name as it stands in the JSON, quotes left out, and its number.
type pair struct {
	name  []byte
	value float64
}

// columnNames are a server's columns by their names in the JSON. Lines of one
// server hold the same names in the same order, so the next one is guessed.
type columnNames struct {
	byName map[string]int
	order  []columnName
}

type columnName struct {
	name   string
	column int // -1: not kept
}

// add adds a line to the history; false if it is unreadable.
func (d *statusDecoder) add(h *History, line []byte) bool {
	head, values, ok := bytes.Cut(line, []byte(`,"values":{`))
	if ok {
		if d.pairs, ok = parsePairs(d.pairs[:0], values); ok {
			// The head's object was cut open: close it again.
			head = append(head[:len(head):len(head)], '}')
		}
	}
	if !ok {
		head, d.pairs = line, d.pairs[:0]
	}
	var s Status
	if json.Unmarshal(head, &s) != nil || s.Target == "" || s.Tick.IsZero() {
		return false
	}
	if !ok {
		h.AddStatus(&s)
		return true
	}
	server := h.server(&s)
	if server == nil || !server.row(&s, h.Zero) {
		h.Damage.MisplacedStatus++
		return true
	}
	names := d.columns[server]
	if names == nil {
		names = &columnNames{byName: map[string]int{}}
		d.columns[server] = names
	}
	for i, p := range d.pairs {
		if column := names.find(h, server, i, p.name); column >= 0 {
			server.set(column, p.value)
		}
	}
	return true
}

// find returns the column of the name that stands at place i of a line.
func (c *columnNames) find(h *History, s *ServerHistory, i int, name []byte) int {
	if i < len(c.order) && c.order[i].name == string(name) {
		return c.order[i].column
	}
	column, ok := c.byName[string(name)]
	if !ok {
		column = -1
		var text string
		if json.Unmarshal(append(append([]byte{'"'}, name...), '"'), &text) == nil && (h.keep == nil || h.keep(text)) {
			if at, ok := s.column(text); ok {
				column = at
			}
		}
		if len(c.byName) < 2*maxSeries {
			c.byName[string(name)] = column
		}
	}
	for len(c.order) <= i && i < maxSeries {
		c.order = append(c.order, columnName{})
	}
	if i < len(c.order) {
		c.order[i] = columnName{string(name), column}
	}
	return column
}

// parsePairs reads `"name":number,…}}` to the end of a line; false if it is
// anything else.
func parsePairs(pairs []pair, b []byte) ([]pair, bool) {
	if string(b) == "}}" {
		return pairs, true
	}
	for len(b) > 0 && b[0] == '"' {
		end := 1
		for end < len(b) && b[end] != '"' {
			if b[end] == '\\' {
				end++
			}
			end++
		}
		if end+1 >= len(b) || b[end+1] != ':' {
			return pairs, false
		}
		name := b[1:end]
		b = b[end+2:]
		end = 0
		for end < len(b) && b[end] != ',' && b[end] != '}' {
			end++
		}
		if end == len(b) || end < 1 || b[0] == '+' || b[0] == '.' {
			return pairs, false
		}
		v, ok := decimal.Parse(b[:end], 0)
		if !ok {
			return pairs, false
		}
		pairs = append(pairs, pair{name, v})
		if b[end] == '}' {
			return pairs, string(b[end:]) == "}}"
		}
		b = b[end+1:]
	}
	return pairs, false
}
