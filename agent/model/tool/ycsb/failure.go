package ycsb

import (
	"bytes"
)

// fatal are messages after which YCSB ends before the test, yet with exit status 0.
var fatal = [...][]byte{
	[]byte("Unable to open the properties file "),
	[]byte("Missing property: "),
	[]byte("Failed check required properties."),
	[]byte("Unknown DB "),
	[]byte("Error initializing datastore bindings."),
	[]byte("Unknown option "),
	[]byte("Missing argument value for "),
	[]byte("Argument '-p' expected to be in key=value format"),
	[]byte("An argument value without corresponding argument specifier"),
	[]byte("An argument specifier without corresponding value"),
	[]byte("At least one argument specifying a workload is required."),
	[]byte("Error: Could not find or load main class "),
	[]byte("[ERROR] "),
	[]byte("Invalid combination of insertstart, insertcount and recordcount."),
}

// failures are prefixes of messages about failed operations.
var failures = [...][]byte{
	[]byte("Error "),
	[]byte("Error: "),
	[]byte("ERROR"),
	[]byte("Exception while "),
	[]byte("Exception in thread "),
	[]byte("Could not "),
	[]byte("Nothing updated for key "),
	[]byte("Nothing deleted for key "),
	[]byte("Nothing found in scan for key "),
}

// severity is how bad a line other than a report is.
type severity uint8

const (
	harmless  severity = iota
	failure            // something went wrong
	exception          // a Java exception, which YCSB may print twice
	deadly             // the run can't begin
)

func severityOf(text []byte) severity {
	if len(text) == 0 || text[0] == '\t' || text[0] == ' ' {
		return harmless
	}
	for _, p := range fatal {
		if bytes.HasPrefix(text, p) {
			return deadly
		}
	}
	if isThrowable(text) || bytes.HasPrefix(text, []byte("Exception in thread ")) {
		return exception
	}
	if bytes.HasPrefix(text, []byte("Could not wait until max specified time")) {
		return harmless // the run ended before its time limit
	}
	for _, p := range failures {
		if bytes.HasPrefix(text, p) {
			return failure
		}
	}
	if bytes.Contains(text, []byte("ycsb: error: ")) || bytes.Contains(text, []byte("ycsb.sh: error: ")) {
		return deadly
	}
	// A logger's line: "01:54:05.536 [Thread-9] ERROR org.mongodb.driver …".
	if i := bytes.Index(text, []byte("] ERROR ")); i > 0 && i < 100 {
		return failure
	}
	return harmless
}

// isThrowable reports whether text begins with the class of a Java exception, as the first line of
// a stack trace and Throwable.toString do.
func isThrowable(text []byte) bool {
	end, dot := 0, -1
	for end < len(text) && (isNameByte(text[end]) && text[end] != '-' || text[end] == '.' || text[end] == '$') {
		if text[end] == '.' {
			dot = end
		}
		end++
	}
	if dot < 1 || text[0] < 'a' || text[0] > 'z' || end < len(text) && text[end] != ':' {
		return false
	}
	class := text[dot+1 : end]
	return bytes.HasSuffix(class, []byte("Exception")) || bytes.HasSuffix(class, []byte("Error"))
}
