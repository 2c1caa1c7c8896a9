package commandline

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

// bench resembles real tools: options with =, a verb, one secret, a report interval that is off by
// default, a configuration file.
var bench = &tool.Tool{
	Name:     "bench",
	Programs: []string{"bench"},
	Describe: func(in tool.Invocation) tool.Description {
		d := tool.Description{Labels: map[string]string{}}
		interval := false
		for _, a := range in.Args {
			name, value, _ := strings.Cut(a, "=")
			switch name {
			case "--threads":
				d.Threads, _ = strconv.Atoi(value)
			case "--host":
				d.Target = value + ":3306"
			case "--password":
			case "--report-interval":
				interval = true
			case "--config":
				if data, err := in.ReadFile(value); err == nil {
					d.Labels["config"] = string(data)
				}
			case "run", "prepare":
				d.Command = name
			default:
				d.Workload = a
			}
		}
		if v := in.Getenv("MODE"); v != "" {
			d.Labels["mode"] = v
		}
		if d.Command == "run" && !interval {
			d.Insert = []tool.Insertion{{At: len(in.Args), Args: []string{"--report-interval=1"}}}
		}
		return d
	},
}

// javaBench is a Java class that follows java's own options.
var javaBench = &tool.Tool{
	Name:     "javabench",
	Programs: []string{"javabench"},
	MatchArgs: func(base string, args []string) bool {
		return base == "java" && slices.Contains(args, "site.bench.Client")
	},
	Describe: func(in tool.Invocation) tool.Description {
		at := slices.Index(in.Args, "site.bench.Client") + 1
		return tool.Description{
			Command: "run",
			Insert:  []tool.Insertion{{At: at, Args: []string{"-s", "-p", "status.interval=1"}}},
		}
	},
}

var testTools = []*tool.Tool{bench, javaBench}

func testEnv() Env {
	return Env{
		Getenv: func(string) string { return "" },
		ReadFile: func(name string) ([]byte, error) {
			switch name {
			case "bench.cfg", "x/bench.cfg", "/abs/bench.cfg":
				return []byte(name), nil
			}
			return nil, os.ErrNotExist
		},
	}
}

func TestReadFinds(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string // Start
	}{
		{"plain", []string{"bench", "oltp", "run"}, []string{"bench", "oltp", "run", "--report-interval=1"}},
		{"a path", []string{"/usr/local/bin/bench", "oltp", "run"}, []string{"/usr/local/bin/bench", "oltp", "run", "--report-interval=1"}},
		{"an explicit value", []string{"bench", "--report-interval=10", "run"}, nil},
		{"nothing to add", []string{"bench", "prepare"}, nil},

		{"env", []string{"env", "A=1", "bench", "run"}, []string{"env", "A=1", "bench", "run", "--report-interval=1"}},
		{"env -i", []string{"env", "-i", "A=1", "bench", "run"}, []string{"env", "-i", "A=1", "bench", "run", "--report-interval=1"}},
		{"env -u", []string{"env", "-u", "X", "--unset", "Y", "bench", "run"}, []string{"env", "-u", "X", "--unset", "Y", "bench", "run", "--report-interval=1"}},
		{"env --", []string{"/usr/bin/env", "--", "A=1", "bench", "run"}, []string{"/usr/bin/env", "--", "A=1", "bench", "run", "--report-interval=1"}},
		{"env -S", []string{"env", "-S", "A=1 bench run"}, []string{"env", "-S", "A=1 bench run --report-interval=1"}},
		{"env -S with more", []string{"env", "-S", "A=1 bench", "run"}, []string{"env", "-S", "A=1 bench", "run", "--report-interval=1"}},
		{"assignment", []string{"A=1", "bench", "run"}, []string{"A=1", "bench", "run", "--report-interval=1"}},

		{"numactl", []string{"numactl", "-N", "0", "--membind=0", "bench", "run"}, []string{"numactl", "-N", "0", "--membind=0", "bench", "run", "--report-interval=1"}},
		{"numactl, long with a blank", []string{"numactl", "--interleave", "all", "bench", "run"}, []string{"numactl", "--interleave", "all", "bench", "run", "--report-interval=1"}},
		{"nice", []string{"nice", "-n", "10", "bench", "run"}, []string{"nice", "-n", "10", "bench", "run", "--report-interval=1"}},
		{"nice, old form", []string{"nice", "-10", "bench", "run"}, []string{"nice", "-10", "bench", "run", "--report-interval=1"}},
		{"ionice", []string{"ionice", "-c2", "-n", "7", "bench", "run"}, []string{"ionice", "-c2", "-n", "7", "bench", "run", "--report-interval=1"}},
		{"timeout", []string{"timeout", "-k", "5", "--signal=INT", "60s", "bench", "run"}, []string{"timeout", "-k", "5", "--signal=INT", "60s", "bench", "run", "--report-interval=1"}},
		{"timeout, glued", []string{"timeout", "-sINT", "--foreground", "60", "bench", "run"}, []string{"timeout", "-sINT", "--foreground", "60", "bench", "run", "--report-interval=1"}},
		{"taskset", []string{"taskset", "-c", "0-3", "bench", "run"}, []string{"taskset", "-c", "0-3", "bench", "run", "--report-interval=1"}},
		{"taskset, mask", []string{"taskset", "0xff", "bench", "run"}, []string{"taskset", "0xff", "bench", "run", "--report-interval=1"}},
		{"chrt", []string{"chrt", "-f", "50", "bench", "run"}, []string{"chrt", "-f", "50", "bench", "run", "--report-interval=1"}},
		{"stdbuf", []string{"stdbuf", "-oL", "-e", "0", "bench", "run"}, []string{"stdbuf", "-oL", "-e", "0", "bench", "run", "--report-interval=1"}},
		{"time", []string{"/usr/bin/time", "-v", "-o", "x", "bench", "run"}, []string{"/usr/bin/time", "-v", "-o", "x", "bench", "run", "--report-interval=1"}},
		{"nohup and setsid", []string{"nohup", "setsid", "-w", "bench", "run"}, []string{"nohup", "setsid", "-w", "bench", "run", "--report-interval=1"}},
		{"sudo", []string{"sudo", "-E", "-u", "mysql", "A=1", "bench", "run"}, []string{"sudo", "-E", "-u", "mysql", "A=1", "bench", "run", "--report-interval=1"}},
		{"strace", []string{"strace", "-f", "-e", "trace=network", "-o", "x", "bench", "run"}, []string{"strace", "-f", "-e", "trace=network", "-o", "x", "bench", "run", "--report-interval=1"}},
		{"perf", []string{"perf", "stat", "-e", "cycles", "--", "bench", "run"}, []string{"perf", "stat", "-e", "cycles", "--", "bench", "run", "--report-interval=1"}},
		{"perf without --", []string{"perf", "record", "-g", "-F", "99", "bench", "run"}, []string{"perf", "record", "-g", "-F", "99", "bench", "run", "--report-interval=1"}},
		{"docker", []string{"docker", "exec", "-it", "-e", "A=1", "box", "bench", "run"}, []string{"docker", "exec", "-it", "-e", "A=1", "box", "bench", "run", "--report-interval=1"}},
		{"behind -- of an unknown program", []string{"kubectl", "exec", "pod", "--", "bench", "run"}, []string{"kubectl", "exec", "pod", "--", "bench", "run", "--report-interval=1"}},
		{"ssh", []string{"ssh", "-p", "22", "-i", "key", "me@db1", "bench", "run"}, []string{"ssh", "-p", "22", "-i", "key", "me@db1", "bench", "run", "--report-interval=1"}},
		{"ssh, shell text", []string{"ssh", "-t", "db1", "cd x && bench run | tee log"}, []string{"ssh", "-t", "db1", "cd x && bench run --report-interval=1 | tee log"}},
		{"ssh, wrappers", []string{"ssh", "db1", "sudo", "time", "bench", "run"}, []string{"ssh", "db1", "sudo", "time", "bench", "run", "--report-interval=1"}},
		{"ssh of sshpass", []string{"sshpass", "-e", "ssh", "db1", "bench run"}, []string{"sshpass", "-e", "ssh", "db1", "bench run --report-interval=1"}},
		{"many", []string{"sudo", "nice", "-n5", "numactl", "-m0", "timeout", "9", "bench", "run"}, []string{"sudo", "nice", "-n5", "numactl", "-m0", "timeout", "9", "bench", "run", "--report-interval=1"}},

		{"an interpreter", []string{"python2", "-u", "/opt/bin/bench", "run"}, []string{"python2", "-u", "/opt/bin/bench", "run", "--report-interval=1"}},
		{"a script of a shell", []string{"bash", "-x", "bin/bench.sh", "run"}, []string{"bash", "-x", "bin/bench.sh", "run", "--report-interval=1"}},
		{"by its arguments", []string{"java", "-cp", "a:b", "site.bench.Client", "-t"}, []string{"java", "-cp", "a:b", "site.bench.Client", "-s", "-p", "status.interval=1", "-t"}},

		{"shell", []string{"bash", "-c", "cd x && FOO=1 bench run | tee log"}, []string{"bash", "-c", "cd x && FOO=1 bench run --report-interval=1 | tee log"}},
		{"shell, options together", []string{"sh", "-lc", "bench  run"}, []string{"sh", "-lc", "bench  run --report-interval=1"}},
		{"shell, with -o", []string{"bash", "-o", "pipefail", "-ec", "bench run >log 2>&1"}, []string{"bash", "-o", "pipefail", "-ec", "bench run --report-interval=1 >log 2>&1"}},
		{"shell, comments and odd blanks", []string{"bash", "-c", "# first\n\tbench \\\n  'oltp' run # go\necho done"}, []string{"bash", "-c", "# first\n\tbench \\\n  'oltp' run --report-interval=1 # go\necho done"}},
		{"shell, several", []string{"bash", "-c", "bench prepare; bench run; bench --report-interval=5 run"}, []string{"bash", "-c", "bench prepare; bench run --report-interval=1; bench --report-interval=5 run"}},
		{"shell, loop", []string{"bash", "-c", "for t in 1 2; do bench --threads=$t run; done"}, []string{"bash", "-c", "for t in 1 2; do bench --threads=$t run --report-interval=1; done"}},
		{"shell, time", []string{"bash", "-c", "time bench run"}, []string{"bash", "-c", "time bench run --report-interval=1"}},
		{"shell, wrappers", []string{"bash", "-c", "exec nice timeout 5 bench run"}, []string{"bash", "-c", "exec nice timeout 5 bench run --report-interval=1"}},
		{"shell, options in a variable", []string{"bash", "-c", "bench $OPTS run"}, nil},
		{"shell, all arguments", []string{"bash", "-c", `bench "$@"`, "bench", "run"}, nil},
		{"nested", []string{"bash", "-c", `sudo sh -c 'cd y; bench run' && echo`}, []string{"bash", "-c", `sudo sh -c 'cd y; bench run --report-interval=1' && echo`}},
		{"nested, double quotes", []string{"bash", "-c", `sh -c "bench run"`}, []string{"bash", "-c", `sh -c "bench run --report-interval=1"`}},
		{"nested, escaped", []string{"bash", "-c", `sh -c bench\ run`}, []string{"bash", "-c", `sh -c 'bench run --report-interval=1'`}},
		{"su", []string{"su", "-", "mysql", "-c", "bench run"}, []string{"su", "-", "mysql", "-c", "bench run --report-interval=1"}},
		{"java in a shell", []string{"bash", "-c", "java site.bench.Client -t"}, []string{"bash", "-c", "java site.bench.Client -s -p status.interval=1 -t"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == nil {
				tt.want = tt.args
			}
			c := Read(tt.args, testTools, testEnv())
			if c.Tool == nil {
				t.Fatalf("no tool found in %q", tt.args)
			}
			if diff := cmp.Diff(tt.want, c.Start); diff != "" {
				t.Errorf("Start (-want +got):\n%s", diff)
			}
			if added := !slices.Equal(c.Start, tt.args); added != (len(c.Added) > 0) {
				t.Errorf("Added = %q for %q", c.Added, c.Start)
			}
			env := testEnv()
			env.NoInject = true
			if c := Read(tt.args, testTools, env); !slices.Equal(c.Start, tt.args) || c.Added != nil {
				t.Errorf("without insertions: Start = %q, Added = %q", c.Start, c.Added)
			}
		})
	}
}

func TestReadFindsNothing(t *testing.T) {
	tests := [][]string{
		nil,
		{""},
		{"pgbench", "-c", "4", "bench"},
		{"timeout"},
		{"timeout", "5"},
		{"env"},
		{"env", "-S"},
		{"env", "-S", "bench; run"},
		{"bash", "-c"},
		{"bash", "-c", "bench run ("},
		{"bash", "-c", "echo bench run"},
		{"bash", "run.sh"},
		{"bash"},
		{"sudo", "-u"},
		{"perf", "list"},
		{"ionice", "-p", "17"},
		{"benchwatch", "run"},
		{"x", "--"},
	}
	for _, args := range tests {
		c := Read(args, testTools, testEnv())
		if c.Tool != nil || len(c.Added) > 0 {
			t.Errorf("Read(%q) found %v, added %q", args, c.Tool, c.Added)
		}
		if !slices.Equal(c.Start, args) {
			t.Errorf("Read(%q).Start = %q", args, c.Start)
		}
	}
}

func TestReadDescribes(t *testing.T) {
	tests := []struct {
		name  string
		args  []string
		want  tool.Description
		title string
	}{
		{
			"all", []string{"bench", "oltp", "--threads=16", "--host=db1", "--config=bench.cfg", "run"},
			tool.Description{Command: "run", Workload: "oltp", Threads: 16, Target: "db1:3306", Labels: map[string]string{"config": "bench.cfg"}},
			"oltp 16 threads db1:3306",
		},
		{
			"the directory of the shell", []string{"bash", "-c", "cd x && bench --config=bench.cfg run"},
			tool.Description{Command: "run", Labels: map[string]string{"config": "x/bench.cfg"}}, "bench",
		},
		{
			"the directory of env", []string{"env", "-C", "x", "bench", "--config=bench.cfg", "run"},
			tool.Description{Command: "run", Labels: map[string]string{"config": "x/bench.cfg"}}, "bench",
		},
		{
			"a directory that is not known", []string{"bash", "-c", "cd $X && bench --config=bench.cfg --config=/abs/bench.cfg run"},
			tool.Description{Command: "run", Labels: map[string]string{"config": "/abs/bench.cfg"}}, "bench",
		},
		{
			"the environment of the command", []string{"env", "MODE=a", "bash", "-c", "MODE=b bench run"},
			tool.Description{Command: "run", Labels: map[string]string{"mode": "b"}}, "bench",
		},
		{
			"a variable that was exported", []string{"bash", "-c", "export MODE=c; bench run"},
			tool.Description{Command: "run", Labels: map[string]string{"mode": "c"}}, "bench",
		},
		{
			"what the shell expands is not known", []string{"bash", "-c", `bench --threads=$T --host="$H" oltp run`},
			tool.Description{Command: "run", Workload: "oltp", Labels: map[string]string{}}, "oltp",
		},
		{
			"the first one that reports", []string{"bash", "-c", "bench oltp prepare && bench oltp --threads=1 run"},
			tool.Description{Command: "run", Workload: "oltp", Threads: 1, Labels: map[string]string{}}, "oltp 1 thread",
		},
		{
			"another verb", []string{"bench", "oltp", "prepare"},
			tool.Description{Command: "prepare", Workload: "oltp", Labels: map[string]string{}}, "oltp prepare",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Read(tt.args, testTools, testEnv())
			got := c.Description
			got.Insert = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Description (-want +got):\n%s", diff)
			}
			if c.Title() != tt.title {
				t.Errorf("Title = %q, want %q", c.Title(), tt.title)
			}
		})
	}
	if c := Read([]string{"bash", "-c", "cd x; pgbench -c 4"}, testTools, testEnv()); c.Title() != "pgbench" {
		t.Errorf("Title of an unknown tool = %q", c.Title())
	}
}

func TestReadNotes(t *testing.T) {
	for _, script := range []string{"bench $OPTS run", "bench run --report-interval=1 > log", "{ bench run; } && bench run &> log"} {
		c := Read([]string{"bash", "-c", script}, testTools, testEnv())
		if script[0] == 'b' && len(c.Description.Notes) != 1 {
			t.Errorf("%s: Notes = %q", script, c.Description.Notes)
		}
	}
	if c := Read([]string{"bash", "-c", "bench run | tee log 2>/dev/null"}, testTools, testEnv()); len(c.Description.Notes) != 0 {
		t.Errorf("Notes = %q", c.Description.Notes)
	}
}

func TestOSReadFile(t *testing.T) {
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	for name, size := range map[string]int{small: 10, large: secret.MaxFile + 1} {
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := OS().ReadFile(small); err != nil || len(data) != 10 {
		t.Errorf("small file: %d bytes, %v", len(data), err)
	}
	if _, err := OS().ReadFile(large); err == nil {
		t.Error("a file over the limit was read")
	}
	if _, err := OS().ReadFile(dir); err == nil {
		t.Error("a folder was read")
	}
	if _, err := OS().ReadFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// For any command, Read does not panic, changes only what it reports, and blanks a secret in a
// known position.
func FuzzRead(f *testing.F) {
	f.Add("bench", "cd x && FOO=1 bench run | tee log", "hunter2")
	f.Add("timeout\x1f-k\x1f5\x1f60", "sh -c 'bench \"a b\" run'", "p'w")
	f.Add("env\x1f-S", "A=1 bench $X `y` $(z) run", "\\")
	f.Add("sudo\x1fbash\x1f-lc", "bench <<E\nE\nrun {a,b} $'x\\n'", "")
	f.Add("mysql\x1f-px", "export X=1; [[ a == b ]] || (bench run)", "é")
	f.Fuzz(func(t *testing.T, front, script, password string) {
		args := strings.Split(front, "\x1f")
		args = append(args, "bash", "-c", script)
		for _, command := range [][]string{
			args,
			strings.Split(script, " "),
			append(slices.Clone(args[:len(args)-3]), "bench", "--password="+password, "run"),
		} {
			if strings.Contains(strings.Join(command, ""), "\x00") {
				return // a process argument cannot contain it
			}
			env := testEnv()
			c := Read(command, testTools, env)
			if len(c.Added) == 0 && !slices.Equal(c.Start, command) {
				t.Errorf("nothing was added, but %q became %q", command, c.Start)
			}
			if len(c.Redacted) != len(command) {
				t.Errorf("%q was redacted to %q", command, c.Redacted)
			}
			for _, s := range c.Secrets {
				if len(s) < secret.MinWord || strings.Trim(s, "*") == "" {
					continue
				}
				for _, r := range c.Redacted {
					if secret.New(s).Text(r) != r {
						t.Errorf("%q survives in %q", s, r)
					}
				}
			}
			env.NoInject = true
			if c := Read(command, testTools, env); !slices.Equal(c.Start, command) {
				t.Errorf("%q became %q", command, c.Start)
			}
		}
	})
}

// TestPlace guards that Read knows whether localhost is this machine.
func TestPlace(t *testing.T) {
	tests := map[string]tool.Place{
		"bench run":                               tool.PlaceHere,
		"numactl -N 0 sudo -u x bench run":        tool.PlaceHere,
		"chroot /srv bench run":                   tool.PlaceHere,
		"docker exec -it db bench run":            tool.PlaceContainer,
		"podman run --rm image bench run":         tool.PlaceContainer,
		"sudo docker exec db bash -c 'bench run'": tool.PlaceContainer,
		"lxc exec db -- bench run":                tool.PlaceContainer,
		"kubectl exec pod -- bench run":           tool.PlaceElsewhere,
		"ssh load2 -- bench run":                  tool.PlaceElsewhere,
		"ssh load2 bench run":                     tool.PlaceElsewhere,
		"ssh load2 -- docker exec db bench run":   tool.PlaceElsewhere,
		"bash -c 'ssh load2 -- bench run'":        tool.PlaceElsewhere,
		"bash -c 'ssh db restart; bench run'":     tool.PlaceHere,
		"bash -c 'docker start db && bench run'":  tool.PlaceHere,
		"./unknown run":                           tool.PlaceHere,
	}
	for command, want := range tests {
		args := strings.Fields(command)
		if before, text, ok := strings.Cut(command, "'"); ok {
			args = append(strings.Fields(before), strings.TrimSuffix(text, "'"))
		}
		if got := Read(args, []*tool.Tool{bench}, Env{}).Place; got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
