package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// archiveCommand is one `benchwatch archive …`.
type archiveCommand struct {
	*store
	names  []string
	format string
}

// newArchiveCommand returns a subcommand of `archive`.
func newArchiveCommand(name, help, example string) (command, *archiveCommand) {
	cmd, c := newCommand(name, help, example), &archiveCommand{}
	addFormat(cmd, &c.format, text, jsonFormat)
	c.store = addStore(cmd)
	c.archived = declareArchive(cmd, "The team's archive; s3://BUCKET/PREFIX or a folder (default: the archive of the configuration)")
	return cmd, c
}

// openIt opens the archive, as if --archive were given.
func (c *archiveCommand) openIt(s Streams) error {
	c.archived.asked = true
	return c.loadToRead(s)
}

// pushed is what `archive push --format=json` prints.
type pushed struct {
	// Uploaded are the ids of the runs that were uploaded, Existed the ids that the archive already had.
	Uploaded []string `json:"uploaded"`
	Existed  []string `json:"existed"`
	// Failed are the ids of the runs that could not be uploaded.
	Failed []string `json:"failed"`
	// Bytes is the size of what was uploaded.
	Bytes int64 `json:"bytes"`
}

func newArchivePush() *cobra.Command {
	cmd, c := newArchiveCommand("push", "Upload closed runs that the archive does not have.", "benchwatch archive push last")
	cmd.arguments(&c.names, "[RUN...]", "Id of a run, its beginning, or last (default: all closed runs)")
	return cmd.does(c.push)
}

func (c *archiveCommand) push(s Streams) error {
	if err := c.openIt(s); err != nil {
		return err
	}
	dirs, err := c.toPush(s)
	if err != nil {
		return err
	}
	ctx := context.Background()
	known, err := c.archived.archive.Known(ctx)
	if err != nil {
		return archiveError(err)
	}
	progress := terminal.NewProgress(s.Err)
	defer progress.Clear()
	s.Err = progress.Above(s.Err)
	done := pushed{Uploaded: []string{}, Existed: []string{}, Failed: []string{}}
	var down error
	for i, dir := range dirs {
		progress.Count("archive push", i, len(dirs), "runs")
		p, err := c.archived.archive.Push(ctx, dir, known)
		done.Bytes += p.Bytes
		switch {
		case errors.Is(err, archive.ErrUnavailable):
			down = err
		case err != nil:
			done.Failed = append(done.Failed, dir.ID())
			s.notice("%v", err)
		case p.Existed:
			done.Existed = append(done.Existed, dir.ID())
		default:
			done.Uploaded = append(done.Uploaded, dir.ID())
			if c.format == text {
				fmt.Fprintf(s.Out, "uploaded %s\n", dir.ID())
			}
		}
		if down != nil {
			break
		}
	}
	progress.Clear()
	if c.format == jsonFormat {
		if err := table.JSON(s.Out, done); err != nil {
			return err
		}
	}
	switch left := len(dirs) - len(done.Uploaded) - len(done.Existed); {
	case down != nil:
		return withHint(fmt.Errorf("%w; %s not uploaded", down, isAre(left)), "the same command continues where this one ended")
	case len(done.Failed) > 0:
		return fmt.Errorf("%s not uploaded", isAre(left))
	}
	if c.format == text && len(done.Uploaded) == 0 {
		s.notice("nothing to upload: %s already in %s", isAre(len(done.Existed)), c.where())
	}
	return nil
}

// isAre is "1 run is" or "2 runs are".
func isAre(n int) string {
	if n == 1 {
		return "1 run is"
	}
	return table.Plural(n, "run") + " are"
}

// toPush returns the named runs of the data directory, or all closed runs.
func (c *archiveCommand) toPush(s Streams) ([]rundir.Directory, error) {
	local := *c.store
	local.archived = nil
	if len(c.names) > 0 {
		return local.findRuns(c.names)
	}
	return local.selectRuns(s, func(m *rundir.Meta) bool { return m.Closed() })
}

// pulled is what `archive pull --format=json` prints.
type pulled struct {
	// Fetched are the ids of the runs that were fetched, Existed the ids that were already there.
	Fetched []string `json:"fetched"`
	Existed []string `json:"existed"`
}

func newArchivePull() *cobra.Command {
	cmd, c := newArchiveCommand("pull", "Fetch runs into the data directory.",
		"benchwatch archive pull 20261121T021403Z-oltp_read_write-t16")
	cmd.arguments(&c.names, "RUN...", "Id of a run in the archive, its beginning, or last")
	return cmd.does(c.pull)
}

func (c *archiveCommand) pull(s Streams) error {
	if err := c.openIt(s); err != nil {
		return err
	}
	done := pulled{Fetched: []string{}, Existed: []string{}}
	var failed error
	for _, name := range c.names {
		x, err := c.archived.find(name)
		if err != nil {
			return err
		}
		if x.Omits() {
			s.notice("run %s was archived without the tool's output", x.ID)
		}
		_, existed, err := c.archived.archive.Pull(context.Background(), x, c.dataDir)
		switch {
		case errors.Is(err, archive.ErrUnavailable):
			return withHint(err, "the same command continues where this one ended")
		case err != nil:
			s.notice("%v", err)
			failed = errors.New("not all runs were fetched")
			continue
		case existed:
			done.Existed = append(done.Existed, x.ID)
		default:
			done.Fetched = append(done.Fetched, x.ID)
		}
		if c.format == text {
			fmt.Fprintf(s.Out, "%s %s\n", map[bool]string{false: "fetched", true: "already here:"}[existed], x.ID)
		}
	}
	if c.format == jsonFormat {
		if err := table.JSON(s.Out, done); err != nil {
			return err
		}
	}
	return failed
}

// archivedRun is a run as `archive list --format=json` prints it.
type archivedRun struct {
	review.Row
	stored
}

// MarshalJSON returns the fields of the row, and how the run is stored.
func (r archivedRun) MarshalJSON() ([]byte, error) { return table.MarshalJoined(r.Row, r.stored) }

// stored is how a run is stored in an archive.
type stored struct {
	// Origin distinguishes runs of the same id from different machines: ID~ORIGIN names one.
	Origin     string    `json:"origin"`
	UploadedAt time.Time `json:"uploaded_at"`
	// StoredBytes is the size of the run's objects.
	StoredBytes int64 `json:"stored_bytes"`
	// OutputOmitted: the tool's output was left out.
	OutputOmitted bool `json:"output_omitted"`
}

// archiveListCommand is one `benchwatch archive list`.
type archiveListCommand struct {
	*archiveCommand
	runFilter
}

func newArchiveList() *cobra.Command {
	cmd, c := newArchiveCommand("list", "List runs of the archive, the newest last.",
		"benchwatch archive list --since=30d --label disk=nvme")
	l := &archiveListCommand{archiveCommand: c}
	l.runFilter.declare(cmd)
	return cmd.does(l.list)
}

func (l *archiveListCommand) list(s Streams) error {
	if err := l.check(time.Now()); err != nil {
		return err
	}
	if err := l.openIt(s); err != nil {
		return err
	}
	all, err := l.archived.list()
	if err != nil {
		return err
	}
	runs := []archivedRun{}
	rows := []review.Row{}
	for _, x := range archivedRuns(all, &l.runFilter) {
		runs = append(runs, archivedRun{x.Row, stored{x.Origin, x.Uploaded, x.Stored(), x.Omits()}})
		rows = append(rows, x.Row)
	}
	if l.format == jsonFormat {
		return table.JSON(s.Out, runs)
	}
	return (&runsCommand{store: l.store, format: l.format}).print(s, rows, len(l.archived.entries))
}

// archivedRuns returns the wanted runs, oldest first. If several runs have the same id, their rows get the names that
// distinguish them.
func archivedRuns(all []*archive.Index, f *runFilter) []*archive.Index {
	count := map[string]int{}
	for _, x := range all {
		count[x.ID]++
	}
	var chosen []*archive.Index
	for _, x := range all {
		if !f.wanted(&x.Meta) {
			continue
		}
		if count[x.ID] > 1 {
			x.Row.ID = x.Name()
		}
		chosen = append(chosen, x)
	}
	slices.SortStableFunc(chosen, func(a, b *archive.Index) int { return a.Meta.StartedAt.Compare(b.Meta.StartedAt) })
	return chosen
}
