package dashboards

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/tests/rules"
)

// Known returns all metric names that the agent or an exporter exposes, with the labels of
// the agent's metrics, and nil for the others.
func Known(root string) (map[string][]string, error) {
	known := map[string][]string{}
	if err := agentMetrics(filepath.Join(root, "docs/reference/metrics.md"), known); err != nil {
		return nil, err
	}
	lists, err := filepath.Glob(filepath.Join(root, "tests/metrics/*.txt"))
	if err != nil {
		return nil, fmt.Errorf("list metric names: %w", err)
	}
	for _, list := range lists {
		if err := namesIn(list, known); err != nil {
			return nil, err
		}
	}
	return known, recorded(root, known)
}

var documented = regexp.MustCompile("^\\| `([a-z_:]+)` \\| (gauge|counter|untyped|histogram) \\| ([^|]*) \\|")

// agentMetrics reads the table that is generated from the agent's code.
func agentMetrics(path string, known map[string][]string) error {
	return eachLine(path, func(line string) {
		row := documented.FindStringSubmatch(line)
		if row == nil {
			return
		}
		names := []string{"job", "instance"}
		for label := range strings.SplitSeq(row[3], ",") {
			if label = strings.TrimSpace(label); label != "" {
				names = append(names, label)
			}
		}
		if row[2] != "histogram" {
			known[row[1]] = names
			return
		}
		known[row[1]+"_bucket"] = append(slices.Clip(names), "le")
		known[row[1]+"_count"], known[row[1]+"_sum"] = names, names
	})
}

func namesIn(path string, known map[string][]string) error {
	return eachLine(path, func(line string) {
		if line != "" && !strings.HasPrefix(line, "#") {
			if _, ok := known[line]; !ok {
				known[line] = nil
			}
		}
	})
}

// recorded adds the names of recording rules.
func recorded(root string, known map[string][]string) error {
	all, err := rules.All(root)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Record != "" {
			known[r.Record] = nil
		}
	}
	return nil
}

func eachLine(path string, do func(string)) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing", path)
	} else if err != nil {
		return fmt.Errorf("read names: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		do(strings.TrimSpace(lines.Text()))
	}
	return lines.Err()
}
