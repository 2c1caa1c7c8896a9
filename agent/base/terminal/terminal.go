// Package terminal describes the terminal that a command writes to: whether it is one, its width,
// and whether colours are welcome. It also shows a line of progress.
package terminal

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Terminal describes what an output can show. The zero value is a file or a pipe.
type Terminal struct {
	// Is reports whether the output goes to a terminal.
	Is bool
	// Width in characters; 0: unlimited.
	Width int
	// All: the user wants to see what is usually left out since it is long.
	All bool
	// Color: the terminal understands colours and NO_COLOR is not set.
	Color bool
}

// usualWidth is assumed for a terminal of unknown width.
const usualWidth = 80

// Of returns the Terminal of w, also through Above.
func Of(w io.Writer) Terminal {
	if a, ok := w.(above); ok {
		return Of(a.out)
	}
	f, ok := w.(*os.File)
	if !ok {
		return Terminal{}
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return Terminal{}
	}
	t := Terminal{Is: true, Width: int(size.Col)}
	if t.Width == 0 {
		t.Width = usualWidth
	}
	// https://no-color.org
	t.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
	return t
}

// IsTerminal reports whether r is a terminal.
func IsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// ReadSecret reads a line without showing what is typed.
func ReadSecret(in *os.File, line func() (string, error)) (string, error) {
	fd := int(in.Fd())
	before, err := unix.IoctlGetTermios(fd, getAttributes)
	if err != nil {
		return line() // not a terminal
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, setAttributes, &quiet); err != nil {
		return "", err
	}
	restore := func() { _ = unix.IoctlSetTermios(fd, setAttributes, before) }
	defer restore()
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	defer signal.Stop(signals)
	defer close(done)
	go func() { // a signal ends the process: restore the terminal first
		select {
		case sig := <-signals:
			restore()
			signal.Reset(sig)
			_ = unix.Kill(unix.Getpid(), sig.(unix.Signal))
		case <-done:
		}
	}()
	return line()
}

// Shade is a colour of text, by its meaning.
type Shade string

// The shades come from the terminal's own palette, which its user has made readable.
const (
	Plain  Shade = ""
	Strong Shade = "1"
	Faint  Shade = "2"
	Good   Shade = "32"
	Bad    Shade = "31"
	Doubt  Shade = "33"
)

// Paint returns text in a shade, or unchanged if colours are not welcome.
func (t Terminal) Paint(shade Shade, text string) string {
	if !t.Color || shade == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(shade) + "m" + text + "\x1b[0m"
}

// narrowest is the minimum width at which text is wrapped.
const narrowest = 40

// Wrap breaks text at blanks so that no line exceeds the terminal's width. The first line begins at
// column first, the others at column hanging. A word longer than a line stays whole, and a number
// stays with its percent sign.
func (t Terminal) Wrap(text string, first, hanging int) string {
	if t.Width < narrowest {
		return text
	}
	var b strings.Builder
	column := first
	words := strings.Fields(text)
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		needed := n
		if i+1 < len(words) && strings.HasPrefix(words[i+1], "%") {
			needed += 1 + utf8.RuneCountInString(words[i+1])
		}
		switch {
		case i == 0:
		case column+1+needed > t.Width && !strings.HasPrefix(word, "%"):
			b.WriteString("\n" + strings.Repeat(" ", hanging))
			column = hanging
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// Command breaks a command line at blanks between its arguments, with a backslash at the end of each
// line but the last, so that a shell takes it as it is. The first line begins at column first.
func (t Terminal) Command(line string, first int) string {
	if t.Width < narrowest || first+utf8.RuneCountInString(line) <= t.Width {
		return line
	}
	const hanging, end = 2, 2 // end is the room for " \\"
	var b strings.Builder
	column := first
	for i, argument := range arguments(line) {
		n := utf8.RuneCountInString(argument)
		switch {
		case i == 0:
		case column+1+n+end > t.Width:
			b.WriteString(" \\\n" + strings.Repeat(" ", first+hanging))
			column = first + hanging
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(argument)
		column += n
	}
	return b.String()
}

// arguments divides a command line at the blanks outside of quotes, which it keeps.
func arguments(line string) []string {
	var quote rune
	return strings.FieldsFunc(line, func(r rune) bool {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
		return quote == 0 && r == ' '
	})
}
