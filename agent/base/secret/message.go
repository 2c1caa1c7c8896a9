package secret

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Error returns the message of err with secrets blanked in each part of it. A part is the text that
// one error of the chain adds. Reading parts separately avoids taking the words of one error for
// the value of a name at the end of another: "open db.password: permission denied".
func Error(err error) string {
	whole := err.Error()
	var inner []error
	switch e := err.(type) { //nolint:errorlint // each error of the chain gets its turn
	case interface{ Unwrap() error }:
		inner = append(inner, e.Unwrap())
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	var b strings.Builder
	rest := whole
	for _, e := range inner {
		if e == nil {
			continue
		}
		message := e.Error()
		at := strings.Index(rest, message)
		if len(inner) == 1 {
			at = strings.LastIndex(rest, message) // the cause is at the end
		}
		if message == "" || at < 0 {
			continue
		}
		b.WriteString(Text(rest[:at]))
		b.WriteString(Error(e))
		rest = rest[at+len(message):]
	}
	b.WriteString(Text(rest))
	return b.String()
}

// Sprintf is fmt.Sprintf with secrets blanked in the arguments. The format is trusted: it contains
// only benchwatch's own words.
func Sprintf(format string, args ...any) string {
	clean := make([]any, len(args))
	for i, a := range args {
		clean[i] = argument{a}
	}
	return fmt.Sprintf(format, clean...)
}

// argument is an argument of Sprintf.
type argument struct{ value any }

// Format implements fmt.Formatter.
func (a argument) Format(f fmt.State, verb rune) {
	format := fmt.FormatString(f, verb)
	if err, ok := a.value.(error); ok && verb != 'q' {
		fmt.Fprintf(f, format, Error(err))
		return
	}
	fmt.Fprint(f, Text(fmt.Sprintf(format, a.value)))
}

// handler blanks secrets in log messages.
type handler struct{ slog.Handler }

// NewHandler returns a handler that blanks secrets in each value and in the message, and passes the
// record to h.
func NewHandler(h slog.Handler) slog.Handler { return handler{h} }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(attribute(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = attribute(a)
	}
	return handler{h.Handler.WithAttrs(clean)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

func attribute(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		if named(a.Key, false) {
			return slog.String(a.Key, Value(a.Key, v.String()))
		}
		return slog.String(a.Key, Text(v.String()))
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, of := range group {
			clean[i] = attribute(of)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(clean...)}
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.String(a.Key, Error(err))
		}
		return slog.String(a.Key, Text(fmt.Sprint(v.Any())))
	}
	return a
}
