package commandline

import (
	"path"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// wrapper is a program that starts the command in its arguments.
type wrapper struct {
	// short and long are the options whose value is the next word.
	short string
	long  []string
	// sub are the subcommands that start a command; the first word has to be one.
	sub []string
	// positional is the number of words between the options and the command.
	positional int
	// assignments: NAME=value can precede the command.
	assignments bool
	// shell: -c is followed by shell text instead of a command.
	shell bool
	// remote: the command does not see this machine's files.
	remote bool
	// place is where the command runs.
	place tool.Place
	// joined: a shell reads the words of the command joined by blanks.
	joined bool
}

var wrappers = map[string]wrapper{
	"env":       {short: "uCS", long: []string{"unset", "chdir", "split-string"}, assignments: true},
	"nice":      {short: "n", long: []string{"adjustment"}},
	"ionice":    {short: "cnpPu", long: []string{"class", "classdata"}},
	"numactl":   {short: "iwpPCcNmSfLMoT", long: []string{"interleave", "weighted-interleave", "preferred", "preferred-many", "physcpubind", "cpubind", "cpunodebind", "membind"}},
	"taskset":   {positional: 1},
	"chrt":      {short: "TPD", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, positional: 1},
	"timeout":   {short: "ks", long: []string{"kill-after", "signal"}, positional: 1},
	"stdbuf":    {short: "ioe", long: []string{"input", "output", "error"}},
	"time":      {short: "fo", long: []string{"format", "output"}},
	"nohup":     {},
	"setsid":    {},
	"unbuffer":  {},
	"eatmydata": {},
	"exec":      {short: "a"},
	"command":   {},
	"setarch":   {positional: 1},
	"linux64":   {},
	"cgexec":    {short: "g"},
	"cpulimit":  {short: "lpePm", long: []string{"limit", "pid", "exe", "path"}},
	"prlimit":   {short: "p", long: []string{"pid"}},
	"chroot":    {long: []string{"userspec", "groups"}, positional: 1, remote: true},
	"gosu":      {positional: 1},
	"su-exec":   {positional: 1},
	"doas":      {short: "uC"},
	"sudo": {
		short: "ugphCTrtDRU", assignments: true,
		long: []string{"user", "group", "prompt", "host", "close-from", "command-timeout", "role", "type", "chdir", "chroot", "other-user"},
	},
	"runuser":     {short: "ugGsw", long: []string{"user", "group", "supp-group", "shell"}, shell: true},
	"su":          {short: "gGsw", long: []string{"group", "supp-group", "shell"}, shell: true},
	"flock":       {short: "wE", long: []string{"timeout", "wait", "conflict-exit-code"}, positional: 1, shell: true},
	"systemd-run": {short: "pEMHu", long: []string{"property", "setenv", "unit", "slice", "description", "uid", "gid", "nice", "working-directory", "machine", "host"}},
	"strace":      {short: "abeEIoOpPsSuUX", long: []string{"trace", "output", "env", "user", "attach", "string-limit"}},
	"ltrace":      {short: "abelnopsuxFAD"},
	"perf": {sub: []string{"stat", "record", "trace", "mem", "lock", "sched", "c2c", "kvm"},
		short: "eoprxCGIFDtMm", long: []string{"event", "output", "repeat", "interval-print", "freq", "delay", "cpu", "call-graph"}},
	"valgrind":  {},
	"sshpass":   {short: "pfdP"},
	"ssh":       {short: "BbcDEeFIiJLlmOoPpQRSWw", positional: 1, joined: true, remote: true, place: tool.PlaceElsewhere},
	"docker":    {sub: []string{"exec", "run"}, short: "euwvpmcahl", long: containerOptions, positional: 1, remote: true, place: tool.PlaceContainer},
	"podman":    {sub: []string{"exec", "run"}, short: "euwvpmcahl", long: containerOptions, positional: 1, remote: true, place: tool.PlaceContainer},
	"python":    {short: "WX"},
	"python2":   {short: "WX"},
	"python2.7": {short: "WX"},
	"python3":   {short: "WX"},
}

// elsewhere are programs that run commands on other machines.
var elsewhere = []string{
	"ssh", "mosh", "rsh", "pssh", "pdsh", "clush", "dsh", "parallel-ssh", "ansible", "salt", "kubectl", "oc", "k3s", "microk8s", "minikube", "nomad",
	"gcloud", "az", "aws", "vagrant", "multipass", "virsh", "srun", "mpirun", "mpiexec", "limactl",
}

// runsIn returns where a program that is not a known wrapper runs its command: elsewhere, or
// perhaps in a container.
func runsIn(program string) tool.Place {
	if slices.Contains(elsewhere, program) {
		return tool.PlaceElsewhere
	}
	return tool.PlaceContainer
}

var containerOptions = []string{
	"env", "env-file", "user", "workdir", "name", "network", "net", "volume", "mount", "publish", "entrypoint",
	"cpus", "cpuset-cpus", "memory", "hostname", "label", "link", "add-host", "ulimit", "platform", "detach-keys",
}

// shells run the text after -c, or a script.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "ash": true, "ksh": true, "mksh": true, "zsh": true}

// skip returns the index of the first word of the command that a wrapper or shell (words[0])
// starts, or the index of its shell text. Both are 0 if it starts nothing.
func (w wrapper) skip(words []string) (command, text int) {
	name := base(words[0])
	if shells[name] {
		return shellText(words)
	}
	if _, wraps := wrappers[name]; !wraps {
		return 0, 0
	}
	i := 1
	if len(w.sub) > 0 {
		if i >= len(words) || !slices.Contains(w.sub, words[i]) {
			return 0, 0
		}
		i++
	}
	left, options := w.positional, true
	for i < len(words) {
		v := words[i]
		switch {
		case options && v == "--":
			options = false
			i++
		case w.shell && (v == "-c" || v == "--command") && i+1 < len(words):
			return 0, i + 1
		case options && v == "-":
			i++
		case options && strings.HasPrefix(v, "-"):
			i += w.option(v)
		case w.assignments && isAssignment(v):
			i++
		case left > 0:
			left, options = left-1, (w.shell || w.joined) && options
			i++
		case strings.HasPrefix(v, expansion) && i+1 < len(words):
			i++ // perhaps options in a variable
		case w.shell && i+2 < len(words) && words[i+1] == "-c":
			return 0, i + 2 // su USER -c TEXT
		default:
			return i, 0
		}
	}
	return 0, 0
}

// option returns the number of words that option v occupies.
func (w wrapper) option(v string) int {
	if name, long := strings.CutPrefix(v, "--"); long {
		if slices.Contains(w.long, name) {
			return 2
		}
		return 1
	}
	for j := 1; j < len(v); j++ {
		if strings.IndexByte(w.short, v[j]) >= 0 {
			if j == len(v)-1 {
				return 2
			}
			return 1
		}
	}
	return 1
}

// shellText returns the index of the script that a shell, words[0], runs, or the index of the text
// after -c. Both are 0 if there is neither.
func shellText(words []string) (script, text int) {
	command := false
	for i := 1; i < len(words); i++ {
		v := words[i]
		switch {
		case v == "--" || v == "-":
			if i++; i == len(words) {
				return 0, 0
			}
			if command {
				return 0, i
			}
			return i, 0
		case strings.HasPrefix(v, "--"):
			if v == "--rcfile" || v == "--init-file" {
				i++
			}
		case len(v) > 1 && (v[0] == '-' || v[0] == '+'):
			command = command || v[0] == '-' && strings.Contains(v, "c")
			if last := v[len(v)-1]; last == 'o' || last == 'O' {
				i++
			}
		case command:
			return 0, i
		default:
			return i, 0
		}
	}
	return 0, 0
}

// isAssignment reports whether v is NAME=value.
func isAssignment(v string) bool {
	name, _, found := strings.Cut(v, "=")
	return found && scan.Only(name, scan.Small+scan.Capital+scan.Digits+"_") && !scan.Only(name[:1], scan.Digits)
}

// base returns a program's name without the folder.
func base(program string) string {
	if program == "" {
		return ""
	}
	return path.Base(program)
}
