// Package table writes tables of values as text, Markdown, CSV and JSON, and defines the units of
// numbers.
//
// A [Table] is data: columns and rows of cells. A [Cell] holds a value twice: for people (rounded,
// in a handy unit) and for programs (in base units, with all digits). The writers choose the form,
// align and escape it, and print unknown values: a dash for people, nothing in CSV.
//
//	t := table.New(table.Column{Name: "threads"}, table.Column{Name: "latency_p95_seconds", Head: "p95 ms"})
//	t.Add(table.Whole(16), table.Number(0.0021, table.Milliseconds))
//	err := t.Markdown(os.Stdout)
package table

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// Unknown is what people see in place of an unknown value.
const Unknown = "–"

// Cell is one value of a table. The zero Cell is unknown.
type Cell struct {
	text   string
	number bool
	value  float64
	unit   Unit
}

// Text returns a cell with s, which may come from anywhere: the writers neutralise whatever could
// harm a terminal, a Markdown page or a spreadsheet. An empty s is unknown.
func Text(s string) Cell { return Cell{text: s} }

// Number returns a cell with v, in base units or [series.Unknown]; people see it in unit u.
func Number(v float64, u Unit) Cell { return Cell{number: true, value: v, unit: u} }

// Optional returns a cell with v, like [Number].
func Optional(v series.Optional[float64], u Unit) Cell { return Number(series.Number(v), u) }

// Whole returns a cell with a count.
func Whole(n int) Cell { return Number(float64(n), Count) }

// As returns a number that people see as text.
func (c Cell) As(text string) Cell {
	c.text = text
	return c
}

// Signed returns a number with the unit's sign in the text for people.
func (c Cell) Signed() Cell {
	if c.IsUnknown() {
		return c
	}
	return c.As(c.unit.Signed(c.value))
}

// IsUnknown reports whether the cell has no value.
func (c Cell) IsUnknown() bool { return c.text == "" && !(c.number && finite(c.value)) }

// IsNumber reports whether the cell was made from a number.
func (c Cell) IsNumber() bool { return c.number }

// String returns the cell in human-readable form.
func (c Cell) String() string {
	switch {
	case c.text != "":
		return Plain(c.text)
	case c.number:
		return c.unit.Format(c.value)
	}
	return Unknown
}

// Data returns the cell for programs, empty if it is unknown. Text that a spreadsheet would take
// for a formula gets an apostrophe in front.
func (c Cell) Data() string {
	if c.number {
		return shortest(c.value)
	}
	if isWord(c.text) {
		return c.text
	}
	s := Plain(c.text)
	// Some spreadsheets skip blanks and treat full-width characters like ASCII.
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, " ")); strings.ContainsRune("=+-@＝＋－＠", first) && s != "" {
		return "'" + s
	}
	return s
}

// isWord reports whether s begins with a letter or digit and has no character that could harm anything.
func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '_' || c == '-' || c == ':' || c == '.'):
		default:
			return false
		}
	}
	return true
}

// Column describes the values of one column.
type Column struct {
	// Name heads the column in CSV: lower case with underscores, including the base unit of its
	// numbers.
	Name string
	// Head heads the column for people, including the unit that they see; default: Name.
	Head string
	// Spare: the column is dropped first if the table is too wide. Cut: its texts are shortened to fit. Kept: the column
	// is dropped only if shorter texts and heads do not suffice.
	Spare, Cut, Kept bool
}

func (c Column) head() string {
	if c.Head == "" {
		return c.Name
	}
	return c.Head
}

// Table is a set of columns and rows with one cell for each column.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// New returns a table without rows.
func New(columns ...Column) *Table { return &Table{Columns: columns} }

// Named returns columns whose name is also their head.
func Named(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		columns[i].Name = name
	}
	return columns
}

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// DropUnknown removes columns without any value.
func (t *Table) DropUnknown() {
	for i := range slices.Backward(t.Columns) {
		if slices.ContainsFunc(t.Rows, func(row []Cell) bool { return !row[i].IsUnknown() }) {
			continue
		}
		t.Drop(t.Columns[i].Name)
	}
}

// Head returns the heads that people see.
func (t *Table) Head() []string {
	heads := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		heads[i] = c.head()
	}
	return heads
}

// Has reports whether there is a column of this name.
func (t *Table) Has(name string) bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// Drop removes a column.
func (t *Table) Drop(name string) {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return
	}
	t.Columns = slices.Delete(t.Columns, i, i+1)
	for j := range t.Rows {
		t.Rows[j] = slices.Delete(t.Rows[j], i, i+1)
	}
}

// Width returns the width of the lines of Text in characters.
func (t *Table) Width() int {
	width := 2 * (len(t.Columns) - 1)
	for i, c := range t.Columns {
		widest := utf8.RuneCountInString(c.head())
		for _, row := range t.Rows {
			widest = max(widest, utf8.RuneCountInString(row[i].String()))
		}
		width += widest
	}
	return width
}

const (
	// leastCut is the minimum width of a shortened text, usualCut its width if no terminal limits
	// it. narrowCut replaces leastCut to keep a column.
	leastCut, usualCut, narrowCut = 16, 60, 9
	// leastHead is the length to which heads of numbers are shortened, narrowHead that to keep a column.
	leastHead, narrowHead = 12, 6
)

// Fit returns the table reduced to a terminal's width in characters, 0 for any width, and the heads of
// the columns that it lacks, with "spread" if it lacks that. It drops spare columns, then prints
// numbers without the spread in their text, then shortens texts and heads of numbers, and then drops
// columns whose texts can't be cut, each from the right. To keep a column, it shortens more.
func (t *Table) Fit(width int) (fitted *Table, dropped []string) {
	fitted = &Table{Columns: slices.Clone(t.Columns)}
	for _, row := range t.Rows {
		fitted.Rows = append(fitted.Rows, slices.Clone(row))
	}
	drop := func(tooWide func() bool, expendable func(i int) bool) {
		for i := len(fitted.Columns) - 1; i > 0 && tooWide(); i-- {
			if expendable(i) {
				name := fitted.Columns[i].Name
				whole := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
				dropped = append([]string{t.Columns[whole].head()}, dropped...)
				fitted.Drop(name)
			}
		}
	}
	uncut := func() bool { return width > 0 && fitted.Width() > width }
	least := leastCut
	cut := func() bool { return fitted.isWider(width, least) }
	drop(uncut, func(i int) bool { return fitted.Columns[i].Spare })
	if uncut() {
		hadSpread := false
		for _, row := range fitted.Rows {
			for i := range row {
				alone := row[i].alone()
				hadSpread = hadSpread || alone.text != row[i].text
				row[i] = alone
			}
		}
		if hadSpread {
			defer func() { dropped = append(dropped, "spread") }()
		}
	}
	clipHeads := func(least int) {
		for i, numeric := range fitted.numeric() {
			if c := &fitted.Columns[i]; numeric {
				c.Head = Clip(c.head(), max(least, fitted.widest(i)))
			}
		}
	}
	if cut() {
		clipHeads(leastHead)
	}
	drop(cut, func(i int) bool { return !fitted.Columns[i].Cut && !fitted.Columns[i].Kept })
	if cut() {
		least = narrowCut
		fitted.cutPrefix()
		clipHeads(narrowHead)
	}
	drop(cut, func(i int) bool { return !fitted.Columns[i].Cut })
	for i, c := range fitted.Columns {
		if !c.Cut {
			continue
		}
		longest, room := fitted.widest(i), usualCut
		if width > 0 {
			room = max(least, width-(fitted.Width()-longest))
		}
		for _, row := range fitted.Rows {
			if row[i].text != "" {
				row[i] = Text(Clip(row[i].text, room))
			}
		}
	}
	return fitted, dropped
}

// cutPrefix removes what the heads of all kept columns begin with, such as "tool=", so that they differ when shortened.
func (t *Table) cutPrefix() {
	var kept []*Column
	for i := range t.Columns {
		if t.Columns[i].Kept {
			kept = append(kept, &t.Columns[i])
		}
	}
	if len(kept) < 2 {
		return
	}
	prefix := kept[0].head()
	for _, c := range kept[1:] {
		for !strings.HasPrefix(c.head(), prefix) {
			_, size := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-size]
		}
	}
	for _, c := range kept {
		if rest := c.head()[len(prefix):]; rest != "" {
			c.Head = rest
		}
	}
}

// isWider reports whether the lines of Text are longer than width, with texts cut to the width least.
func (t *Table) isWider(width, least int) bool {
	needed := t.Width()
	for i, c := range t.Columns {
		if c.Cut {
			needed -= max(0, max(t.widest(i), utf8.RuneCountInString(c.head()))-max(least, utf8.RuneCountInString(c.head())))
		}
	}
	return width > 0 && needed > width
}

// widest returns the width of the longest text in a column, without its head.
func (t *Table) widest(column int) int {
	longest := 0
	for _, row := range t.Rows {
		longest = max(longest, utf8.RuneCountInString(row[column].String()))
	}
	return longest
}

// alone returns a number without the text after it.
func (c Cell) alone() Cell {
	if c.number && finite(c.value) && strings.HasPrefix(c.text, c.unit.Format(c.value)+" ") {
		c.text = ""
	}
	return c
}

// Text writes the table for a terminal, without a head line if all heads are empty. Columns of
// numbers are right-aligned.
func (t *Table) Text(w io.Writer) error {
	widths := make([]int, len(t.Columns))
	right := t.numeric()
	lines := [][]string{t.Head()}
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, c := range row {
			line[i] = c.String()
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	out := bufio.NewWriter(w)
	if strings.Join(lines[0], "") == "" {
		lines = lines[1:]
	}
	for _, line := range lines {
		var b strings.Builder
		for i, text := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if right[i] {
				text = pad + text
			} else {
				text += pad
			}
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(text)
		}
		out.WriteString(strings.TrimRight(b.String(), " ") + "\n") // out keeps the error
	}
	return out.Flush()
}

// numeric reports for each column whether it has only numbers and unknown values.
func (t *Table) numeric() []bool {
	all := make([]bool, len(t.Columns))
	for i := range all {
		all[i] = len(t.Rows) > 0
		for _, row := range t.Rows {
			all[i] = all[i] && (row[i].number || row[i].IsUnknown())
		}
	}
	return all
}

// Markdown writes the table as Markdown with all text escaped.
func (t *Table) Markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	line := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	heads := t.Head()
	for i := range heads {
		heads[i] = EscapeMarkdown(heads[i])
	}
	line(heads)
	for _, right := range t.numeric() {
		if right {
			out.WriteString("|---:")
		} else {
			out.WriteString("|---")
		}
	}
	out.WriteString("|\n")
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = EscapeMarkdown(c.String())
		}
		line(cells)
	}
	return out.Flush()
}

// CSV writes the table in base units for a spreadsheet.
func (t *Table) CSV(w io.Writer) error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	out := NewCSV(w, names...)
	for _, row := range t.Rows {
		out.Add(row...)
	}
	return out.Close()
}

// CSVWriter writes a table row by row, for tables too long to hold in memory.
type CSVWriter struct {
	out  *bufio.Writer
	line []byte
}

// NewCSV returns a writer that has already written the names of the columns.
func NewCSV(w io.Writer, names ...string) *CSVWriter {
	c := &CSVWriter{out: bufio.NewWriterSize(w, 1<<16)}
	for i, name := range names {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		c.line = appendCSV(c.line, name)
	}
	c.end()
	return c
}

// Add writes a row.
func (c *CSVWriter) Add(cells ...Cell) {
	for i, cell := range cells {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		switch {
		case !cell.number:
			c.line = appendCSV(c.line, cell.Data())
		case finite(cell.value):
			c.line = AppendNumber(c.line, cell.value)
		}
	}
	c.end()
}

func (c *CSVWriter) end() {
	_, _ = c.out.Write(append(c.line, '\n')) // Close returns the error
	c.line = c.line[:0]
}

// appendCSV appends a field with the quotes that package encoding/csv would use.
func appendCSV(to []byte, field string) []byte {
	first, _ := utf8.DecodeRuneInString(field)
	if !unicode.IsSpace(first) && !strings.ContainsAny(field, "\",\r\n") && field != `\.` { // \. ends the data in PostgreSQL
		return append(to, field...)
	}
	return append(append(append(to, '"'), strings.ReplaceAll(field, `"`, `""`)...), '"')
}

// Err returns the first error so far.
func (c *CSVWriter) Err() error {
	_, err := c.out.Write(nil)
	return err
}

// Close writes what is buffered and returns the first error of all writes.
func (c *CSVWriter) Close() error { return c.out.Flush() }

// JSON writes v as indented JSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// shortest returns v with as few digits as reproduce it; empty if it is unknown.
func shortest(v float64) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// AppendNumber appends v, which is finite, with as few digits as reproduce it. Numbers with up to six decimals, as
// tools print them, take a fifth of the time of package strconv: the only number of at most 15 digits that is
// read as v is its shortest form.
func AppendNumber(to []byte, v float64) []byte {
	const scale = 1e6
	scaled := math.Round(v * scale)
	if !(scaled >= 0 && scaled < 1e15) || scaled/scale != v || math.Signbit(v) {
		return strconv.AppendFloat(to, v, 'f', -1, 64)
	}
	whole, fraction := uint64(scaled)/scale, uint64(scaled)%scale
	to = strconv.AppendUint(to, whole, 10)
	if fraction == 0 {
		return to
	}
	to = append(to, '.')
	for power := uint64(scale / 10); fraction > 0; power /= 10 {
		to = append(to, byte('0'+fraction/power))
		fraction %= power
	}
	return to
}

// Field is a field of a JSON object.
type Field struct {
	Name  string
	Value any
}

// MarshalFields encodes a struct as JSON and appends further fields. The struct needs at least one
// field that is not left out. Numbers that are not finite are left out.
func MarshalFields(v any, fields []Field) ([]byte, error) {
	object, err := marshal(v)
	if err != nil {
		return nil, err
	}
	object = object[:len(object)-1]
	for _, f := range fields {
		if n, ok := f.Value.(float64); ok && !finite(n) {
			continue
		}
		value, err := marshal(f.Value)
		if err != nil {
			return nil, err
		}
		object = append(strconv.AppendQuote(append(object, ','), f.Name), ':')
		object = append(object, value...)
	}
	return append(object, '}'), nil
}

// MarshalJoined encodes several structs as one JSON object.
func MarshalJoined(structs ...any) ([]byte, error) {
	object := []byte{'{'}
	for _, v := range structs {
		data, err := marshal(v)
		if err != nil {
			return nil, err
		}
		if fields := data[1 : len(data)-1]; len(fields) > 0 {
			if len(object) > 1 {
				object = append(object, ',')
			}
			object = append(object, fields...)
		}
	}
	return append(object, '}'), nil
}

// marshal does not escape <, > and &: the encoder that calls MarshalJSON decides that.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// EscapeMarkdown escapes text so that it is not taken for Markdown or HTML. Underscores stay:
// within a word they have no effect.
func EscapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range Plain(s) {
		if strings.ContainsRune("\\`*[]<>|&~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Uncapitalised returns a title as it is written within a sentence: "Rows read" as "rows read". A first word with
// another capital is a name or an acronym, such as InnoDB or CPU, and stays.
func Uncapitalised(title string) string {
	word, _, _ := strings.Cut(title, " ")
	if word == "" || strings.IndexFunc(word[1:], unicode.IsUpper) >= 0 {
		return title
	}
	return strings.ToLower(title[:1]) + title[1:]
}
