package imports

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
)

// Server is the information about one server in dumps.
type Server struct {
	// Paths are the files that had some.
	Paths []string
	// Name of its machine; "server" if unknown.
	Name string
	// Version, Flavour and Settings are known if variables were dumped.
	Version, Flavour string
	Settings         engine.Settings
	// Before and After are counters around the run; nil without comparable ones.
	Before, After *engine.Status
	// Problem is why existing counters are left out.
	Problem string
}

// kinds are words that mark a file name as a dump, first and last those for its place in the sequence.
var (
	kinds = []string{"status", "variables", "vars"}
	first = []string{"before", "begin", "start", "pre"}
	last  = []string{"after", "end", "post"}
)

// noise are the other words that engines know in the names of dumps.
var noise = sync.OnceValue(func() (all []string) {
	for _, e := range registry.Engines {
		if e.Dumps != nil {
			all = append(all, e.Dumps.Words...)
		}
	}
	return all
})

// maxDump is more than thousands of snapshots, maxHead more than one, in bytes.
const maxDump, maxHead = 128 << 20, 1 << 20

// dump is a file, described by its name.
type dump struct {
	path string
	// moment is 0 before the run, 2 after it, otherwise 1; number orders several in between.
	moment, number int
	// settings: it is named as a dump of variables.
	settings bool
	// shared: it belongs to several logs, so only its variables are used.
	shared bool
}

// dumpNamed splits the words of a file name into those of a log's name and the rest. ok is false if
// it is not the name of a dump.
func dumpNamed(path string, words []string) (own []string, d dump, ok bool) {
	d = dump{path: path, moment: 1}
	numbered := false // the previous word can have a number: status.2
	for _, word := range words {
		n, err := strconv.Atoi(word)
		after := numbered
		numbered = slices.Contains(kinds, word)
		switch {
		case numbered:
			ok, d.settings = true, d.settings || word != "status"
		case slices.Contains(noise(), word):
		case slices.Contains(first, word):
			d.moment = 0
		case slices.Contains(last, word):
			d.moment = 2
		case after && err == nil:
			d.number = n
		default:
			own = append(own, word)
		}
	}
	return own, d, ok
}

// isDump reports whether a file is a dump, by its name and its first lines.
func isDump(path string, words []string) bool {
	if _, _, ok := dumpNamed(path, words); !ok {
		return false
	}
	found := false
	_ = read(path, maxHead, func(*engine.Dumps, engine.Snapshot) bool {
		found = true
		return false
	})
	return found
}

// Server returns the contents of the dumps that belong to a log of the folder; nil without dumps:
// run-8.status.before.txt, run-8.status.after.txt and run-8.variables.txt for run-8.log. alone: the
// folder has no other benchmark log, so status.before.txt belongs to it. Variables can belong to
// several logs that share a prefix: Tier12G.vars.txt for Tier12G_RW_16th.log.
func (f *Folder) Server(name string, alone bool) (*Server, error) {
	want := slices.DeleteFunc(f.names.words(name), func(w string) bool { return slices.Contains(noise(), w) })
	var files []dump
	if len(want) > 0 {
		files = append(files, f.dumps[strings.Join(want, " ")]...)
	}
	if alone {
		files = append(files, f.dumps[""]...)
	}
	files = slices.DeleteFunc(files, func(d dump) bool { return filepath.Base(d.path) == name })
	slices.SortStableFunc(files, func(a, b dump) int { return cmp.Or(a.moment-b.moment, a.number-b.number) })
	for n := len(want) - 1; n > 0; n-- {
		shared := f.dumps[strings.Join(want[:n], " ")]
		if i := slices.IndexFunc(shared, func(d dump) bool { return d.settings && filepath.Base(d.path) != name }); i >= 0 {
			closest := shared[i]
			closest.shared = true
			files = append(files, closest) // last: the log's own variables take precedence
			break
		}
	}
	return readAll(files)
}

// readAll uses the first variables, and the first and the last status.
func readAll(files []dump) (*Server, error) {
	var settings, before, after engine.Snapshot
	var dumps *engine.Dumps
	s := &Server{Name: "server"}
	for _, f := range files {
		used := false
		err := read(f.path, maxDump, func(d *engine.Dumps, v engine.Snapshot) bool {
			switch {
			case dumps != nil && d != dumps: // of another engine's server
			case v.Counters && f.shared:
			case !v.Counters && settings.Values == nil:
				dumps, settings, used = d, v, true
			case v.Counters && before.Values == nil:
				dumps, before, used = d, v, true
			case v.Counters:
				after, used = v, true
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		if used {
			s.Paths = append(s.Paths, f.path)
		}
	}
	if len(s.Paths) == 0 {
		return nil, nil
	}
	return s, s.decode(dumps, settings, before, after)
}

// decode fills s from the snapshots of a server.
func (s *Server) decode(d *engine.Dumps, settings, before, after engine.Snapshot) error {
	from, known, err := d.Decode(settings, before)
	if err != nil {
		return err
	}
	if settings.Values != nil {
		s.Version, s.Flavour, s.Settings = from.Version, from.Flavour, known
		s.Name = cmp.Or(from.Nodename, s.Name)
	}
	if before.Values == nil {
		return nil
	}
	if after.Values == nil {
		s.Problem = "there is only one status: differences need one from before and one from after the run"
		return nil
	}
	to, _, err := d.Decode(settings, after)
	if err != nil {
		return err
	}
	if to.Uptime < from.Uptime {
		s.Problem = "the uptime of the last status is less than that of the first: " +
			"the server was restarted between them, or they are the wrong way round or differences already (mysqladmin -r)"
		return nil
	}
	s.Before, s.After = from, to
	return nil
}

// read calls visit for each snapshot in a file, until visit returns false. It reads at most limit bytes.
func read(path string, limit int64, visit func(*engine.Dumps, engine.Snapshot) bool) error {
	for _, e := range registry.Engines {
		if e.Dumps == nil {
			continue
		}
		in, err := follow.OpenFile(path)
		if err != nil {
			return fmt.Errorf("read dump: %w", err)
		}
		found := false
		err = e.Dumps.Read(io.LimitReader(in, limit), func(snapshot engine.Snapshot) bool {
			found = true
			return visit(e.Dumps, snapshot)
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("read dump: %w", err)
		}
		if found {
			return nil
		}
	}
	return nil
}
