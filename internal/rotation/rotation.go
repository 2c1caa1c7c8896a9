// Package rotation rotates a log while a tool writes to it, in each form that docs/reliability.md
// covers, for tests.
package rotation

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Log is a log that a tool has open.
type Log struct {
	Path string
	// Append: the tool opened it with O_APPEND.
	Append bool

	out *os.File
}

// Open opens the file at the log's path, like a tool that starts or reopens its log.
func (l *Log) Open() (err error) {
	flag := os.O_WRONLY | os.O_CREATE
	if l.Append {
		flag |= os.O_APPEND
	}
	l.out, err = os.OpenFile(l.Path, flag, 0o644)
	return err
}

// WriteString writes to the file that the tool has open, which may have been renamed.
func (l *Log) WriteString(text string) (int, error) { return l.out.WriteString(text) }

// Close closes the log.
func (l *Log) Close() error { return l.out.Close() }

// Form is a way to rotate.
type Form struct {
	Name string
	// Rotate rotates once.
	Rotate func(*Log) error
	// Away: nothing is lost even if no agent runs meanwhile.
	Away bool
	// Glob matches the followed files, in addition to the log.
	Glob string
	// Append is how the tool opens its log.
	Append bool
	// Reopens: the tool opens the new file. Only root can detect this.
	Reopens bool
}

// Forms are all covered forms, and no rotation at all. The log is named a.log.
var Forms = []Form{
	{Name: "none", Rotate: func(*Log) error { return nil }, Away: true, Glob: "a.log", Append: true},
	{Name: "copytruncate", Rotate: copyTruncate, Away: true, Glob: "a.log", Append: true},
	{Name: "copytruncate, the copies match too", Rotate: copyTruncate, Away: true, Glob: "a.log*", Append: true},
	{Name: "copytruncate without O_APPEND", Rotate: copyTruncate, Away: true, Glob: "a.log"},
	{Name: "truncated", Rotate: func(l *Log) error { return os.Truncate(l.Path, 0) }, Glob: "a.log", Append: true},
	{Name: "create, the tool reopens", Rotate: reopen, Away: true, Glob: "a.log", Append: true, Reopens: true},
	{Name: "create, the tool reopens, the old files match too", Rotate: reopen, Away: true, Glob: "a.log*", Append: true, Reopens: true},
	{Name: "create, the tool keeps the old file", Rotate: func(l *Log) error {
		return errors.Join(l.renameIfThere(), os.WriteFile(l.Path, nil, 0o644))
	}, Away: true, Glob: "a.log", Append: true},
	{Name: "mv", Rotate: (*Log).renameIfThere, Away: true, Glob: "a.log", Append: true},
	{Name: "a hard link", Rotate: func(l *Log) error {
		if err := os.Link(l.Path, filepath.Join(filepath.Dir(l.Path), "b.log")); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}, Away: true, Glob: "*.log", Append: true},
	{Name: "replaced by a copy", Rotate: func(l *Log) error {
		return errors.Join(l.Close(), l.copyAway(), os.Rename(l.Path+".1", l.Path), l.Open())
	}, Away: true, Glob: "a.log", Append: true},
	{Name: "written again in place", Rotate: func(l *Log) error {
		text, err := os.ReadFile(l.Path)
		return errors.Join(err, l.Close(), os.WriteFile(l.Path, text, 0o644), l.Open())
	}, Away: true, Glob: "a.log", Append: true},
}

func copyTruncate(l *Log) error { return errors.Join(l.copyAway(), os.Truncate(l.Path, 0)) }

func reopen(l *Log) error { return errors.Join(l.rename(), l.Close(), l.Open()) }

// shift renames files to make room for the path with the suffix .1.
func (l *Log) shift() error {
	for i := 99; i > 0; i-- {
		err := os.Rename(fmt.Sprint(l.Path, ".", i), fmt.Sprint(l.Path, ".", i+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *Log) rename() error { return errors.Join(l.shift(), os.Rename(l.Path, l.Path+".1")) }

func (l *Log) renameIfThere() error {
	if _, err := os.Stat(l.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return l.rename()
}

func (l *Log) copyAway() error {
	if err := l.shift(); err != nil {
		return err
	}
	from, err := os.Open(l.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(l.Path + ".1")
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
