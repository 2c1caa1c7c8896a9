package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// Recorder appends to status.jsonl, host.jsonl and settings.jsonl. A nil Recorder
// records nothing. One goroutine records; Close may be called by another.
type Recorder struct {
	dir           rundir.Directory
	status, hosts *lineFile
	statuses      statusWriter
	hostStatuses  statusWriter
	settings      settingsRecorder
}

// ErrDiskLow is returned for a record that was left out so that the tool's output has
// the rest of the disk.
var ErrDiskLow = errors.New("the disk is nearly full: the rest is for the tool's output")

// NewRecorder records a run that began at start.
func NewRecorder(dir rundir.Directory, start time.Time) *Recorder {
	return &Recorder{
		dir:    dir,
		status: &lineFile{path: dir.Path(rundir.StatusFile)}, hosts: &lineFile{path: dir.Path(host.File)},
		settings: settingsRecorder{file: &lineFile{path: dir.Path(SettingsFile)}, start: start, seen: map[string]*engine.SettingsReading{}},
	}
}

// Record appends a tick: the targets' answers, and their settings if these are new. It writes each file even if the
// other fails, and returns the errors. On a disk that is nearly full it records nothing, with ErrDiskLow.
func (r *Recorder) Record(f engine.Frame) error {
	if r == nil {
		return nil
	}
	if space, err := rundir.SpaceOf(string(r.dir)); err == nil && space.Low() {
		r.statuses.forget()
		return ErrDiskLow
	}
	r.statuses.line = r.statuses.append(r.statuses.line[:0], f)
	err := r.status.append(r.statuses.line)
	if err != nil {
		r.statuses.forget()
	}
	err = errors.Join(err, r.settings.record(f))
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// RecordHosts appends what the machines of the run did at a tick. On a disk that is
// nearly full it records nothing.
func (r *Recorder) RecordHosts(f engine.Frame) error {
	if r == nil || len(f.Samples) == 0 {
		return nil
	}
	w := &r.hostStatuses
	if space, err := rundir.SpaceOf(string(r.dir)); err == nil && space.Low() {
		w.forget()
		return ErrDiskLow
	}
	w.line = w.append(w.line[:0], f)
	if err := r.hosts.append(w.line); err != nil {
		w.forget()
		return fmt.Errorf("write what the machines did: %w", err)
	}
	facts := f
	facts.Samples = nil
	for _, s := range f.Samples {
		if (s.Target.Engine == host.Procfs || s.Target.Engine == host.SSH) && s.Settings != nil {
			target := *s.Target // servers may have the same name
			target.Name = MachineSettings + target.Name
			s.Target = &target
			facts.Samples = append(facts.Samples, s)
		}
	}
	if err := r.settings.record(facts); err != nil {
		return fmt.Errorf("write what the machines are: %w", err)
	}
	return nil
}

// RecordSettings appends the targets' settings if these are new.
func (r *Recorder) RecordSettings(f engine.Frame) error { return r.settings.record(f) }

// The engines of what was not sampled but imported: a server of dumps, a machine of the logs of
// monitoring programs.
const (
	DumpEngine       = "status-dump"
	MachineLogEngine = "monitor-log"
	// CloudWatchEngine is for machines of managed servers, which have one value per minute.
	CloudWatchEngine = "cloudwatch"
)

// MachineSettings is the prefix of machines' names among the targets of settings.jsonl.
const MachineSettings = "machine "

// Close closes the files. Later records are dropped.
func (r *Recorder) Close() {
	if r != nil {
		r.status.close()
		r.hosts.close()
		r.settings.file.close()
	}
}

// lineFile is a file of JSON lines that is created with its first line. It has mu because frames and the end of the run
// come from different goroutines.
type lineFile struct {
	path string

	mu     sync.Mutex
	file   *os.File
	torn   bool // the file ends within a line
	closed bool
}

// appendJSON appends values, a line each.
func (l *lineFile) appendJSON(values ...any) error {
	lines, err := jsonLines(values...)
	if err != nil {
		return err
	}
	return l.append(lines)
}

// jsonLines returns values, a line each.
func jsonLines(values ...any) (lines []byte, err error) {
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, data...), '\n')
	}
	return lines, nil
}

// append adds whole lines with one write. After a write that failed within a line
// the next one begins on a new line.
func (l *lineFile) append(lines []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(lines) == 0 {
		return nil
	}
	if err := l.open(); err != nil {
		return err
	}
	if l.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := l.file.Write(lines)
	if n > 0 {
		l.torn = lines[n-1] != '\n'
	}
	return err
}

func (l *lineFile) open() error {
	if l.file != nil {
		return nil
	}
	f, err := rundir.OpenRecord(l.path)
	if err != nil {
		return err
	}
	l.file = f
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		end := make([]byte, 1)
		_, err := f.ReadAt(end, info.Size()-1)
		l.torn = err != nil || end[0] != '\n'
	}
	return nil
}

func (l *lineFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// Newest reads the samples of a run's servers or machines as they are recorded.
type Newest struct {
	path   string
	offset int64
	reader statusReader
	buffer []byte
}

// NewNewest returns a Newest of a record that has read nothing yet.
func NewNewest(path string) *Newest {
	n := &Newest{path: path}
	n.reader = statusReader{zero: time.Unix(0, 0), within: Whole, rows: math.MaxInt, targets: map[string]*readTarget{}}
	return n
}

// maxNewest is how many bytes are read at once.
const maxNewest = 4 << 20

// Read reads what has been recorded since the previous call. It returns the servers' rows, which are valid until the
// next call. Rows from Begin are new; rates need the row before. A file that does not exist has no rows.
func (n *Newest) Read() ([]*ServerRows, error) {
	for _, s := range n.reader.servers {
		s.next()
	}
	file, err := rundir.Open(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	defer file.Close()
	if n.buffer == nil {
		n.buffer = make([]byte, LongestStatus)
	}
	for total := 0; total < maxNewest; {
		size, err := file.ReadAt(n.buffer, n.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read status: %w", err)
		}
		end := bytes.LastIndexByte(n.buffer[:size], '\n') + 1
		if end == 0 {
			if size == len(n.buffer) { // no line is that long
				n.offset += int64(size)
				continue
			}
			break
		}
		for line := range bytes.Lines(n.buffer[:end]) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				n.reader.add(line)
			}
		}
		n.offset += int64(end)
		total += end
	}
	return n.reader.servers, nil
}
