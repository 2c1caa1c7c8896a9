package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"
)

const (
	maxID = 100
	// idTime begins the ids of NewID.
	idTime = "20060102T150405Z"
)

// NewID makes a readable id that sorts by time, such as 20261121T021403Z-oltp_read_write-t16. n
// above 1 distinguishes runs of the same second.
func NewID(start time.Time, workload string, threads, n int) string {
	id := start.UTC().Format(idTime)
	if w := plain(workload); w != "" {
		id += "-" + w
	}
	if threads > 0 {
		id += fmt.Sprintf("-t%d", threads)
	}
	if n > 1 {
		id += fmt.Sprintf("-%d", n)
	}
	return id
}

// CreateNew calls create with ids from NewID until one is free in the folder root, so that create
// returns neither ErrExists nor fs.ErrExist. With n taken ids it tries about 2 log n: logs without
// times that were copied together share a start.
func CreateNew(root string, start time.Time, name string, threads int, create func(id string) error) error {
	taken := func(id string) bool {
		_, err := os.Lstat(filepath.Join(root, id))
		return err == nil
	}
	free := 1
	for taken(NewID(start, name, threads, free)) {
		free *= 2
	}
	n := free/2 + 1 + sort.Search(free-free/2-1, func(i int) bool {
		return !taken(NewID(start, name, threads, free/2+1+i))
	})
	for ; ; n++ {
		err := create(NewID(start, name, threads, n))
		if !errors.Is(err, ErrExists) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// plain keeps the characters that are safe in a file name, a label and a URL.
func plain(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c < 0x80 && idByte(byte(c)) {
			b.WriteRune(c)
		} else {
			b.WriteByte('_')
		}
		if b.Len() == 40 {
			break
		}
	}
	return strings.Trim(b.String(), "._-")
}

func idByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// CheckID returns an error if id can't be a run's id.
func CheckID(id string) error {
	if id == "" {
		return errors.New("run id is empty")
	}
	if len(id) > maxID {
		return fmt.Errorf("run id has %d characters, at most %d are allowed", len(id), maxID)
	}
	if id[0] == '.' || id[0] == '-' {
		return fmt.Errorf("run id %q begins with %q: begin with a letter or digit", id, id[0])
	}
	for i := range len(id) {
		if !idByte(id[i]) {
			return fmt.Errorf("run id %q has %q: use letters, digits, '-', '_' and '.'", id, id[i])
		}
	}
	return nil
}

// HasTime reports whether an id begins with the start of its run, as NewID writes it. Users choose other ids.
func HasTime(id string) bool {
	begin, _, ok := strings.Cut(id, "-")
	_, err := time.Parse(idTime, begin)
	return ok && err == nil
}

// NewestFirst returns ids in the order in which their runs began, the last one first, after those that users chose.
func NewestFirst(ids []string) []string {
	ordered := slices.Clone(ids)
	slices.SortStableFunc(ordered, func(a, b string) int {
		aTimed, bTimed := HasTime(a), HasTime(b)
		if aTimed != bTimed {
			if aTimed {
				return 1
			}
			return -1
		}
		return strings.Compare(b, a)
	})
	return ordered
}
