package registry

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

// The recorded output of each tool is recognised as that tool's or, if it contains no report, as no
// tool's.
func TestSniff(t *testing.T) {
	for _, own := range Tools {
		// Each tool is a package with recorded output, named after the tool.
		files := recorded(t, filepath.Join("..", strings.ReplaceAll(own.Name, "-", ""), "testdata"))
		if len(files) == 0 {
			t.Errorf("%s: no recorded output", own.Name)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			stream := tool.Stdout
			if filepath.Base(file) == "stderr.txt" {
				stream = tool.Stderr
			}
			for _, size := range []int{4 << 10, 64 << 10} {
				got := Tools.Sniff(text[:min(len(text), size)])
				switch {
				case got == own:
				case got != nil:
					t.Errorf("%s: the first %d bytes are taken for %s", file, size, got.Name)
				case stream == tool.Stdout && len(tooltest.Parse(own, tooltest.Lines(stream, text)).Reports) > 0:
					t.Errorf("%s: the first %d bytes are not recognised", file, size)
				}
			}
		}
	}
}

// TestAllocations guards that reading an interval's lines allocates no memory, once the parser knows the names in them.
func TestAllocations(t *testing.T) {
	for _, own := range Tools {
		for _, file := range recorded(t, filepath.Join("..", strings.ReplaceAll(own.Name, "-", ""), "testdata")) {
			p, lines := own.NewParser(tool.Description{}), tooltest.Read(t, tool.Stdout, file)
			var last tool.Kind
			reports, intervals, allocations, pending := 0, 0, uint64(0), uint64(0)
			emit := func(r *tool.Report) { last, reports = r.Kind, reports+1 }
			for pass := range 5 { // the first learns the names; the runtime allocates, too, now and then
				if pass > 1 && allocations == 0 {
					break
				}
				intervals, allocations, pending = 0, 0, 0
				for _, l := range lines {
					var before, after runtime.MemStats
					previous := last
					reports = 0
					runtime.ReadMemStats(&before)
					verdict := p.Parse(l, emit)
					runtime.ReadMemStats(&after)
					if verdict == tool.Reported {
						pending += after.Mallocs - before.Mallocs
					}
					if reports == 1 && previous == tool.Interval && last == tool.Interval {
						intervals, allocations = intervals+1, allocations+pending
					}
					if reports > 0 {
						pending = 0
					}
				}
			}
			if allocations > uint64(intervals)/4 { // messages in between have some
				t.Errorf("%s: %d allocations for %d intervals", file, allocations, intervals)
			}
		}
	}
}

// recorded returns the files below root that contain a tool's output.
func recorded(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "fuzz" {
				return fs.SkipDir
			}
			return err
		}
		base := filepath.Base(path)
		if strings.HasSuffix(base, ".txt") && base != "golden.txt" && base != "cmd.txt" {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// No two tools share a name or a program.
func TestNames(t *testing.T) {
	names, programs := map[string]bool{}, map[string]string{}
	for _, known := range Tools {
		if names[known.Name] {
			t.Errorf("two tools are called %s", known.Name)
		}
		names[known.Name] = true
		for _, p := range known.Programs {
			if other, ok := programs[p]; ok {
				t.Errorf("%s starts %s and %s", p, other, known.Name)
			}
			programs[p] = known.Name
		}
	}
}
