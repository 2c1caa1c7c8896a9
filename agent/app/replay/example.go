package replay

import (
	"embed"
	"fmt"
	"io/fs"
	"os"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// example is a run of sysbench on a Galera cluster of three MariaDB servers, of which
// one becomes slow, and later another one that may lag.
//
//go:embed example
var example embed.FS

// ExampleID is the id of the run that every binary has.
const ExampleID = "galera-slow-node"

// Example writes the run that every binary has into a data directory.
func Example(dataDir string) (rundir.Directory, error) {
	dir := rundir.At(dataDir, ExampleID)
	files, err := fs.Sub(example, "example")
	if err == nil {
		err = os.CopyFS(string(dir), files)
	}
	if err != nil {
		return "", fmt.Errorf("write the example: %w", err)
	}
	return dir, nil
}
