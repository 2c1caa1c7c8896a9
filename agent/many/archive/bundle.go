package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A bundle is a copy of many index objects in one, so that the first listing of a large
// archive needs few requests. It never decides which runs there are: that is what the
// listing of the index objects shows, and what is not in a bundle is read singly. Index
// objects are divided by the first digits of their hash, and the name of a bundle has
// these digits and how many it holds: no bundle is ever changed, a larger one takes its
// place.

const (
	bundlesFolder = "bundles/"
	// bundleDigits of an entry's Content are those of its bundle.
	bundleDigits = 2
	// bundleLeast is how many index objects without a bundle are worth one.
	bundleLeast = 8
	// maxBundle bounds the index objects of a bundle, in bytes. What is longer is read singly.
	maxBundle = 2*partSize - 1<<20
)

// bundled is an index object in a bundle.
type bundled struct {
	Name  string          `json:"name"`
	Index json.RawMessage `json:"index"`
}

// bundle is a listed one.
type bundle struct {
	object
	digits string
	count  int
}

func (e Entry) base() string { return path.Base(e.object()) }

// digits are those of the entry's bundle.
func (e Entry) digits() string { return e.Content[:bundleDigits] }

// bundleOf reads the name of a bundle; ok is false for anything else.
func bundleOf(o object) (b bundle, ok bool) {
	name, found := strings.CutSuffix(strings.TrimPrefix(o.name, bundlesFolder), ".zst")
	parts := strings.Split(name, separator)
	if !found || len(parts) != 3 || !isHash(parts[0], bundleDigits) || !isHash(parts[2], hashLength) {
		return bundle{}, false
	}
	n, err := strconv.Atoi(parts[1])
	return bundle{o, parts[0], n}, err == nil && n > 0
}

// bundles returns the largest bundle of each kind, by its digits, and the others.
func (a *Archive) bundles(ctx context.Context) (largest map[string]bundle, others []bundle, err error) {
	largest = map[string]bundle{}
	err = a.bucket.list(ctx, bundlesFolder, func(o object) {
		b, ok := bundleOf(o)
		if !ok {
			return
		}
		if known, has := largest[b.digits]; has {
			if cmp.Or(cmp.Compare(known.count, b.count), known.changed.Compare(b.changed)) >= 0 {
				others = append(others, b)
				return
			}
			others = append(others, known)
		}
		largest[b.digits] = b
	})
	return largest, others, err
}

// Bundle makes the bundles that are worth their upload: after the runs of this machine
// were uploaded. Without them the archive is complete too.
func (a *Archive) Bundle(ctx context.Context) error {
	entries, err := a.Entries(ctx)
	if err != nil {
		return err
	}
	existing, _, err := a.bundles(ctx)
	if err != nil {
		return err
	}
	cache, err := a.cacheFolder("index")
	if err != nil {
		return err
	}
	by := map[string][]Entry{}
	for _, e := range entries {
		by[e.digits()] = append(by[e.digits()], e)
	}
	for _, digits := range slices.Sorted(maps.Keys(by)) {
		had := existing[digits].count
		if len(by[digits])-had < max(bundleLeast, had/10) {
			continue
		}
		if err := a.pause(ctx); err != nil {
			return err
		}
		if err := a.makeBundle(ctx, cache, digits, by[digits], had); err != nil {
			return err
		}
	}
	return nil
}

func (a *Archive) makeBundle(ctx context.Context, cache, digits string, entries []Entry, had int) error {
	// The newest ones are listed most often.
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.Uploaded.Compare(a.Uploaded) })
	var text bytes.Buffer
	count := 0
	for _, e := range entries {
		data, err := a.rawIndex(ctx, cache, e)
		switch {
		case errors.Is(err, ErrUnavailable) || ctx.Err() != nil:
			return err
		case err != nil:
			continue // who lists it gets the error
		}
		line, err := json.Marshal(bundled{e.base(), data})
		if err != nil {
			return err
		}
		if text.Len()+len(line) >= maxBundle {
			break
		}
		text.Write(line)
		text.WriteByte('\n')
		count++
	}
	if count-had < bundleLeast {
		return nil
	}
	packed := compress(text.Bytes())
	name := fmt.Sprintf("%s%s%s%d%s%s.zst", bundlesFolder, digits, separator, count, separator, digest(packed)[:hashLength])
	return a.bucket.put(ctx, name, packed)
}

// rawIndex returns a checked index object from the cache or the archive.
func (a *Archive) rawIndex(ctx context.Context, cache string, e Entry) ([]byte, error) {
	file := filepath.Join(cache, e.base())
	if _, data := cachedIndex(file, e); data != nil {
		return data, nil
	}
	_, data, err := a.fetchIndex(ctx, e)
	if err == nil {
		storeIndex(file, e, data)
	}
	return data, err
}

// fromBundles reads what it finds of missing entries, which are given by name with their
// places in found, and stores it there and in the cache. What is not found is left to the
// index objects, and so is a bundle that can't be read.
func (a *Archive) fromBundles(ctx context.Context, cache string, entries []Entry, found []*Index) error {
	missing := map[string]map[string]int{} // by digits, by name
	for i, x := range found {
		if x == nil {
			digits := entries[i].digits()
			if missing[digits] == nil {
				missing[digits] = map[string]int{}
			}
			missing[digits][entries[i].base()] = i
		}
	}
	maps.DeleteFunc(missing, func(_ string, of map[string]int) bool { return len(of) < bundleLeast/2 })
	if len(missing) == 0 {
		return nil
	}
	existing, _, err := a.bundles(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(existing, func(digits string, _ bundle) bool { return missing[digits] == nil })
	all := slices.Collect(maps.Values(existing))
	inParallel(ctx, bundleWorkers, len(all), func(n int) {
		b, of := all[n], missing[all[n].digits]
		a.readBundle(ctx, cache, b, func(name string) (Entry, int, bool) {
			i, ok := of[name]
			if !ok || entries[i].Uploaded.After(b.changed) { // uploaded again since
				return Entry{}, 0, false
			}
			return entries[i], i, true
		}, found)
	})
	return ctx.Err()
}

// readBundle stores the indexes of a bundle that are wanted. Each bundle has entries of
// its own: no two write to the same place of found.
func (a *Archive) readBundle(ctx context.Context, cache string, b bundle, wanted func(name string) (Entry, int, bool), found []*Index) {
	data, err := a.bucket.get(ctx, b.name, maxStored*2)
	if err != nil || !strings.HasSuffix(b.name, separator+digest(data)[:hashLength]+".zst") {
		return
	}
	text, err := decoder().DecodeAll(data, nil)
	if err != nil {
		return
	}
	for line := range bytes.Lines(text) {
		var one bundled
		if ctx.Err() != nil || json.Unmarshal(line, &one) != nil {
			return
		}
		e, i, ok := wanted(one.Name)
		if !ok {
			continue
		}
		if len(one.Index) > usualIndex {
			continue // read singly
		}
		if x, err := decodeIndex(e, one.Index); err == nil {
			found[i] = x
			storeIndex(filepath.Join(cache, e.base()), e, one.Index)
		}
	}
}

// removeBundles removes those with index objects that are gone.
func (a *Archive) removeBundles(ctx context.Context, digits map[string]bool) error {
	largest, others, err := a.bundles(ctx)
	if err != nil {
		return err
	}
	for _, b := range slices.AppendSeq(others, maps.Values(largest)) {
		if !digits[b.digits] {
			continue
		}
		if err := a.bucket.remove(ctx, b.name); err != nil {
			return err
		}
	}
	return nil
}
