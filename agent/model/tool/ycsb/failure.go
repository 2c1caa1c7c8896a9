package ycsb

import (
	"bytes"
	"regexp"

	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// fatal are messages after which YCSB ends before the test, yet with exit status 0.
var fatal = []string{
	"Unable to open the properties file ",
	"Missing property: ",
	"Failed check required properties.",
	"Unknown DB ",
	"Error initializing datastore bindings.",
	"Unknown option ",
	"Missing argument value for ",
	"Argument '-p' expected to be in key=value format",
	"An argument value without corresponding argument specifier",
	"An argument specifier without corresponding value",
	"At least one argument specifying a workload is required.",
	"Error: Could not find or load main class ",
	"[ERROR] ",
	"Invalid combination of insertstart, insertcount and recordcount.",
}

// failures are prefixes of messages about failed operations.
var failures = []string{
	"Error ",
	"Error: ",
	"ERROR",
	"Exception while ",
	"Exception in thread ",
	"Could not ",
	"Nothing updated for key ",
	"Nothing deleted for key ",
	"Nothing found in scan for key ",
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
	switch {
	case scan.HasAnyPrefix(text, fatal...):
		return deadly
	case throwable.Match(text), scan.HasPrefix(text, "Exception in thread "):
		return exception
	case scan.HasPrefix(text, "Could not wait until max specified time"):
		return harmless // the run ended before its time limit
	case scan.HasAnyPrefix(text, failures...):
		return failure
	case scan.ContainsAny(text, "ycsb: error: ", "ycsb.sh: error: "):
		return deadly
	}
	// A logger's line: "01:54:05.536 [Thread-9] ERROR org.mongodb.driver …".
	if i := bytes.Index(text, []byte("] ERROR ")); i > 0 && i < 100 {
		return failure
	}
	return harmless
}

// throwable matches the class of a Java exception, with which the first line of a stack trace and Throwable.toString begin.
var throwable = regexp.MustCompile(`^[a-z][\w.$]*\.[\w$]*(?:Exception|Error)(?::|$)`)
