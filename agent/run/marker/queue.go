package marker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// maxLine is the longest line of a queue file, in bytes.
	maxLine = 64 << 10
	// maxMarkers is the size in bytes up to which a queue file takes markers, maxQueue the size up
	// to which it is read, with the receipts. maxItems are more markers than the first size can have.
	// Another user may have written the file.
	maxMarkers = 2 << 20
	maxQueue   = 4 * maxMarkers
	maxItems   = 30_000
	// maxOwned is how many bytes of the queues of one user's runs are in memory at once.
	maxOwned = 2 * maxQueue
	// maxPoints bounds the points of one queue that are shown.
	maxPoints = 100
	// giveUpAfter is how long a refused marker is retried: the cause may be a temporary
	// misconfiguration.
	giveUpAfter = 24 * time.Hour
)

// entry is one line of a queue file. Exactly one field is set.
type entry struct {
	// Marker adds a marker or replaces the content of the one with its id.
	Marker *Marker `json:"marker,omitempty"`
	// Creating precedes the request that creates an annotation. Until its answer follows, Grafana
	// may still carry out the request.
	Creating  *receipt `json:"creating,omitempty"`
	Delivered *receipt `json:"delivered,omitempty"`
	Rejected  *receipt `json:"rejected,omitempty"`
}

// receipt is Grafana's answer to one version of a marker, or the request for it.
type receipt struct {
	ID         string    `json:"id"`
	Version    string    `json:"version"`
	Annotation int64     `json:"annotation,omitempty"` // Grafana's id, for human readers of the file
	Reason     string    `json:"reason,omitempty"`     // why Grafana refused it
	At         time.Time `json:"at"`
	// Doubtful: Grafana may also still carry out an earlier request, so a duplicate must be looked
	// for. Afterwards a second receipt without it follows.
	Doubtful bool `json:"doubtful,omitempty"`
}

// parseEntry parses a line. It ignores fields that a later version may add.
func parseEntry(line []byte) (e entry, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	set := 0
	for _, is := range []bool{e.Marker != nil, e.Creating != nil, e.Delivered != nil, e.Rejected != nil} {
		if is {
			set++
		}
	}
	if set != 1 || e.Marker != nil && e.Marker.ID == "" {
		return e, errors.New("damaged entry")
	}
	if e.Marker != nil {
		*e.Marker, err = e.Marker.clean()
	}
	return e, err
}

// appendEntry adds a line to a queue file, and creates the file if necessary.
func appendEntry(path string, e entry) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil { // terminates the line
		return fmt.Errorf("write marker: %w", err)
	}
	if line.Len() > maxLine {
		return fmt.Errorf("write marker: %d bytes are too many", line.Len())
	}
	info, statErr := os.Stat(path)
	if statErr == nil && e.Marker != nil && info.Size() > maxMarkers {
		return fmt.Errorf("write marker: %s has %d MiB: it takes no more markers", path, maxMarkers>>20)
	}
	f, err := rundir.OpenRecord(path)
	if err != nil {
		return fmt.Errorf("write marker: %w", err)
	}
	defer f.Close() // appendLine has synced it
	if err := appendLine(f, line.Bytes()); err != nil {
		return fmt.Errorf("write marker to %s: %w", path, err)
	}
	if statErr != nil { // the new file's directory entry must be durable too
		if dir, err := os.Open(filepath.Dir(path)); err == nil {
			_ = dir.Sync() // some file systems can't
			dir.Close()
		}
	}
	return nil
}

// appendFile is the part of an os.File, opened with O_APPEND, that appendLine needs.
type appendFile interface {
	io.Writer
	io.ReaderAt
	io.Seeker
	Sync() error
}

// appendLine writes a line at the end of f in one write, after terminating a partial line that a
// crash or a full disk may have left. Writers need no lock: each checks afterwards that its line
// began a line, and repeats it if another process's partial line came in between.
func appendLine(f appendFile, line []byte) error {
	for range 3 {
		end, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return err
		}
		begins, err := beginsLine(f, end)
		if err != nil {
			return err
		}
		if !begins {
			line = append([]byte{'\n'}, line...)
		}
		if _, err := f.Write(line); err != nil {
			return err
		}
		if !begins {
			break
		}
		// O_APPEND leaves the offset after the written bytes.
		if end, err = f.Seek(0, io.SeekCurrent); err != nil {
			return err
		}
		if begins, err = beginsLine(f, end-int64(len(line))); err != nil {
			return err
		}
		if begins {
			break
		}
	}
	return f.Sync()
}

// beginsLine reports whether a line begins at offset.
func beginsLine(f io.ReaderAt, offset int64) (bool, error) {
	if offset <= 0 {
		return true, nil
	}
	var b [1]byte
	_, err := f.ReadAt(b[:], offset-1)
	return b[0] == '\n', err
}

// item is a marker and the state of its delivery.
type item struct {
	Marker
	version  string  // of the content
	receipt  receipt // Grafana's last answer, perhaps to an earlier version
	rejected bool    // that answer was a rejection
	doubtful bool    // Grafana may still carry out a request without an answer

	// Only in memory: this process's attempts.
	notBefore time.Time // when it may be sent again
	refusals  int
}

func (it *item) delivered() bool { return it.receipt.Version == it.version && !it.rejected }
func (it *item) refused() bool   { return it.receipt.Version == it.version && it.rejected }

// replaceableBy: a late "began" does not reopen an ended marker.
func (it *item) replaceableBy(m *Marker) bool {
	return m.Kind == it.Kind && m.Run == it.Run && (it.End.IsZero() || !m.End.IsZero())
}

// due reports whether the marker should be sent or verified now.
func (it *item) due(now time.Time) bool {
	switch {
	case it.delivered():
		return it.doubtful && now.Sub(it.receipt.At).Abs() >= verifyAfter && !now.Before(it.notBefore)
	case it.refused() && now.Sub(it.receipt.At).Abs() > giveUpAfter:
		return false
	}
	return !now.Before(it.notBefore)
}

// queue is the state of a queue file when it was last read: the sum of its lines.
type queue struct {
	path string
	file file
	fold
	points     []Marker // see newestPoints
	unrecorded []entry  // applied, but not written because the disk is full
	complaint  string   // the last problem logged about the file
	copied     bool     // a peer delivers the markers
	owner      uint32   // the user who owns the run directory
	limit      int64    // the size of the file up to which it is read
	cut        bool     // the limit kept something from being read
}

// fold is the result of the lines of a queue file.
type fold struct {
	items   []*item          // in the order of their first entries
	byID    map[string]*item // also by runKey; nil: not loaded
	offset  int64            // after the last complete line
	damaged int              // lines that could not be read
}

// file identifies a queue file and has its length. The zero value means that there is no file.
type file struct {
	device, inode uint64
	size          int64
}

func newFile(st *unix.Stat_t) file {
	return file{device: uint64(st.Dev), inode: st.Ino, size: st.Size} //nolint:unconvert // uint32 on some platforms
}

// fileAt returns the queue file at path.
func fileAt(path string) (file, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file{}, nil
	case err != nil:
		return file{}, err
	}
	return newFile(&st), nil
}

func (f file) same(other file) bool { return f.device == other.device && f.inode == other.inode }

func newQueue(dir rundir.Directory) *queue {
	owner, _ := dir.Owner() // of a missing directory there is nothing to read
	return &queue{path: dir.Path(rundir.MarkersFile), owner: owner, limit: maxQueue}
}

// runKey identifies the region of a run: two processes that both open a region append two markers,
// and all readers use the first.
func runKey(run string) string { return "run " + run }

func (f *fold) find(m *Marker) *item {
	if it := f.byID[m.ID]; it != nil || m.Kind != Run {
		return it
	}
	return f.byID[runKey(m.Run)]
}

// apply applies a line. Applying it twice changes nothing.
func (f *fold) apply(e entry) {
	answer, rejected := e.Delivered, false
	if e.Rejected != nil {
		answer, rejected = e.Rejected, true
	}
	switch {
	case e.Creating != nil:
		if it := f.byID[e.Creating.ID]; it != nil {
			it.doubtful = true
		}
		return
	case answer != nil:
		if it := f.byID[answer.ID]; it != nil {
			it.receipt, it.rejected, it.doubtful = *answer, rejected, answer.Doubtful
		}
		return
	}
	m := *e.Marker
	it := f.find(&m)
	switch {
	case it == nil:
		it = &item{Marker: m}
		f.items = append(f.items, it)
	case !it.replaceableBy(&m):
		return
	}
	f.byID[m.ID] = it
	if m.Kind == Run {
		f.byID[runKey(m.Run)] = it
	}
	m.ID = it.ID
	version := m.version()
	if version != it.version && it.refusals > 0 { // otherwise a timed-out request is settled
		it.notBefore, it.refusals = time.Time{}, 0
	}
	it.Marker, it.version = m, version
}

// refresh applies what was appended. It reads a file that was replaced or truncated from its start.
// It reads a queue that is not loaded if load is set or the file has changed.
func (q *queue) refresh(load bool) error {
	now, err := fileAt(q.path)
	if err == nil && now == (file{}) {
		q.unload()
		q.file, q.unrecorded = file{}, nil
		return nil
	}
	loaded := q.byID != nil
	if err == nil && now == q.file && !q.cut && (loaded || !load) {
		return nil
	}
	f, err := rundir.Open(q.path)
	if err != nil {
		return fmt.Errorf("read markers: %w", err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("read markers: %w", err)
	}
	now = newFile(&st)
	if !loaded || !now.same(q.file) || now.size < q.offset {
		q.fold = fold{byID: map[string]*item{}}
	}
	// Only up to the size at that time: later bytes count as growth.
	if err := q.read(io.NewSectionReader(f, q.offset, max(0, min(now.size, q.limit)-q.offset))); err != nil {
		return fmt.Errorf("read markers from %s: %w", q.path, err)
	}
	q.file, q.cut = now, q.limit < min(now.size, maxQueue)
	for _, e := range q.unrecorded {
		q.apply(e)
	}
	q.points = q.newestPoints()
	return nil
}

// read applies the lines of r, which begins at f.offset. If the last line is whole but has no line
// end yet, it is applied now and again later.
func (f *fold) read(r io.Reader) error {
	br := bufio.NewReaderSize(r, maxLine)
	tooLong := 0 // bytes of the line before those from ReadSlice
	for {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			tooLong += len(line)
			continue
		}
		ended := err == nil
		if !ended && !errors.Is(err, io.EOF) {
			return err
		}
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0 && tooLong == 0:
		case len(f.items) >= maxItems && bytes.HasPrefix(text, []byte(`{"marker"`)):
			f.damaged++
		default:
			e, err := parseEntry(text)
			switch {
			case err == nil && tooLong == 0:
				f.apply(e)
			case ended:
				f.damaged++
			}
		}
		if !ended {
			return nil
		}
		f.offset += int64(tooLong + len(line))
		tooLong = 0
	}
}

// unload drops the markers until the file changes.
func (q *queue) unload() { q.fold, q.points = fold{}, nil }

// waiting is the number of markers that Grafana has neither accepted nor refused.
func (q *queue) waiting() int {
	n := 0
	for _, it := range q.items {
		if !it.delivered() && !it.refused() {
			n++
		}
	}
	return n
}

// pending reports whether there is anything to send or to record, now or later.
func (q *queue) pending() bool {
	return len(q.unrecorded) > 0 || q.waiting() > 0 ||
		slices.ContainsFunc(q.items, func(it *item) bool { return it.delivered() && it.doubtful })
}

// due returns the first marker to send now, or nil.
func (q *queue) due(now time.Time) *item {
	if i := slices.IndexFunc(q.items, func(it *item) bool { return it.due(now) }); i >= 0 {
		return q.items[i]
	}
	return nil
}

// newestPoints returns the points, newest first, and only the newest for each text.
func (q *queue) newestPoints() []Marker {
	var points []Marker
	for _, it := range q.items {
		if it.Kind == Point {
			points = append(points, it.Marker)
		}
	}
	slices.SortStableFunc(points, func(a, b Marker) int { return b.Start.Compare(a.Start) })
	seen := map[[2]string]bool{}
	points = slices.DeleteFunc(points, func(p Marker) bool {
		again := seen[[2]string{p.Run, p.Text}]
		seen[[2]string{p.Run, p.Text}] = true
		return again
	})
	return points[:min(len(points), maxPoints)]
}
