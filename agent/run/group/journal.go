package group

import (
	"bytes"
	"strconv"
)

// Mark is what a line of a group's journal holds. The journal is the output of a group:
// what its generators print, line by line as it arrives, each line with the number of its
// generator and a mark:
//
//	2> [ 1s ] thds: 4 tps: …   standard output
//	2! FATAL: …                standard error
//	2# start 0.004             its tool started so many seconds after the group
//	2# late                    it has not reported for long: the others don't wait for it
//	2# end                     its output is complete
type Mark byte

// The marks of a line.
const (
	Stdout  Mark = '>'
	Stderr  Mark = '!'
	Control Mark = '#'
)

// What a line with the mark Control can be. Start is followed by seconds.
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

// AppendStart appends that a generator's tool started.
func AppendStart(dst []byte, generator int, seconds float64) []byte {
	return AppendLine(dst, generator, Control, strconv.AppendFloat([]byte(Start+" "), seconds, 'f', 6, 64))
}

// Split takes a line of the journal apart; ok is false if it is none.
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
