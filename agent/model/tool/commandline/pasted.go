package commandline

import (
	"regexp"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// prompt matches what a shell prints before a command: a prompt of up to five words, or the marks of set -x.
var prompt = regexp.MustCompile("^`*(?:\\+{1,4} |(?:\\S{1,60} ){0,4}?\\S{0,60}[$#>%❯] )?")

// Pasted describes the command that starts t in a line of a log, as terminals, scripts and people leave it there. ok is
// false if there is none, or if its arguments are not all known, such as variables.
func Pasted(t *tool.Tool, line string) (d tool.Description, ok bool) {
	text := strings.TrimRight(line[len(prompt.FindString(line)):], "` ")
	if strings.ContainsAny(text, "$<*{[…") || strings.HasSuffix(text, ".") {
		return tool.Description{}, false
	}
	c := Read([]string{"sh", "-c", text}, []*tool.Tool{t}, Env{NoInject: true})
	return c.Description, c.Tool == t
}
