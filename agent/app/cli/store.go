package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// store is the data directory of a command that reads runs, and the tools that
// wrote them.
type store struct {
	dataFlags
	archived *archived // nil: the command can't read an archive

	// From the configuration, set by load.
	config     *config.Config
	dataDir    string
	tools      tool.Set
	prometheus string // URL; empty: none
}

func addStore(cmd command) *store {
	s := &store{}
	s.dataFlags.declare(cmd)
	return s
}

// addReadingStore is addStore for a command that can also read an archive.
func addReadingStore(cmd command) *store {
	s := addStore(cmd)
	s.archived = addArchive(cmd)
	return s
}

// load reads the configuration. The data directory need not exist.
func (s *store) load() error {
	c, err := s.dataFlags.load()
	if err != nil {
		return err
	}
	s.config = c
	s.dataDir, s.tools, s.prometheus = c.DataDir, c.ToolSet(), c.Prometheus.URL
	return nil
}

// open reads the configuration. The data directory must exist.
func (s *store) open() error {
	if err := s.load(); err != nil {
		return err
	}
	return s.exists()
}

// openToRead reads the configuration and opens the data directory, which must exist,
// or the archive.
func (s *store) openToRead(streams Streams) error {
	if !s.archived.is() {
		return s.open()
	}
	return s.loadToRead(streams)
}

// loadToRead is openToRead for a command that may need no runs: the data directory need
// not exist.
func (s *store) loadToRead(streams Streams) error {
	if err := s.load(); err != nil {
		return err
	}
	return s.openRuns(streams)
}

// exists checks that the data directory that --data-dir or the environment names exists. Any other one appears with its
// first run.
func (s *store) exists() error {
	info, err := os.Stat(s.dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.dataDirFlag == "" && s.dataDir != os.Getenv(rundir.DataDirVariable): // nothing was recorded yet
	case errors.Is(err, fs.ErrNotExist):
		return withHint(fmt.Errorf("data directory %s does not exist", s.dataDir), "the first benchwatch run creates it; "+hintDataDir)
	case err != nil:
		return fmt.Errorf("data directory: %w", err)
	case !info.IsDir():
		return withHint(fmt.Errorf("data directory %s is not a directory", s.dataDir), hintDataDir)
	}
	return nil
}

// noRuns is the error for a data directory without a run.
func (s *store) noRuns() error {
	return withHint(errors.New(noRunsYet(s.dataDir)), hintFirstRun)
}

// noRunsYet says that there is no run, and hintFirstRun how to make one.
func noRunsYet(where string) string { return "no runs yet in " + where }

const hintFirstRun = "benchwatch run sysbench … run records one, benchwatch replay shows an example"

// lastRun is the name of the newest run.
const lastRun = "last"

// recent reads the name of a run by its age: last is the newest one, 0, and last~1 the run before it, 1.
func recent(name string) (age int, ok bool) {
	rest, ok := strings.CutPrefix(name, lastRun)
	if rest == "" {
		return 0, ok
	}
	number, tilde := strings.CutPrefix(rest, "~")
	age, err := strconv.Atoi(number)
	return age, ok && tilde && err == nil && age >= 0
}

// findRun returns the run called name: an id, the beginning of exactly one id,
// the path of a run directory (anything with a separator), "last" or "last~1".
func (s *store) findRun(name string) (rundir.Directory, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		dir := rundir.Directory(filepath.Clean(name))
		if _, err := os.Stat(dir.Path(rundir.MetaFile)); err != nil {
			hint := "a run directory contains a run.json"
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				hint = "benchwatch runs import creates a run from a log"
			}
			return "", withHint(fmt.Errorf("no run in %s", name), hint)
		}
		return dir, nil
	}
	if s.archived.is() {
		return s.archived.findRun(name)
	}
	if err := s.exists(); err != nil {
		return "", err
	}
	ids, err := rundir.List(s.dataDir)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", s.noRuns()
	}
	if age, ok := recent(name); ok {
		return s.newest(ids, age)
	}
	if slices.Contains(ids, name) {
		return rundir.At(s.dataDir, name), nil
	}
	var begin []string
	for _, id := range ids {
		if name != "" && strings.HasPrefix(id, name) {
			begin = append(begin, id)
		}
	}
	switch len(begin) {
	case 0:
		hint := "list the runs with benchwatch runs"
		if meant := nearest(name, append(ids, lastRun)); meant != "" {
			hint = "did you mean " + meant + "?"
		}
		return "", withHint(fmt.Errorf("no run %s in %s", name, s.dataDir), hint)
	case 1:
		return rundir.At(s.dataDir, begin[0]), nil
	default:
		return "", withHint(fmt.Errorf("%d runs begin with %s", len(begin), name),
			"use more of the id; the first two are "+begin[0]+" and "+begin[1])
	}
}

// metas returns the facts of all runs that can be read.
func (s *store) metas() []rundir.Meta {
	if s.archived.is() {
		return s.archived.metas()
	}
	ids, _ := rundir.List(s.dataDir)
	var all []rundir.Meta
	for _, id := range ids {
		if m, err := rundir.At(s.dataDir, id).Load(); err == nil {
			all = append(all, m)
		}
	}
	return all
}

// selectRuns returns the runs that the filters select. It skips damaged runs.
func (s *store) selectRuns(streams Streams, wanted func(*rundir.Meta) bool) ([]rundir.Directory, error) {
	if s.archived.is() {
		return s.archived.selectRuns(wanted)
	}
	if err := s.exists(); err != nil {
		return nil, err
	}
	ids, err := rundir.List(s.dataDir)
	if err != nil {
		return nil, err
	}
	var dirs []rundir.Directory
	for _, id := range ids {
		meta, err := rundir.At(s.dataDir, id).Load()
		if err != nil {
			streams.notice("skipped: %v", err)
			continue
		}
		if wanted(&meta) {
			dirs = append(dirs, rundir.At(s.dataDir, id))
		}
	}
	return dirs, nil
}

// newest returns the run that started last or, with an age, before the age newest ones. Ids that users chose do not
// sort by time, so it reads all runs.
func (s *store) newest(ids []string, age int) (rundir.Directory, error) {
	var runs []rundir.Meta
	var problem error
	for _, id := range ids {
		meta, err := rundir.At(s.dataDir, id).Load()
		if err != nil {
			problem = err
			continue
		}
		runs = append(runs, meta)
	}
	if len(runs) == 0 {
		return "", problem
	}
	if age >= len(runs) {
		return "", tooFew(len(runs), age, s.dataDir)
	}
	slices.SortStableFunc(runs, func(a, b rundir.Meta) int { return b.StartedAt.Compare(a.StartedAt) })
	return rundir.At(s.dataDir, runs[age].ID), nil
}

// tooFew is the error for last~N if there are not as many runs.
func tooFew(runs, age int, where string) error {
	return withHint(fmt.Errorf("no run %s~%d: %s in %s", lastRun, age, table.Plural(runs, "run"), where),
		"list the runs with benchwatch runs")
}

// findRuns returns the runs with these names, each once.
func (s *store) findRuns(names []string) ([]rundir.Directory, error) {
	var dirs []rundir.Directory
	for _, name := range names {
		dir, err := s.findRun(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// read returns the final state of a run.
func (s *store) read(ctx context.Context, dir rundir.Directory) (ingest.Snapshot, error) {
	return ingest.Read(ctx, dir, s.tools)
}

// history returns everything that was recorded of a run. A run whose output the
// user may not read is an error.
func (s *store) history(ctx context.Context, dir rundir.Directory) (*record.History, error) {
	h, err := record.Read(ctx, dir, s.tools)
	if err == nil && errors.Is(h.Damage.Output, fs.ErrPermission) {
		return nil, withHint(fmt.Errorf("run %s: %w", dir.ID(), h.Damage.Output), "ask its owner, or root")
	}
	if err == nil {
		if err := s.config.ManagedServers().Add(ctx, h); err != nil {
			h.Damage.Problems = append(h.Damage.Problems, err.Error())
		}
	}
	return h, err
}

// selecting are the flags that name the servers of a run.
type selecting struct {
	clusters []string
	targets  string
}

func addSelecting(cmd command) *selecting {
	s := &selecting{}
	cmd.texts(&s.clusters, "cluster", "NAME",
		"Cluster that the run uses; one of the configuration, repeatable (default: the cluster that the tool connects to)")
	cmd.text(&s.targets, "targets", "NAME,NAME...",
		"Targets that the run uses; of the configuration, in addition to the targets of --cluster")
	return s
}

// selection returns nil if neither flag is given.
func (s *selecting) selection() *rundir.Selection {
	targets := strings.FieldsFunc(s.targets, func(r rune) bool { return r == ',' || r == ' ' })
	return rundir.NewSelection(s.clusters, targets)
}

// checkSelection returns an error if the configuration lacks what s names.
func checkSelection(c *config.Config, s *rundir.Selection) error {
	if err := c.Topology(c.Servers()).CheckSelection(s); err != nil {
		return ownFailure(err, "name the file with the targets with --config.file")
	}
	return nil
}
