package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// allInterval is the interval for checking the ended runs of a machine as well.
	allInterval = 30 * time.Second
	// partsAtOnce is the number of parts taken from one run before the next run has its turn.
	partsAtOnce = 4
	// takeOver is how long a machine must be away before another machine with the same run
	// continues its copy.
	takeOver = 10 * time.Second
	// staging is the folder in the data directory for incomplete copies of ended runs.
	staging = "peers"
)

// Copier keeps copies of one machine's runs up to date in a data directory.
type Copier struct {
	DataDir string
	Source  Source
	// From is recorded in the copies. The Source decides its Scraped.
	From rundir.Mirror
	// Files are the names of the files to copy.
	Files []string
	// MaxAge is how long ago an ended run may have been closed to be copied completely.
	MaxAge time.Duration
	// Interval is the interval for asking the machine for new data. After errors the pause doubles
	// up to LongestPause.
	Interval, LongestPause time.Duration
	// Once: Run returns when no run in the list will get more data.
	Once bool
	// Wake, if not nil, ends a pause.
	Wake <-chan struct{}
	// Absent reports whether another machine, from which a run is already being copied, is away;
	// nil: it always is.
	Absent func(host string) bool
	// Notify is called once for each reason why a run can't be copied (run is empty if no run can),
	// and with nil when the machine answers again.
	Notify func(run string, err error)
	Log    *slog.Logger

	copies  map[string]*copied
	all     time.Time // time of the last check of ended runs
	failure string    // last argument of Notify

	mu    sync.Mutex
	stats Stats
	seen  time.Time // time of the last answer, or of the first request
}

// Stats is the state of a Copier.
type Stats struct {
	// Version is benchwatch's version on the machine, empty before it is known.
	Version string
	Up      bool
	// LastSuccess is when all new data was last copied; zero: never.
	LastSuccess time.Time
	Bytes       uint64
	Errors      uint64
	// Live is the number of runs that are copied while in progress. Refused is the number of runs
	// that are not copied because they are damaged or conflict with another run.
	Live, Refused int
}

// state is how a run in the list is copied.
type state int

const (
	copying  state = iota
	staged         // it had ended when first seen: the copy appears when it is complete
	complete       // the copy is closed; markers may still be added
	standby        // it is copied from another machine; this one continues if that is away
	recorded       // it was recorded here
	refused        // it is damaged or conflicts with a run here; its copy has ended
)

// copied is a run of the machine. Only the goroutine of Run uses it.
type copied struct {
	mirror *Mirror
	state  state
	host   string // the machine whose copy a standby may continue
	// changed and sizes are the values in the list when the copy was last up to date.
	changed int64
	sizes   map[string]int64
	problem string // last argument of Notify
}

// Stats returns the current state.
func (c *Copier) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Away reports whether the machine has not answered for long.
func (c *Copier) Away() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.stats.Up && !c.seen.IsZero() && time.Since(c.seen) > takeOver
}

func (c *Copier) update(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.stats)
}

// Run copies until ctx is done and returns ctx's error, or with Once until no more data will come.
// It continues the copies of an earlier process.
func (c *Copier) Run(ctx context.Context) error {
	c.copies = map[string]*copied{}
	c.update(func(*Stats) { c.seen = time.Now() })
	c.resume()
	for pause := c.Interval; ; {
		more, err := c.pass(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.note(err)
		wait := c.Interval
		switch {
		case err != nil:
			pause = min(2*pause, c.LongestPause)
			wait = pause
		case more:
			continue
		case c.Once && c.isOver():
			return nil
		default:
			pause = c.Interval
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-c.Wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// isOver reports whether no run will get more data.
func (c *Copier) isOver() bool {
	if len(c.copies) == 0 {
		return false
	}
	for id, own := range c.copies {
		switch own.state {
		case complete, refused:
			continue
		case recorded, standby:
			if meta, err := rundir.At(c.DataDir, id).Load(); err == nil && meta.Closed() {
				continue
			}
		}
		return false
	}
	return true
}

// resume finds copies that were incomplete when an earlier process ended.
func (c *Copier) resume() {
	if c.Once {
		return // the list has them
	}
	ids, err := rundir.List(c.DataDir)
	if err != nil {
		c.Log.Error("can't look for copies", "err", err)
	}
	for _, id := range ids {
		meta, err := rundir.At(c.DataDir, id).Load()
		if own := c.newCopy(id, copying); err == nil && own.mirror.isOf(&meta) && !meta.Closed() {
			c.copies[id] = own
		}
	}
}

func (c *Copier) newCopy(id string, s state) *copied {
	dataDir := c.DataDir
	if s == staged {
		dataDir = filepath.Join(dataDir, staging)
	}
	return &copied{state: s, mirror: &Mirror{Dir: rundir.At(dataDir, id), Files: c.Files, From: c.From}}
}

// note records the result of a pass.
func (c *Copier) note(err error) {
	if err != nil {
		c.update(func(s *Stats) { s.Up = false; s.Errors++ })
		if text := err.Error(); text != c.failure {
			c.failure = text
			c.Notify("", err)
		}
		return
	}
	now := time.Now()
	c.update(func(s *Stats) { s.Up, s.LastSuccess, c.seen = true, now, now })
	if c.failure != "" {
		c.Notify("", nil)
		c.failure = ""
	}
}

// pass takes new data of all runs. more: there is more to take. The error concerns the machine.
func (c *Copier) pass(ctx context.Context) (more bool, err error) {
	recent, began := time.Duration(0), time.Now()
	if began.Sub(c.all) >= allInterval {
		recent = max(c.MaxAge, time.Second)
	}
	l, err := c.Source.List(ctx, recent)
	if err != nil {
		return false, err
	}
	if c.Stats().Version != l.Version {
		c.update(func(s *Stats) { s.Version = l.Version })
		if l.Version != version.Version {
			c.Log.Warn("peer has another version: what only one of the two knows is left out of copies",
				"there", l.Version, "here", version.Version)
		}
	}
	if recent > 0 {
		c.all = began
	}
	c.From.Scraped = l.Scraped
	slices.SortStableFunc(l.Runs, func(a, b Entry) int { // open runs first, new ones before old ones
		if a.Closed == b.Closed {
			return strings.Compare(b.ID, a.ID)
		}
		if b.Closed {
			return -1
		}
		return 1
	})
	listed := map[string]bool{}
	for _, e := range l.Runs {
		listed[e.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(c.copies)) {
		switch own := c.copies[id]; {
		case listed[id]:
		case own.state == standby, recent > 0 && own.state >= complete:
			delete(c.copies, id) // the machine no longer has it
		case own.state < complete: // closed since, or removed
			l.Runs = append(l.Runs, Entry{ID: id})
		}
	}
	for i := range l.Runs {
		again, err := c.take(ctx, &l.Runs[i])
		if err != nil {
			return false, err
		}
		more = more || again
	}
	c.update(c.count)
	return more, nil
}

// count counts the copies by their states.
func (c *Copier) count(s *Stats) {
	s.Live, s.Refused = 0, 0
	for _, own := range c.copies {
		if own.state == copying {
			s.Live++
		}
		if own.problem != "" {
			s.Refused++
		}
	}
}

// take takes new data of one run. It returns only errors of the machine, since an error of the run
// does not concern the others.
func (c *Copier) take(ctx context.Context, e *Entry) (more bool, err error) {
	own := c.copies[e.ID]
	if own == nil {
		if own, err = c.begin(ctx, e); err != nil {
			return false, err
		}
		c.copies[e.ID] = own
	}
	if own.state == standby && (c.Absent == nil || c.Absent(own.host)) {
		if meta, err := own.mirror.Dir.Load(); err != nil || meta.Closed() {
			delete(c.copies, e.ID)
			return false, nil
		}
		c.Log.Info("copy is continued from another peer", "run", e.ID, "before", own.host)
		own.state = copying
	}
	if own.state >= standby || own.changed != 0 && own.changed == e.Changed && maps.Equal(own.sizes, e.Sizes) {
		return false, nil
	}
	more, err = c.copy(ctx, own, e)
	switch {
	case err == nil:
		own.problem = ""
		if !more && e.Sizes != nil {
			own.changed, own.sizes = e.Changed, e.Sizes
		}
		return more, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, fs.ErrExist), errors.Is(err, ErrMoved): // another process was faster
		delete(c.copies, e.ID)
		return false, nil
	case isFinal(err):
		c.abandon(own, err)
		return false, nil
	}
	if _, away := errors.AsType[*AwayError](err); away {
		return false, err
	}
	c.complain(own, err) // retried
	return false, nil
}

// isFinal reports whether no more data can follow after an error.
func isFinal(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, ErrForeign) || errors.Is(err, ErrReplaced) || errors.Is(err, ErrRefused)
}

// complain reports a problem of a run once.
func (c *Copier) complain(own *copied, err error) {
	c.update(func(s *Stats) { s.Errors++ })
	if text := err.Error(); own.problem != text {
		own.problem = text
		c.Notify(own.mirror.Dir.ID(), err)
	}
}

// begin decides how to copy a new run.
func (c *Copier) begin(ctx context.Context, e *Entry) (*copied, error) {
	own := c.newCopy(e.ID, copying)
	dir := own.mirror.Dir
	refuse := func(err error) (*copied, error) {
		own.state = refused
		c.complain(own, err)
		return own, nil
	}
	here, err := dir.Load()
	switch _, statErr := os.Lstat(string(dir)); {
	case errors.Is(err, fs.ErrNotExist) && statErr == nil:
		return refuse(errors.New("there is a folder of this name"))
	case errors.Is(err, fs.ErrNotExist) && e.Closed:
		return c.newCopy(e.ID, staged), nil
	case errors.Is(err, fs.ErrNotExist):
		return own, nil
	case err != nil:
		return refuse(err)
	case own.mirror.isOf(&here):
		if here.Closed() && e.Closed && hasSizes(dir, c.Files, e.Sizes) {
			own.state, own.changed, own.sizes = complete, e.Changed, e.Sizes
		}
		return own, nil
	}
	// Another record of it is here.
	n, err := c.Source.News(ctx, e.ID, &Have{})
	if err != nil {
		return nil, err
	}
	there, err := rundir.ParseMeta(e.ID, n.Meta)
	switch {
	case n.Gone:
		own.state = recorded
	case err != nil:
		return refuse(err)
	case !here.SameRun(&there):
		return refuse(fmt.Errorf("run %s %w: %s", e.ID, ErrForeign, recordedBy(&here)))
	case here.IsCopy() && !here.Closed():
		own.state, own.host = standby, here.Mirror.Host
	default:
		own.state = recorded
	}
	return own, nil
}

// recordedBy describes the origin of a run in this data directory.
func recordedBy(m *rundir.Meta) string {
	if m.IsCopy() {
		return "the one here is from peer " + m.Mirror.Host
	}
	return "the one here was recorded on " + cmp.Or(m.Generator, "this machine")
}

// hasSizes reports whether a copy has files of these sizes.
func hasSizes(dir rundir.Directory, names []string, sizes map[string]int64) bool {
	here := Sizes(dir, names)
	return !slices.ContainsFunc(names, func(name string) bool { return here[name] != sizes[name] })
}

// copy updates a copy by a limited number of parts.
func (c *Copier) copy(ctx context.Context, own *copied, e *Entry) (more bool, err error) {
	dir := own.mirror.Dir
	if space, err := rundir.SpaceOf(c.DataDir); c.From.Peer && err == nil && space.Low() {
		return false, errors.New("the disk is nearly full")
	}
	if own.state != staged && own.changed != 0 {
		if _, err := os.Lstat(string(dir)); errors.Is(err, fs.ErrNotExist) {
			c.Log.Info("copy was removed here: the run is not mirrored any more", "run", e.ID)
			own.state = recorded
			return false, nil
		}
	}
	own.mirror.From.Scraped = c.From.Scraped
	for range partsAtOnce {
		p, err := own.mirror.Update(ctx, c.Source)
		c.update(func(s *Stats) { s.Bytes += uint64(p.Bytes) })
		switch {
		case err != nil:
			return false, err
		case p.More:
			continue
		case own.state == staged && p.Over:
			if err := os.MkdirAll(rundir.Root(c.DataDir), 0o755); err != nil { // this may be the first run here
				return false, err
			}
			if err := os.Rename(string(dir), string(rundir.At(c.DataDir, e.ID))); err != nil {
				return false, err
			}
			own.mirror.Dir = rundir.At(c.DataDir, e.ID)
		}
		if p.Over {
			own.state = complete
		}
		return false, nil
	}
	return true, nil
}

// abandon ends a copy that will get no more data. If that can't be recorded, it is retried.
func (c *Copier) abandon(own *copied, why error) {
	var err error
	if own.state == staged {
		err = os.RemoveAll(string(own.mirror.Dir))
	} else {
		err = own.mirror.Abandon(why.Error())
	}
	switch {
	case err != nil:
		c.complain(own, errors.Join(why, err))
		return
	case !errors.Is(why, ErrGone):
		c.complain(own, why)
	case own.state != staged:
		c.Notify(own.mirror.Dir.ID(), why)
	}
	own.state = refused
}
