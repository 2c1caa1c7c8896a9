package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The parts of the manual page before and after the commands.
const (
	manualHead = `.SH NAME
benchwatch \- watch a database benchmark while it runs
.SH SYNOPSIS
.B benchwatch
.I command
[\fIoptions\fR] [\fIarguments\fR]
.br
.B benchwatch run
[\fIoptions\fR] \-\- \fItool\fR [\fIarguments\fR]
.SH DESCRIPTION
`
	manualFoot = `.SH ENVIRONMENT
.TP
.B BENCHWATCH_DATA_DIR
Folder of the runs, unless \fB\-\-data\-dir\fR or the configuration names one
.SH EXAMPLES
Play a recorded run as if it were live:
.PP
.in +4n
.EX
benchwatch replay
.EE
.in
.PP
Run a benchmark and sample its server with the login of the tool:
.PP
.in +4n
.EX
benchwatch run \-\-sample \-\- sysbench oltp_read_write \-\-mysql\-host=db1 \-\-mysql\-user=sbtest \-\-mysql\-password=\&... \-\-threads=16 \-\-time=60 run
.EE
.in
.PP
Read the result again, or compare the newest run with the four previous runs:
.PP
.in +4n
.EX
benchwatch report last
benchwatch compare last=4 last
.EE
.in
.PP
Add servers to the configuration of the packaged agent, and check the installation:
.PP
.in +4n
.EX
sudo benchwatch init
benchwatch doctor
.EE
.in
.PP
Find the thread count from which more threads only add latency:
.PP
.in +4n
.EX
benchwatch sweep \-\-set threads=1,2,4,8,16,32 \-\- sysbench oltp_read_write \-\-mysql\-host=db1 \-\-threads={threads} \-\-time=60 run
.EE
.in
.SH FILES
.TP
.I /etc/benchwatch/benchwatch.yml
Configuration of the packaged agent
.TP
.I /var/lib/benchwatch
Runs of root, and of all users while the packaged agent runs
.TP
.I ~/.local/share/benchwatch
Runs of a user without the packaged agent
.SH SEE ALSO
.BR sysbench (1),
.BR prometheus (1)
.PP
https://github.com/benchwatch/benchwatch
`
)

// printManual writes the manual page. It has no date, so builds are reproducible.
func printManual(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, ".TH BENCHWATCH 1 \"\" \"benchwatch %s\" \"User Commands\"\n%s%s\n.SH COMMANDS\n",
		roff(version.Version), manualHead, roff(root.Short))
	for _, c := range leaves(root) {
		fmt.Fprintf(w, ".SS \"%s\"\n.B benchwatch %[1]s\n[\\fIoptions\\fR]", below(c))
		if form := c.Annotations[argumentForm]; form != "" {
			fmt.Fprintf(w, " \\fI%s\\fR", roff(form))
		}
		fmt.Fprintf(w, "\n.PP\n%s\n", roff(c.Short))
		if name := argumentName(c); name != "" {
			fmt.Fprintf(w, ".TP\n\\fI%s\\fR\n%s\n", roff(name), roff(c.Annotations[argumentHelp]))
		}
		manualFlags(w, c)
		fmt.Fprintf(w, ".PP\nExample:\n.PP\n.in +4n\n.EX\n%s\n.EE\n.in\n", roff(c.Example))
	}
	fmt.Fprintln(w, ".SH OPTIONS")
	manualFlags(w, root)
	fmt.Fprintln(w, ".SH EXIT STATUS")
	for _, s := range exitStatuses {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", s.status, roff(s.meaning))
	}
	fmt.Fprint(w, manualFoot)
}

func manualFlags(w io.Writer, c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		fmt.Fprintln(w, ".TP")
		if f.Shorthand != "" {
			fmt.Fprintf(w, `\fB\-%s\fR, `, f.Shorthand)
		}
		fmt.Fprintf(w, `\fB\-\-%s\fR`, roff(f.Name))
		if placeholder := f.Value.Type(); f.NoOptDefVal == "" {
			fmt.Fprintf(w, `=\fI%s\fR`, roff(placeholder))
		}
		standard := ""
		if d := defaultOf(f); d != "" {
			standard = " (default: " + d + ")"
		}
		fmt.Fprintf(w, "\n%s\n", roff(f.Usage+standard))
	})
}

// defaultOf returns the default of a flag whose help does not mention it.
func defaultOf(f *pflag.Flag) string {
	if f.NoOptDefVal != "" && f.DefValue != "true" || f.DefValue == "0" {
		return ""
	}
	return f.DefValue
}

// roff quotes text for a manual page: no character of it is an instruction, options
// keep their ASCII hyphens, and `code` is bold.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "…", `\&...`, "–", `\(en`).Replace(s)
	parts := strings.Split(s, "`")
	if len(parts)%2 == 1 {
		for i := 1; i < len(parts); i += 2 {
			parts[i] = `\fB` + parts[i] + `\fR`
		}
		s = strings.Join(parts, "")
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
