package group

import (
	"bytes"
	"strconv"
)

// Mark is the kind of a line in a group's journal. The journal is the output of a group: the output
// of its generators, line by line in the order of arrival, each line with the number of its
// generator and a mark:
//
//	2> [ 1s ] thds: 4 tps: …   standard output
//	2! FATAL: …                standard error
//	2# start 0.004             its tool started this many seconds after the group
//	2# late                    it has not reported for long: the others don't wait for it
//	2# end                     its output is complete
type Mark byte

// The marks of a line.
const (
	Stdout  Mark = '>'
	Stderr  Mark = '!'
	Control Mark = '#'
)

// Texts of a line with the mark Control. Start is followed by seconds.
const (
	Start = "start"
	Late  = "late"
	End   = "end"
)

// AppendLine appends a line of the journal.
func AppendLine(dst []byte, generator int, mark Mark, text []byte) []byte {
	dst = strconv.AppendInt(dst, int64(generator), 10)
	dst = append(dst, byte(mark), ' ')
	dst = append(dst, text...)
	return append(dst, '\n')
}

// AppendStart appends the line for the start of a generator's tool.
func AppendStart(dst []byte, generator int, seconds float64) []byte {
	return AppendLine(dst, generator, Control, strconv.AppendFloat([]byte(Start+" "), seconds, 'f', 6, 64))
}

// Split splits a line of the journal; ok is false if it is not valid.
func Split(line []byte) (generator int, mark Mark, text []byte, ok bool) {
	at := bytes.IndexAny(line, ">!#")
	if at < 1 || at > 6 || at+1 >= len(line) || line[at+1] != ' ' {
		return 0, 0, nil, false
	}
	n, err := strconv.Atoi(string(line[:at]))
	if err != nil || n < 1 || line[0] == '+' {
		return 0, 0, nil, false
	}
	return n, Mark(line[at]), line[at+2:], true
}
