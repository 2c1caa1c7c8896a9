package registry_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchwatch/benchwatch/agent/app/cli"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest/turbine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
)

func TestMain(m *testing.M) {
	registry.Engines = append(registry.Engines, turbine.Engine) // the one line
	testscript.Main(m, map[string]func(){
		"benchwatch": func() { os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) },
	})
}

// A new engine takes one package and one line of the registry.
func TestNewEngine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Setenv("ADDR", l.Addr().String())
			env.Setenv("XDG_DATA_HOME", env.WorkDir+"/share")
			return l.Close()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fetch": fetch},
	})
}

// fetch waits until the answer of a URL matches a regular expression. {last} in
// the URL is the newest run.
func fetch(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: fetch URL REGEXP")
	}
	want := regexp.MustCompile(args[1])
	url, body := args[0], ""
	if strings.Contains(url, "{last}") {
		runs, err := os.ReadDir(ts.MkAbs("data/runs"))
		if err != nil || len(runs) == 0 {
			ts.Fatalf("no runs: %v", err)
		}
		url = strings.ReplaceAll(url, "{last}", runs[len(runs)-1].Name())
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); !want.MatchString(body); {
		select {
		case <-tick.C:
			body = get(url)
		case <-deadline:
			ts.Fatalf("%s does not match %s:\n%s", url, want, body)
		}
	}
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%s\n%s%v", resp.Status, body, err)
}
