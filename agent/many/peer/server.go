package peer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/version"

	"github.com/benchwatch/benchwatch/agent/many/mirror"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

const (
	// maxAnswers is the number of requests answered at once.
	maxAnswers = 8
	// answerTime is how long a peer may take to read an answer.
	answerTime = 30 * time.Second

	listPath = "/api/peer/runs"
)

// files are the served files of a run, in addition to run.json.
var files = slices.Concat(mirror.Outputs, mirror.Records, []string{rundir.MarkersFile})

// Server serves the run directories of this agent to its peers, read-only.
type Server struct {
	DataDir string
	// Runs returns the live runs and the newest ended ones.
	Runs func() []ingest.Snapshot
	// Output reports whether the tools' output is served, which requires a password or a
	// certificate of the client.
	Output func() bool

	answers chan struct{}
}

// Register adds the API to mux: the list of runs, and the new data of one run.
func (s *Server) Register(mux *http.ServeMux) {
	s.answers = make(chan struct{}, maxAnswers)
	mux.HandleFunc("GET "+listPath, s.limit(s.serveList))
	mux.HandleFunc("GET "+listPath+"/{run}", s.limit(s.serveNews))
}

// limit limits the number of concurrent answers and the time for each.
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
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // not supported by every writer
		next(w, r)
	}
}

// serveList answers with the open runs and, with ?closed=SECONDS, the runs closed within these
// seconds. It leaves out runs that this agent mirrors itself, so that peers in a circle do not pass
// runs around.
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
	l := mirror.List{Format: mirror.Format, Version: version.Version, Output: s.Output(), Runs: mirror.Entries{}}
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
		l.Runs = append(l.Runs, mirror.Entry{ID: m.ID, Closed: m.Closed(),
			Changed: info.ModTime().UnixNano(), Sizes: mirror.Sizes(dir, files)})
	}
	answer(w, http.StatusOK, l)
}

// serveNews answers with the data of a run that a copy, described by ?have=JSON, lacks.
func (s *Server) serveNews(w http.ResponseWriter, r *http.Request) {
	var have mirror.Have
	if text := r.URL.Query().Get("have"); text != "" && json.Unmarshal([]byte(text), &have) != nil {
		refuse(w, http.StatusBadRequest, "have is not what a copy has")
		return
	}
	for name := range maps.Keys(have.Files) {
		if slices.Contains(mirror.Outputs, name) && !s.Output() {
			refuse(w, http.StatusForbidden, "the tools' output is served only with authentication: basic_auth_users or client certificates in --web.config.file")
			return
		}
	}
	id := r.PathValue("run")
	if err := rundir.CheckID(id); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	dir := rundir.At(s.DataDir, id)
	meta, err := dir.Load()
	if dir.Removed() || err == nil && (meta.IsCopy() || !dir.Within(s.DataDir)) {
		answer(w, http.StatusNotFound, refusal{Error: "no such run", Gone: true})
		return
	}
	var n mirror.News
	if err == nil {
		n, err = mirror.Read(dir, &meta, files, &have)
	}
	switch {
	case err == nil:
		answer(w, http.StatusOK, n)
	case errors.Is(err, fs.ErrPermission):
		refuse(w, http.StatusForbidden, "the agent may not read a file of the run")
	default: // it may contain paths of this machine
		refuse(w, http.StatusBadRequest, "the run can't be read")
	}
}

// refusal is the answer to a refused request.
type refusal struct {
	Error string `json:"error"`
	// Gone: according to an agent the run does not exist.
	Gone bool `json:"gone,omitempty"`
}

func refuse(w http.ResponseWriter, status int, text string) {
	answer(w, status, refusal{Error: text})
}

func answer(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content) // the peer has disconnected
}
