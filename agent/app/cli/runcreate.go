package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/benchwatch/benchwatch/agent/base/clock"
	"github.com/benchwatch/benchwatch/agent/run/live"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// recording is the directory of a run that this process records.
type recording struct {
	dir         rundir.Directory
	claim       *rundir.Claim
	stopLending func() // nil: no login is lent
}

// create makes the run directory, and lends the login, if there is one, to the agent or this process's observer.
func (r *runner) create(meta rundir.Meta, login *rundir.Login) (rec recording, err error) {
	rec.dir, rec.claim, err = rundir.CreateWith(r.config.DataDir, meta, func(dir rundir.Directory) (err error) {
		if login != nil {
			rec.stopLending, err = dir.Lend(*login)
		}
		return err
	})
	if err != nil && rec.stopLending != nil {
		rec.stopLending()
	}
	switch {
	case errors.Is(err, rundir.ErrExists) && meta.Group != nil:
		err = ownFailure(fmt.Errorf("generator %d of group %s has a run already",
			meta.Group.Generator, meta.Group.Name), "choose another --group")
	case errors.Is(err, rundir.ErrExists):
		err = ownFailure(err, "choose another --run-id")
	case errors.Is(err, fs.ErrPermission):
		err = ownFailure(err, permissionHint(r.config.DataDir))
	case err != nil:
		err = ownFailure(err, "choose another place with --data-dir")
	}
	return rec, err
}

// release gives up the directory, and keeps the login from an agent that starts from now on.
func (rec *recording) release(s Streams) {
	if rec.stopLending != nil {
		rec.stopLending()
		if err := rec.dir.EndLogin(); err != nil {
			s.notice("%v", err)
		}
	}
	rec.claim.Release()
}

// permissionHint is for a user who may not write into the runs folder.
func permissionHint(dataDir string) string {
	root := rundir.Root(dataDir)
	if _, ok := rundir.Agent(dataDir); ok {
		return fmt.Sprintf("an agent follows the runs in %s: as root, share that folder with all users by chmod 3777", root)
	}
	return fmt.Sprintf("%s belongs to another user: choose another place with --data-dir", root)
}

// remove deletes the run directory when nothing was started.
func (rec *recording) remove(s Streams) {
	if err := rec.dir.Remove(); err != nil {
		s.notice("%v", err)
	}
}

// endBeforeStart ends a run that was interrupted before its tool started. A generator whose
// start is set is already followed and copied by others: it ends as interrupted. Any other
// run is deleted.
func (r *runner) endBeforeStart(ctx context.Context, rec recording) {
	meta, err := rec.dir.Update(func(m *rundir.Meta) {
		if m.IsGenerator() && m.Group.StartAt != nil {
			now := m.Axis(clock.System).Now().UTC()
			m.EndedAt, m.Outcome, m.Reason = &now, rundir.Interrupted, "the tool was not started"
		}
	})
	if err == nil && !meta.Ended() {
		rec.remove(r.streams)
		return
	}
	rec.claim.Release()
	if err == nil {
		_, err = live.CloseOrphan(ctx, rec.dir, r.config.ToolSet())
	}
	if err != nil {
		r.streams.notice("%v", err)
	}
}
