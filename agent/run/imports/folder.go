// Package imports reads the files that people keep beside a benchmark's log: the output of vmstat,
// iostat, mpstat and dstat on the machine, and dumps of a server's status and variables. Only the
// import of logs uses it.
package imports

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Folder is the files of a folder that can belong to a log, by name. It is listed once for all logs
// in it.
type Folder struct {
	names names
	// machine is indexed by program and by the words that the name shares with a log's; dumps only
	// by these words.
	machine map[string]MachineLog
	dumps   map[string][]dump
}

// List lists a folder. A log's name may contain the name of one of these tools.
func List(folder string, tools tool.Set) (*Folder, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for files beside logs: %w", err)
	}
	f := &Folder{names: namesOf(tools), machine: map[string]MachineLog{}, dumps: map[string][]dump{}}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if !e.Type().IsRegular() {
			continue
		}
		words := f.names.words(e.Name())
		for _, program := range programs {
			if i := slices.Index(words, program.name); i >= 0 {
				key := machineKey(program.name, slices.Delete(slices.Clone(words), i, i+1))
				if other, known := f.machine[key]; !known || size(path) > size(other.Path) { // the larger one has more facts
					f.machine[key] = MachineLog{program.name, path}
				}
			}
		}
		if own, d, ok := dumpNamed(path, words); ok {
			name := strings.Join(own, " ")
			f.dumps[name] = append(f.dumps[name], d)
		}
	}
	return f, nil
}

// size returns the size of a file; 0 if it is unknown.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func machineKey(program string, words []string) string {
	return program + " " + strings.Join(words, " ")
}

// MachineLogs returns the machine logs for the folder's benchmark log called name. Their names
// differ only in the program: run-8.vmstat.txt beside run-8.sysbench.txt or run-8.log. alone: the
// folder has no other benchmark log, so vmstat.txt also belongs to it.
func (f *Folder) MachineLogs(name string, alone bool) (found []MachineLog) {
	own := f.names.words(name)
	for _, program := range programs {
		log, known := f.machine[machineKey(program.name, own)]
		if len(own) == 0 || !known {
			log, known = f.machine[machineKey(program.name, nil)]
			known = known && alone
		}
		if known {
			found = append(found, log)
		}
	}
	return found
}

// IsBeside reports whether a file belongs to a benchmark's log without being one: by its name, and
// for a dump also by its first lines.
func IsBeside(path string) bool {
	words := names{}.words(filepath.Base(path))
	return slices.ContainsFunc(programs, func(p program) bool { return slices.Contains(words, p.name) }) || isDump(path, words)
}

// names are the names of tools as words of a file's name, the longest first.
type names [][]string

// namesOf returns the names of tools and of their programs: go-tpc as go-tpc, gotpc; tpcc-mysql
// also as tpcc.
func namesOf(tools tool.Set) (all names) {
	for _, t := range tools {
		for _, name := range append([]string{t.Name}, t.Programs...) {
			words := split(name)
			all = append(all, words, []string{strings.Join(words, "")})
			if len(words) > 1 && len(words[0]) > 2 {
				all = append(all, words[:1])
			}
		}
	}
	slices.SortStableFunc(all, func(a, b []string) int { return len(b) - len(a) })
	return all
}

func split(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("._- ", r) })
}

// kindWords are words in file names that say what kind of file it is.
var kindWords = []string{"txt", "log", "csv", "dat", "out", "stdout", "output", "res", "result", "results"}

// words returns the words of a file's name except for those that name the kind of file or the tool.
func (n names) words(file string) []string {
	words := slices.DeleteFunc(split(file), func(w string) bool {
		return slices.Contains(kindWords, w)
	})
	for _, name := range n {
		for i := 0; i+len(name) <= len(words); i++ {
			if slices.Equal(words[i:i+len(name)], name) {
				words = slices.Delete(words, i, i+len(name))
			}
		}
	}
	return words
}
