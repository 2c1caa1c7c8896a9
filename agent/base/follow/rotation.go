package follow

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// compressed are the suffixes of rotated files that can't be read any further.
var compressed = []string{".gz", ".xz", ".bz2", ".zst", ".lz4", ".Z"}

// RotatedName reports whether the file path may be called name after its rotation: a.log.1,
// a.log-20261122 and a-20261122.log for a.log. Compressed files do not count.
func RotatedName(path, name string) bool {
	if filepath.Dir(path) != filepath.Dir(name) || slices.Contains(compressed, filepath.Ext(name)) {
		return false
	}
	base, other := filepath.Base(path), filepath.Base(name)
	if rest, ok := strings.CutPrefix(other, base); ok {
		return rest != "" && strings.ContainsRune(".-_~", rune(rest[0]))
	}
	ext := filepath.Ext(base)
	rest, ok := strings.CutPrefix(other, strings.TrimSuffix(base, ext))
	if !ok {
		return false
	}
	rest, ok = strings.CutSuffix(rest, ext)
	return ok && len(rest) > 1 && strings.Trim(rest, "0123456789-_.T") == "" &&
		(rest[0] == '.' || rest[0] != 'T' && len(rest) > len("-20261122")-1)
}

// RotationNumber is the number in a name such as a.log.2 or a.2.log, which grows with each rotation;
// 0 without one. Dates do not count.
func RotationNumber(path, name string) int {
	rest, ok := strings.CutPrefix(name, path)
	if ext := filepath.Ext(path); !ok {
		rest = strings.TrimSuffix(strings.TrimPrefix(name, strings.TrimSuffix(path, ext)), ext)
	}
	n, err := strconv.Atoi(strings.TrimLeft(rest, ".-_~"))
	if err != nil || n >= 10_000 {
		return 0
	}
	return n
}

// RotatedFile is a file that may be a log under a later name.
type RotatedFile struct {
	Path       string
	Info       fs.FileInfo
	Compressed bool
}

// Rotated returns the files beside path that may have been path according to their names, unordered.
func Rotated(path string) (files []RotatedFile, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(filepath.Dir(path), e.Name())
		ext := filepath.Ext(name)
		packed := slices.Contains(compressed, ext)
		was := name
		if packed {
			was = strings.TrimSuffix(name, ext)
		}
		if !e.Type().IsRegular() || !RotatedName(path, was) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // renamed or removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		files = append(files, RotatedFile{name, info, packed})
	}
	return files, nil
}

// Usage is whether a file is open for writing.
type Usage int

// Whether a process has a file open for writing.
const (
	// Unknown: no process that this one may inspect has it open.
	Unknown Usage = iota
	Unused
	Written
)

// UsageOf looks up in /proc whether a process has the file open for writing.
func UsageOf(file *os.File) Usage {
	var mine unix.Stat_t
	if unix.Fstat(int(file.Fd()), &mine) != nil {
		return Unknown
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return Unknown
	}
	all := Unused
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		folder := "/proc/" + p.Name() + "/fd"
		open, err := os.ReadDir(folder)
		if os.IsPermission(err) {
			all = Unknown
		}
		for _, fd := range open {
			link := folder + "/" + fd.Name()
			var how, target unix.Stat_t
			if unix.Lstat(link, &how) != nil || how.Mode&0o200 == 0 || unix.Stat(link, &target) != nil {
				continue // not open for writing, or closed meanwhile
			}
			if target.Dev == mine.Dev && target.Ino == mine.Ino {
				return Written
			}
		}
	}
	return all
}

// FirstData is the position of a file's first byte other than NUL: a writer without O_APPEND leaves
// NULs after a truncation. It is the size of a file that has only NULs.
func FirstData(ctx context.Context, file *os.File, from int64) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	var block [4 << 10]byte
	for from < info.Size() && ctx.Err() == nil {
		if at, err := unix.Seek(int(file.Fd()), from, unix.SEEK_DATA); err == nil {
			from = at // holes take no time
		}
		n, err := file.ReadAt(block[:], from)
		for i, b := range block[:n] {
			if b != 0 {
				return from + int64(i), nil
			}
		}
		from += int64(n)
		if err == io.EOF || n == 0 {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	return min(from, info.Size()), ctx.Err()
}
