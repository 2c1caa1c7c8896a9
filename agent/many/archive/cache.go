package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// cacheFolder returns a folder of the archive's cache that only this user can read, since a tool's
// output may contain passwords.
func (a *Archive) cacheFolder(name string) (string, error) {
	dir := filepath.Join(a.CacheDir, a.key, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cache of the archive: %w", err)
	}
	return dir, nil
}

// cachedIndex returns the cached index, nil if the file is missing, damaged or from another upload.
func cachedIndex(file string, e Entry) *Index {
	f, err := rundir.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.ModTime().Equal(cacheTime(e)) {
		return nil
	}
	data, err := readAtMost(f, maxIndex)
	if err != nil {
		return nil
	}
	x, _ := decodeIndex(e, data)
	return x
}

// cacheTime returns the upload time in whole seconds, which every file system preserves.
func cacheTime(e Entry) time.Time { return e.Uploaded.Truncate(time.Second) }

// storeIndex writes an index to the cache and ignores errors.
func storeIndex(file string, e Entry, data []byte) {
	temp := file + ".new" // any other writer writes the same content
	err := os.WriteFile(temp, data, 0o600)
	if err == nil {
		err = os.Chtimes(temp, cacheTime(e), cacheTime(e))
	}
	if err == nil {
		err = os.Rename(temp, file)
	}
	if err != nil {
		os.Remove(temp)
	}
}

// intact reports whether a directory contains exactly the files of the run.
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
		if sum, err := hashFile(dir, f.Name); err != nil || sum != f.SHA256 {
			return false
		}
		wanted++
	}
	return wanted == len(names)
}

func hashFile(dir rundir.Directory, name string) (string, error) {
	f, err := rundir.Open(dir.Path(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, io.LimitReader(f, maxRun))
	return hex.EncodeToString(h.Sum(nil)), err
}
