package tpccmysql

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/secret"
	"github.com/benchwatch/benchwatch/agent/tool"
)

// startOptions and loadOptions are what the programs give to getopt: all
// options take a value, glued or as the next word.
const (
	startOptions = "hPdupwcrliftmoS01234"
	loadOptions  = "hPdupwlmn"
)

// The options' defaults.
const (
	defaultPort        = "3306"
	defaultDatabase    = "tpcc"
	defaultConnections = 10
	defaultMeasure     = 20
)

// Describe reads a command line of tpcc_start or tpcc_load.
func Describe(in tool.Invocation) tool.Description {
	loader := in.Program == load || hasPrefix(in.Program, load)
	if positional(in.Args) {
		return describePositional(in.Args, loader)
	}
	accepted := startOptions
	if loader {
		accepted = loadOptions
	}
	o := parseOptions(in.Args, accepted)
	d := tool.Description{
		Workload: "tpcc", Redacted: o.redacted, Secrets: o.secrets, Labels: map[string]string{},
		Database: o.text('d', defaultDatabase), Target: o.target(),
	}
	o.label(&d, 'w', "warehouses")
	if loader {
		d.Command = "load"
		o.label(&d, 'm', "first_warehouse")
		o.label(&d, 'n', "last_warehouse")
		o.label(&d, 'l', "part")
		return d
	}
	d.Command = "run"
	d.Threads = o.number('c', defaultConnections)
	o.label(&d, 'r', "ramp_up_seconds")
	o.label(&d, 'm', "schemas")
	measure := o.number('l', defaultMeasure)
	every := o.number('i', defaultInterval)
	if _, given := o.values['i']; !given {
		d.Insert = []tool.Insertion{{At: 0, Args: []string{"-i1"}}}
	}
	if every <= 0 {
		d.Notes = append(d.Notes, "-i must be at least 1")
		return d
	}
	d.ReportInterval = time.Duration(every) * time.Second
	whole := measure / every * every
	d.Duration = time.Duration(whole) * time.Second
	if whole != measure && measure > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf(
			"-l%d with intervals of %d s measures %d s: tpcc_start leaves out what is not a whole interval", measure, every, whole))
	}
	return d
}

// options are what getopt makes of a command line.
type options struct {
	values   map[byte]string
	redacted []string
	secrets  []string
}

func parseOptions(args []string, accepted string) options {
	o := options{values: map[byte]string{}, redacted: make([]string, len(args))}
	for i, a := range args {
		o.redacted[i] = secret.Text(a)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' || strings.IndexByte(accepted, a[1]) < 0 {
			continue
		}
		name, value, prefix := a[1], a[2:], a[:2]
		if value == "" {
			if i++; i == len(args) {
				break
			}
			value, prefix = args[i], ""
		}
		o.values[name] = value
		if name == 'p' {
			o.redacted[i] = prefix + o.hide(value)
		}
	}
	return o
}

// hide notes a secret and returns what stands for it.
func (o *options) hide(value string) string {
	if value == "" {
		return ""
	}
	o.secrets = append(o.secrets, value)
	return secret.Blank
}

func (o *options) text(name byte, otherwise string) string {
	if v := o.values[name]; v != "" {
		return v
	}
	return otherwise
}

// number returns a number, or 0 if there is something else.
func (o *options) number(name byte, otherwise int) int {
	v, given := o.values[name]
	if !given {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > maxSetting {
		return 0
	}
	return n
}

func (o *options) label(d *tool.Description, name byte, label string) {
	if v := o.values[name]; v != "" {
		d.Labels[label] = v
	}
}

// target is the server. Without a host the client library takes the socket.
func (o *options) target() string {
	host := o.values['h']
	if host == "" {
		if socket := o.values['S']; socket != "" {
			return socket
		}
		host = "localhost"
	}
	return hostPort(host, o.text('P', defaultPort))
}

// hostPort leaves a host with a port alone: versions before 2012 took
// host:port.
func hostPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, port)
}

// positional recognises the form of the versions before October 2011:
//
//	tpcc_start server database user password warehouses connections ramp-up measure
//	tpcc_load server database user password warehouses [part first last]
func positional(args []string) bool {
	if len(args) < 4 {
		return false
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") && len(a) > 1 && strings.IndexByte(startOptions, a[1]) >= 0 && a != args[3] {
			return false
		}
	}
	return true
}

// describePositional reads the positional form. Nothing can be added to it.
func describePositional(args []string, loader bool) tool.Description {
	o := options{redacted: append([]string(nil), args...)}
	o.redacted[3] = o.hide(args[3])
	d := tool.Description{
		Workload: "tpcc", Command: "run", Redacted: o.redacted, Secrets: o.secrets, Labels: map[string]string{},
		Target: hostPort(args[0], defaultPort), Database: args[1],
	}
	argument := func(i int) int {
		if i >= len(args) {
			return 0
		}
		n, err := strconv.Atoi(args[i])
		if err != nil || n < 0 || n > maxSetting {
			return 0
		}
		return n
	}
	if len(args) > 4 {
		d.Labels["warehouses"] = args[4]
	}
	if loader {
		d.Command = "load"
		return d
	}
	d.Threads = argument(5)
	if len(args) > 6 {
		d.Labels["ramp_up_seconds"] = args[6]
	}
	measure := argument(7)
	d.ReportInterval = defaultInterval * time.Second
	d.Duration = time.Duration(measure/defaultInterval*defaultInterval) * time.Second
	return d
}
