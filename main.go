// benchwatch follows database benchmark runs and the databases under them, and
// exposes both to Prometheus.
package main

import (
	"os"

	"github.com/benchwatch/benchwatch/agent/app/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
