package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"benchwatch": func() { os.Exit(Main(os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) },
	})
}

// TestScript runs the command line as a user does. The first lines of a script describe what it guards. With -update,
// the files that `cmp` expects are rewritten.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_DATA_HOME", env.WorkDir+"/share")
			env.Setenv("TZ", "UTC")
			gate, err := os.ReadFile("../../../docs/ci/gate.sh")
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(env.WorkDir, "gate.sh"), gate, 0o644); err != nil {
				return err
			}
			return os.CopyFS(filepath.Join(env.WorkDir, "data-0.1"), os.DirFS("testdata/0.1"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"record": transcribe, "conforms": conformScript},
	})
}

// transcribe runs a command and appends the command line, its output, its messages
// after "2> " and an exit status other than 0 to the file transcript.
func transcribe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: record program [arguments…]")
	}
	status := 0
	if err := ts.Exec(args[0], args[1:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		status = exit.ExitCode()
	}
	var b strings.Builder
	b.WriteString("$")
	for _, a := range args {
		if strings.ContainsAny(a, " '\"<>|*") || a == "" {
			a = "'" + a + "'"
		}
		b.WriteString(" " + a)
	}
	b.WriteString("\n" + ts.ReadFile("stdout"))
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		b.WriteString("2> " + line)
	}
	if status != 0 {
		fmt.Fprintf(&b, "[exit %d]\n", status)
	}
	path := ts.MkAbs("transcript")
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		ts.Fatalf("%v", err)
	}
	ts.Check(os.WriteFile(path, append(before, strings.ReplaceAll(b.String(), ts.Getenv("WORK"), "$WORK")...), 0o644))
}
