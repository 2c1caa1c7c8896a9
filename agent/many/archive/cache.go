package archive

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// cacheFolder returns a folder of the archive's cache, which only this user can read:
// what tools print may have passwords.
func (a *Archive) cacheFolder(name string) (string, error) {
	dir := filepath.Join(a.CacheDir, a.key, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cache of the archive: %w", err)
	}
	return dir, nil
}

// cachedIndex returns an index and its object; nil if the file is missing, damaged or of
// another upload.
func cachedIndex(file string, e Entry) (*Index, []byte) {
	f, err := rundir.Open(file)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.ModTime().Equal(cacheTime(e)) {
		return nil, nil
	}
	data, err := readAtMost(f, maxIndex)
	if err != nil {
		return nil, nil
	}
	x, err := decodeIndex(e, data)
	if err != nil {
		return nil, nil
	}
	return x, data
}

// cacheTime is in whole seconds, which every file system keeps.
func cacheTime(e Entry) time.Time { return e.Uploaded.Truncate(time.Second) }

// storeIndex ignores a cache that can't be written.
func storeIndex(file string, e Entry, data []byte) {
	temp, err := os.CreateTemp(filepath.Dir(file), ".new-")
	if err != nil {
		return
	}
	_, err = temp.Write(data)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chtimes(temp.Name(), cacheTime(e), cacheTime(e))
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
}

// intact reports whether a directory has exactly the files of the run.
func intact(dir rundir.Directory, x *Index) bool {
	names, err := filesOf(dir)
	if err != nil {
		return false
	}
	wanted := 0
	for _, f := range x.Files {
		if f.Omitted {
			continue
		}
		wanted++
		if size, sum, err := hashFile(dir, f.Name, nil); err != nil || size != f.Size || sum != f.SHA256 {
			return false
		}
	}
	return wanted == len(names)
}

// place moves a fetched directory to its name, in place of a damaged one.
func place(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// copyTo is io.Copy to a file that is synced.
func copyTo(f *os.File, r io.Reader) error {
	_, err := io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	return err
}
