// Package peer mirrors the runs of other agents: what an agent serves of its run
// directories, and the copies that it keeps of those of its peers.
package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/version"
	"golang.org/x/sys/unix"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// format is the version of what is served. Another one is refused.
	format = 1
	// maxAnswers is how many files are served at once.
	maxAnswers = 8
	// answerTime is how long a peer may take to read an answer.
	answerTime = 30 * time.Second

	listPath = "/api/peer/runs"
)

// files are those of a run that are served, beside run.json.
var files = slices.Concat(mirror.Outputs, mirror.Records, []string{rundir.MarkersFile})

// Server serves the run directories of this agent to its peers. Nothing of it changes
// anything.
type Server struct {
	DataDir string
	// Runs are the live runs and the newest ended ones.
	Runs func() []ingest.Snapshot
	// Output reports whether the tools' output is served: who asks has shown a
	// password or a certificate.
	Output func() bool

	answers chan struct{}
}

// list is what is served of all runs.
type list struct {
	Format  int     `json:"format"`
	Version string  `json:"version"`
	Output  bool    `json:"output"`
	Runs    []entry `json:"runs"`
}

// entry is a run in the list.
type entry struct {
	ID     string `json:"id"`
	Closed bool   `json:"closed,omitempty"`
	// Changed is when run.json was written, in nanoseconds.
	Changed int64 `json:"changed"`
	// Sizes are those of the files that there are.
	Sizes map[string]int64 `json:"sizes"`
}

// Register adds the API to mux.
func (s *Server) Register(mux *http.ServeMux) {
	s.answers = make(chan struct{}, maxAnswers)
	mux.HandleFunc("GET "+listPath, s.limit(s.serveList))
	mux.HandleFunc("GET "+listPath+"/{id}/{file}", s.limit(s.serveFile))
}

// limit bounds how many answers are under way, and how long each takes.
func (s *Server) limit(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		select {
		case s.answers <- struct{}{}:
			defer func() { <-s.answers }()
		default:
			h.Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "too many peers read at once")
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // not every writer can
		next(w, r)
	}
}

// serveList answers with the runs that are not closed, and with ?closed=SECONDS also
// those that were closed in the last seconds. What this agent mirrors itself is not
// among them: peers in a circle do not pass runs around.
func (s *Server) serveList(w http.ResponseWriter, r *http.Request) {
	recent := time.Duration(0)
	if text := r.URL.Query().Get("closed"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			refuse(w, http.StatusBadRequest, "closed is not a number of seconds")
			return
		}
		recent = time.Duration(n) * time.Second
	}
	l := list{Format: format, Version: version.Version, Output: s.Output(), Runs: []entry{}}
	now := time.Now()
	snaps := s.Runs()
	for i := range snaps {
		m := &snaps[i].Meta
		if m.IsCopy() || m.Closed() && now.Sub(*m.ClosedAt) > recent {
			continue
		}
		dir := rundir.At(s.DataDir, m.ID)
		info, err := os.Lstat(dir.Path(rundir.MetaFile))
		if err != nil || !dir.Within(s.DataDir) {
			continue // removed meanwhile
		}
		e := entry{ID: m.ID, Closed: m.Closed(), Changed: info.ModTime().UnixNano(), Sizes: map[string]int64{}}
		for _, name := range files {
			if info, err := os.Lstat(dir.Path(name)); err == nil && info.Mode().IsRegular() {
				e.Sizes[name] = info.Size()
			}
		}
		l.Runs = append(l.Runs, e)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(l) // the peer is gone
}

// serveFile answers with a part of a file, whose Range is requested. Its ETag is that of
// the file, not of its present content: it grows. That of run.json is its content's.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("file")
	dir := rundir.At(s.DataDir, id)
	var meta rundir.Meta
	err := rundir.CheckID(id)
	if err == nil && !dir.Within(s.DataDir) {
		err = fs.ErrNotExist
	}
	if err == nil {
		meta, err = dir.Load()
	}
	if err == nil && (meta.IsCopy() || name != rundir.MetaFile && !slices.Contains(files, name)) {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) && name == rundir.MetaFile && !meta.IsCopy() && !dir.Removed() {
		err = errors.New("it was not removed: no copy may end")
	}
	if err != nil {
		refuseFile(w, err)
		return
	}
	if name == rundir.MetaFile {
		data, err := json.Marshal(meta)
		if err != nil {
			refuseFile(w, err)
			return
		}
		tag := `"` + mirror.Hash(data) + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) // the peer is gone
		return
	}
	if slices.Contains(mirror.Outputs, name) && !s.Output() {
		refuse(w, http.StatusForbidden, "the tools' output is served only with authentication: basic_auth_users or client certificates in --web.config.file")
		return
	}
	f, err := rundir.Open(dir.Path(name))
	if err != nil {
		refuseFile(w, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		refuseFile(w, err)
		return
	}
	h := w.Header()
	h.Set("ETag", tagOf(f))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	// The size of now: what is written meanwhile is for the next request.
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(f, 0, info.Size()))
}

// tagOf identifies a file while it grows.
func tagOf(f *os.File) string {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return ""
	}
	return fmt.Sprintf(`"%x-%x"`, st.Dev, st.Ino)
}

func refuseFile(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, http.StatusNotFound, noSuchRun)
	case errors.Is(err, fs.ErrPermission):
		refuse(w, http.StatusForbidden, "the agent may not read the file")
	default:
		refuse(w, http.StatusBadRequest, "the file can't be read")
	}
}

// noSuchRun distinguishes an agent's answer from those of other servers.
const noSuchRun = "no such run or file"

// refusal is the answer to a request that is refused.
type refusal struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(refusal{text}) // the peer is gone
}
