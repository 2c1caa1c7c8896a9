package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// archived is the archive that a command reads runs from.
type archived struct {
	url   string
	asked bool // --archive is given

	// Set by open.
	archive *archive.Archive
	notice  func(format string, args ...any)
	entries []archive.Entry
	indexes map[archive.Entry]*archive.Index // those that were read
	all     bool                             // indexes has all that can be read
}

const (
	archiveFlag = "archive"
	// configuredArchive stands for a value that was left out.
	configuredArchive = "configured"
)

// addArchive adds --archive, whose value can be left out.
func addArchive(cmd command) *archived {
	return declareArchive(cmd, "Read runs from the team's archive; instead of the data directory; without =URL, from the archive of the configuration")
}

func declareArchive(cmd command, help string) *archived {
	a := &archived{}
	cmd.flag(archiveFlag, help, value{"URL", func() string { return "" }, func(s string) error {
		if a.asked = true; s != configuredArchive {
			a.url = s
		}
		return nil
	}}).NoOptDefVal = configuredArchive
	return a
}

// is reports whether the command reads an archive.
func (a *archived) is() bool { return a != nil && a.asked }

// openArchive returns the archive of --archive or of the configuration.
func (s *store) openArchive(url string) (*archive.Archive, error) {
	if url != "" {
		s.config.Archive.URL = url
	}
	if s.config.Archive.URL == "" {
		return nil, withHint(errors.New("no archive is configured"),
			"name it with --archive=s3://bucket/prefix, $BENCHWATCH_ARCHIVE or the key archive of --config.file")
	}
	opened, err := s.config.OpenArchive()
	return opened, archiveError(err)
}

// archiveError adds a hint to an error of the archive.
func archiveError(err error) error {
	switch {
	case errors.Is(err, archive.ErrNoCredentials):
		return withHint(err, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the key credentials_file; docs/archive.md names the settings of other services")
	case errors.Is(err, archive.ErrDamaged):
		return withHint(err, "remove the objects of the run from the archive, and push the run again from a machine that has it")
	case errors.Is(err, archive.ErrNoRun):
		return withHint(err, "list its runs with benchwatch runs --archive")
	}
	return err
}

// openRuns makes the store read an archive if the command was asked to.
func (s *store) openRuns(streams Streams) error {
	if !s.archived.is() {
		return nil
	}
	var err error
	s.archived.notice = streams.notice
	s.archived.archive, err = s.openArchive(s.archived.url)
	if err != nil {
		return err
	}
	s.archived.indexes = map[archive.Entry]*archive.Index{}
	s.archived.entries, err = s.archived.archive.Entries(context.Background())
	return archiveError(err)
}

// list returns the indexes of all runs that can be read, and notes the others.
func (a *archived) list() ([]*archive.Index, error) {
	return a.read(a.entries, func(err error) { a.notice("skipped: %v", err) })
}

// read returns the indexes of entries, reading each once.
func (a *archived) read(entries []archive.Entry, problem func(error)) ([]*archive.Index, error) {
	var missing []archive.Entry
	for _, e := range entries {
		if a.indexes[e] == nil && !a.all {
			missing = append(missing, e)
		}
	}
	read, err := a.archive.Indexes(context.Background(), missing, problem)
	if err != nil {
		return nil, archiveError(err)
	}
	for _, x := range read {
		a.indexes[x.Entry] = x
	}
	a.all = a.all || len(entries) == len(a.entries)
	var found []*archive.Index
	for _, e := range entries {
		if x := a.indexes[e]; x != nil {
			found = append(found, x)
		}
	}
	return found, nil
}

// find returns the index of the run called name.
func (a *archived) find(name string) (*archive.Index, error) {
	if age, ok := recent(name); ok {
		return a.newest(age)
	}
	e, err := archive.Find(a.entries, name)
	if err != nil {
		return nil, archiveError(err)
	}
	var problem error
	found, err := a.read([]archive.Entry{e}, func(err error) { problem = err })
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, archiveError(problem)
	}
	return found[0], nil
}

// newest returns the run that started last or, with an age, before the age newest ones.
func (a *archived) newest(age int) (*archive.Index, error) {
	all, err := a.list()
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, withHint(errors.New(noRunsYet(a.archive.Name())), "benchwatch archive push uploads those of this machine")
	case age >= len(all):
		return nil, tooFew(len(all), age, a.archive.Name())
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y *archive.Index) int { return y.Meta.StartedAt.Compare(x.Meta.StartedAt) })
	return all[age], nil
}

// fetch returns the directory of a run in the cache.
func (a *archived) fetch(x *archive.Index) (rundir.Directory, error) {
	if x.Omits() {
		a.notice("run %s was archived without the tool's output: what that has is missing here", x.ID)
	}
	dir, err := a.archive.Run(context.Background(), x)
	return dir, archiveError(err)
}

func (a *archived) findRun(name string) (rundir.Directory, error) {
	x, err := a.find(name)
	if err != nil {
		return "", err
	}
	return a.fetch(x)
}

// where is the place of the runs, for messages.
func (s *store) where() string {
	if s.archived.is() {
		return s.archived.archive.Name()
	}
	return s.dataDir
}

// metas returns the facts of all runs that can be read.
func (a *archived) metas() []rundir.Meta {
	all, err := a.list()
	if err != nil {
		a.notice("%v", err)
	}
	metas := make([]rundir.Meta, len(all))
	for i, x := range all {
		metas[i] = x.Meta
	}
	return metas
}

// selectRuns fetches the runs that the filters select. A damaged one is skipped.
func (a *archived) selectRuns(wanted func(*rundir.Meta) bool) ([]rundir.Directory, error) {
	all, err := a.list()
	if err != nil {
		return nil, err
	}
	var dirs []rundir.Directory
	for _, x := range all {
		if !wanted(&x.Meta) {
			continue
		}
		dir, err := a.fetch(x)
		switch {
		case errors.Is(err, archive.ErrDamaged):
			a.notice("skipped: %v", err)
		case err != nil:
			return nil, err
		default:
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
