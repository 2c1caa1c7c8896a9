package sysbench

import (
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/message"
)

func failure(said string) string {
	return string(tool.AppendJSON(nil, &tool.Report{Kind: tool.Error, Run: 1, Message: said}))
}

func TestMessages(t *testing.T) {
	const start = `{"kind":"start","run":1,"tool":"sysbench"}`
	for _, c := range []struct {
		name, input string
		want        []string
		malformed   int
	}{
		{"warnings, debug messages and notices are no errors",
			lines("WARNING: Both event and time limits are disabled, running an endless test", "DEBUG: FATAL: x", "Done.", "Time limit exceeded, exiting...", "(last message repeated 3 times)"),
			nil, 0},
		{"both kinds of error", lines("FATAL: a", "ALERT: b"), []string{start, failure("FATAL: a"), failure("ALERT: b")}, 0},
		{"repeated errors are counted",
			lines("FATAL: a", line10, "(last message repeated 3 times)", "ALERT: b", "(last message repeated 1 times)"),
			[]string{start, failure("FATAL: a"), replace(json10, `"interval_seconds":1,`, ""),
				replace(failure("FATAL: a"), `"message"`, `"counts":{"error":3},"message"`), failure("ALERT: b"), failure("ALERT: b")}, 0},
		{"what is repeated may be no error",
			lines("FATAL: a", "Time limit exceeded, exiting...", line10, "(last message repeated 3 times)", "FATAL: a", "DEBUG: c", "(last message repeated 3 times)"),
			[]string{start, failure("FATAL: a"), replace(json10, `"interval_seconds":1,`, ""), failure("FATAL: a")}, 0},
		{"a damaged note", lines("FATAL: a", "(last message repeated 3", "(last message repeated x times)", "(last message repeated 99999999999999999999 times)"),
			[]string{start, failure("FATAL: a")}, 3},
		{"usage errors of a log that holds both streams",
			lines(banner10, "invalid option: --foo", "Unknown command: rum", "The 'cpu' test requires a command argument. See 'sysbench cpu help'"),
			[]string{replace(start, `"}`, `","tool_version":"1.0.20"}`), failure("invalid option: --foo"), failure("Unknown command: rum"),
				failure("The 'cpu' test requires a command argument. See 'sysbench cpu help'")}, 0},
		{"secrets are blanked",
			lines("invalid option: --mysql-pasword=hunter2", "FATAL: can't connect to mysql://u:hunter2@db/", "FATAL: --mysql-password=hunter2",
				`DEBUG: mysql_real_connect(0x7f, "127.0.0.1", "bench", "hunter2", "sbtest", 3317, "(null)", CLIENT_MULTI_STATEMENTS)`),
			[]string{start, failure("invalid option: --mysql-pasword=" + secret.Blank), failure("FATAL: can't connect to mysql://u:" + secret.Blank + "@db/"), failure("FATAL: --mysql-password=" + secret.Blank)}, 0},
		{"what is not UTF-8 is replaced", lines("FATAL: a\xffb"), []string{start, failure("FATAL: a\uFFFDb")}, 0},
		{"long messages are shortened", lines("FATAL: " + strings.Repeat("x", 2000)),
			[]string{start, failure("FATAL: " + strings.Repeat("x", message.Max-7) + " …")}, 0},
		{"a message that fills sysbench's buffer loses its line end",
			"FATAL: " + strings.Repeat("x", 4095) + line10 + "\n" + "DEBUG: " + strings.Repeat("y", 4095) + "ALERT: " + strings.Repeat("z", 4095) + "FATAL: b\n",
			[]string{start, failure("FATAL: " + strings.Repeat("x", message.Max-7) + " …"), replace(json10, `"interval_seconds":1,`, ""),
				failure("ALERT: " + strings.Repeat("z", message.Max-7) + " …"), failure("FATAL: b")}, 0},
	} {
		t.Run(c.name, func(t *testing.T) { check(t, c.input, c.want, c.malformed) })
	}
}

func TestStandardError(t *testing.T) {
	res := parse(nil, []byte(lines(
		"WARNING: the --test option is deprecated. You can pass a script name or path on the command line without any options.",
		"PANIC: unprotected error in call to Lua API (Failed to connect to the database)", "", "Killed", line10, banner10,
		"invalid option: --x=y")))
	want := lines(failure("PANIC: unprotected error in call to Lua API (Failed to connect to the database)"), failure("invalid option: --x=***"))
	if got := res.JSON(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCutLinesAreMalformed(t *testing.T) {
	p := NewParser(tool.Description{})
	for _, text := range []string{line10, "FATAL: x", "x"} {
		if v := p.Parse(tool.Line{Text: []byte(text), Cut: true}, func(r *tool.Report) { t.Errorf("reported: %+v", r) }); v != tool.Malformed {
			t.Errorf("%s: %v", text, v)
		}
	}
	p.Close(func(r *tool.Report) { t.Errorf("reported: %+v", r) })
}

// TestFloodOfErrors guards that memory does not grow with the number of errors.
func TestFloodOfErrors(t *testing.T) {
	p := NewParser(tool.Description{})
	n := 0
	text := []byte("FATAL: " + strings.Repeat("x", 300))
	parse := func() { p.Parse(tool.Line{Text: text}, func(*tool.Report) { n++ }) }
	for range 40000 {
		parse()
	}
	if n != 40001 { // plus a start
		t.Errorf("%d reports of 40000 errors", n)
	}
	if len(p.lastMessage) > message.Max+8 {
		t.Errorf("%d bytes kept", len(p.lastMessage))
	}
}
