//go:build e2e

package tutorials

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/need"
)

const root = "../.."

// step is a block of commands and what its output must show.
type step struct {
	commands string
	see      []*regexp.Regexp
}

var (
	block = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n")
	seen  = regexp.MustCompile(`(?m)^<!-- see: (.*) -->$`)
	// gate follows a block whose last command may exit with the status of a broken limit.
	gate = regexp.MustCompile(`(?m)^<!-- status: 0 or 3 -->$`)
)

// steps returns the blocks of a tutorial. What a reader sees comes after the block.
func steps(t *testing.T, text string) []step {
	t.Helper()
	var all []step
	blocks := block.FindAllStringSubmatchIndex(text, -1)
	for i, b := range blocks {
		end := len(text)
		if i+1 < len(blocks) {
			end = blocks[i+1][0]
		}
		s := step{commands: text[b[2]:b[3]]}
		for _, m := range seen.FindAllStringSubmatch(text[b[1]:end], -1) {
			s.see = append(s.see, regexp.MustCompile("(?m)"+m[1]))
		}
		if gate.MatchString(text[b[1]:end]) {
			s.commands = strings.TrimSuffix(s.commands, "\n") + " || test $? = 3\n"
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		t.Fatal("no commands")
	}
	return all
}

// programs is the folder with the two programs that tutorials use.
var programs string

func TestMain(m *testing.M) { os.Exit(withPrograms(m.Run)) }

// withPrograms builds the programs for the time of a call.
func withPrograms(run func() int) int {
	folder, err := os.MkdirTemp("", "tutorials-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	programs = folder
	for name, pkg := range map[string]string{"benchwatch": ".", "benchwatch-servers": "./internal/servers/cmd"} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(folder, name), pkg)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("build %s: %v\n%s", name, err, out))
		}
	}
	return run()
}

// TestTutorials runs all commands of each tutorial in one shell each, which ends with
// the first command that fails. They wait for their benchmarks most of the time, each on its own ports.
func TestTutorials(t *testing.T) {
	files, err := filepath.Glob(root + "/docs/tutorials/*.md")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	needs := map[string][]string{
		"galera-flow-control": {"sysbench", "mariadbd"}, "proxy": {"sysbench", "mariadbd", "haproxy"}, "ci-gate": {"sysbench"},
		"four-generators":    {"sysbench", "mariadbd", "sshd"},
		"synchronous-commit": {"pgbench", "mariadbd"}, "pooler": {"pgbench", "pgbouncer", "mariadbd"},
	}
	log, err := filepath.Abs(root + "/agent/model/tool/ycsb/testdata/0.17.0/mongodb-run-custom-t10-int1")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name == "README" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, program := range needs[name] {
				need.Program(t, program)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir, err := os.MkdirTemp("", "tutorial-")
			if err == nil {
				err = os.Chmod(dir, 0o711) // servers run as another user
			}
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			follow(t, dir, steps(t, string(text)), append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "LOG="+log, "TZ=UTC"))
		})
	}
}

// boundary separates the outputs of steps.
const boundary = "=== end of a step ==="

func follow(t *testing.T, dir string, all []step, env []string) {
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, s := range all {
		script.WriteString(s.commands + "echo '" + boundary + "'\n")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &out
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	defer func() { // a tutorial that failed leaves its servers
		if _, gone := os.Stat(filepath.Join(dir, "servers")); gone == nil && err != nil {
			stop := exec.Command("benchwatch-servers", "stop", "servers")
			stop.Dir, stop.Env = dir, env
			_ = stop.Run()
		}
	}()
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	outputs := strings.Split(out.String(), boundary)
	for i, s := range all {
		for _, want := range s.see {
			if !want.MatchString(outputs[i]) {
				t.Errorf("after\n%s\nno %q in\n%s", s.commands, want, outputs[i])
			}
		}
	}
}
