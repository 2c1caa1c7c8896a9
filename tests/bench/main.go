// Command bench measures what observing costs, each figure beside what it is compared
// with, in the same run on the same machine. scripts/bench.sh prepares servers for it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// bench is what all measurements share.
type bench struct {
	root    string // of the repository
	binary  string
	servers string // a folder of scripts/mariadb.sh with three servers
	port    int    // server N listens on port+N
	dir     string // for what is made
	rounds  int
	seconds int // of each round

	figures []figure
}

// figure is one line of the result.
type figure struct {
	what     string
	ours     string
	with     string // what it is compared with
	theirs   string
	ratio    string
	intended string // DESIGN.md's budget
}

func (b *bench) add(f figure) {
	b.figures = append(b.figures, f)
	fmt.Fprintf(os.Stderr, "%s: %s\n", f.what, f.ours)
}

// measurements by name, in the order of the result.
var measurements = []struct {
	name string
	run  func(*bench) error
}{
	{"parse", (*bench).parse},
	{"backfill", (*bench).backfill},
	{"latency", (*bench).latency},
	{"scrape", (*bench).scrape},
	{"resources", (*bench).resources},
	{"many", (*bench).manyTargets},
	{"rounds", (*bench).alternate},
}

func main() {
	// The program starts itself to measure parsing alone.
	if len(os.Args) == 4 && os.Args[1] == "parse-only" {
		_, err := readThrough(os.Args[2], os.Args[3])
		exit(err)
	}
	var b bench
	only := flag.String("only", "", "measurements to run, comma-separated; default: all")
	flag.StringVar(&b.root, "root", ".", "the repository")
	flag.StringVar(&b.binary, "binary", "./benchwatch", "the benchwatch to measure")
	flag.StringVar(&b.servers, "servers", "", "folder of scripts/mariadb.sh")
	flag.IntVar(&b.port, "port", 0, "its base port")
	flag.IntVar(&b.rounds, "rounds", 5, "pairs of sysbench runs")
	flag.IntVar(&b.seconds, "seconds", 10, "length of a sysbench run")
	flag.Parse()
	exit(b.run(*only))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b *bench) run(only string) (err error) {
	for _, path := range []*string{&b.root, &b.binary, &b.servers} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp("", "benchwatch-bench."); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	for _, m := range measurements {
		if only != "" && !strings.Contains(","+only+",", ","+m.name+",") {
			continue
		}
		if err := m.run(b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	b.print()
	return nil
}

func (b *bench) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIGURE\tBENCHWATCH\tBUDGET\tCOMPARED WITH\tTHAT\tRATIO")
	for _, f := range b.figures {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", f.what, f.ours, or(f.intended), or(f.with), or(f.theirs), or(f.ratio))
	}
	w.Flush()
}

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ratio of ours to theirs.
func ratio(ours, theirs float64) string {
	if theirs == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", ours/theirs)
}
