// Package need skips tests whose programs are not installed.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Program skips the test if a program is missing. On continuous integration (CI is set),
// where everything is installed, a missing program is a failure.
func Program(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	if err == nil {
		return
	}
	if _, e := exec.LookPath("/usr/sbin/" + name); e == nil { // a daemon; PATH may lack its folder
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}
