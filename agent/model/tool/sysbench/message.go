package sysbench

import (
	"bytes"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// logBuffer is TEXT_BUFFER_SIZE of src/sb_logger.c. A message that fills it loses its end and its
// newline, so the next line is glued to it.
const logBuffer = 4096

// priorities are the prefixes of sysbench's log messages.
var priorities = []string{"FATAL: ", "ALERT: ", "WARNING: ", "DEBUG: "}

// unglue splits a line after a message that filled the log buffer.
func unglue(text []byte) (line, rest []byte) {
	if len(text) < logBuffer {
		return text, nil
	}
	for _, prefix := range priorities {
		if end := len(prefix) + logBuffer - 1; scan.HasPrefix(text, prefix) && len(text) > end {
			return text[:end], text[end:]
		}
	}
	return text, nil
}

// message reads log messages. It skips debug messages, since --mysql-debug prints the password.
func (p *Parser) message(text []byte, emit func(*tool.Report)) (tool.Verdict, bool) {
	s := scan.New(text)
	switch text[0] {
	case 'F', 'A', 'P':
		if !s.Literal("FATAL: ") && !s.Literal("ALERT: ") && !s.Literal("PANIC: ") {
			return 0, false
		}
	case 'W', 'D':
		if !s.Literal("WARNING: ") && !s.Literal("DEBUG: ") {
			return 0, false
		}
		p.lastMessage = ""
		return tool.Ignored, true
	case '(':
		if !s.Literal("(last message repeated ") {
			return 0, false
		}
		n, ok := count(&s)
		if !ok || !s.Literal(" times)") || !s.End() {
			return tool.Malformed, true
		}
		if p.lastMessage == "" {
			return tool.Ignored, true
		}
		p.fail(p.lastMessage, n, emit)
		return tool.Reported, true
	default:
		// Messages other than errors that several threads print.
		if s.Literal("Time limit exceeded") || s.Literal("Event limit exceeded") {
			p.lastMessage = ""
			return tool.Ignored, true
		}
		if !usageError(text) {
			return 0, false
		}
	}
	said := clean(text)
	p.fail(said, 1, emit)
	p.lastMessage = said
	return tool.Reported, true
}

// usageErrors are prefixes of the lines on standard error after which sysbench gives up. A log file
// may contain both streams.
var usageErrors = []string{
	"invalid option: ", "Invalid value for the '", "Unknown command: ", "Unrecognized command line argument: ",
	"Missing required ", "Multiple commands are not allowed.", "Invalid test name: ",
}

func usageError(text []byte) bool {
	return scan.HasAnyPrefix(text, usageErrors...) ||
		scan.ContainsAny(text, " test requires a command argument.", " test does not implement the '", " test does not have the '")
}

// stderr reads a line of standard error. It must not change the meaning of standard output.
// Standard error does not distinguish runs, so everything belongs to run 1.
func (p *Parser) stderr(text []byte, emit func(*tool.Report)) tool.Verdict {
	if !usageError(text) && !scan.HasAnyPrefix(text, "PANIC: ", "FATAL: ", "ALERT: ") {
		return tool.Ignored
	}
	r := &p.report
	r.ResetError(1, clean(text), false)
	emit(r)
	return tool.Reported
}

// fail reports an error of the current run that was printed n times. It sets a count if n is not 1.
func (p *Parser) fail(said string, n uint64, emit func(*tool.Report)) {
	p.start(emit)
	r := &p.report
	r.ResetError(p.number, said, false)
	if n != 1 {
		r.AddCount(tool.ErrorCount, n)
	}
	emit(r)
}

// clean prepares a line for display. A misspelt --mysql-password= is an invalid option as well.
func clean(text []byte) string {
	if scan.HasPrefix(text, "invalid option: ") {
		if name, _, assigned := bytes.Cut(text, []byte("=")); assigned {
			text = append(append(slices.Clip(name), '='), secret.Blank...)
		}
	}
	return message.Clean(text)
}
