//go:build e2e

// Package archive tests the archive on a real S3 server, versitygw, with faults that a proxy between them injects.
// `make e2e` runs it. BENCHWATCH_ARCHIVE_RUNS sets how many runs two machines upload while they are killed.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/archive"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/s3server"
)

func startServer(t *testing.T) *s3server.Server {
	t.Helper()
	s := s3server.Start(t, "team")
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.Secret)
	return s
}

// proxy passes requests on to a server, or does something else with them.
type proxy struct {
	*httptest.Server
	fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	hung  chan struct{} // closed: those that hang end
}

func startProxy(t *testing.T, s *s3server.Server) *proxy {
	p := &proxy{hung: make(chan struct{})}
	pass := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", s.Address }, // the Host is signed
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) },
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fault := p.fault.Load(); fault != nil && (*fault)(w, r) {
			return
		}
		pass.ServeHTTP(w, r)
	}))
	p.Config.ErrorLog = nil
	t.Cleanup(func() { close(p.hung); p.CloseClientConnections(); p.Close() })
	return p
}

func (p *proxy) set(fault func(http.ResponseWriter, *http.Request) bool) {
	if fault == nil {
		p.fault.Store(nil)
		return
	}
	p.fault.Store(&fault)
}

// answers is an error of S3.
func answers(status int, code string, only ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if len(only) > 0 && r.Method != only[0] {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>m</Message></Error>`, code)
		return true
	}
}

func open(t *testing.T, address, bucket string) *archive.Archive {
	t.Helper()
	a, err := archive.Open(archive.Options{
		URL: "s3://" + bucket + "/runs?endpoint=http://" + address, CacheDir: t.TempDir(), Tools: registry.Tools, Timeout: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newRun(t *testing.T, dataDir, id, generator string, size int) rundir.Directory {
	t.Helper()
	start := time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)
	end := start.Add(time.Minute)
	meta := rundir.Meta{
		ID: id, Title: id,
		Benchmark: rundir.Benchmark{Tool: "sysbench", Workload: "oltp_read_write", Threads: 16},
		Process:   rundir.Process{Generator: generator},
		Timing:    rundir.Timing{StartedAt: start},
		End:       rundir.End{EndedAt: &end, Outcome: rundir.Succeeded},
		Closing:   rundir.Closing{ClosedAt: &end},
	}
	dir, claim, err := rundir.CreateWith(dataDir, meta, func(d rundir.Directory) error {
		random := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32.32s", id+generator))))
		noise := make([]byte, size)
		_, _ = random.Read(noise)
		return errors.Join(os.WriteFile(d.Path(rundir.StdoutFile), []byte("[ 1s ] thds: 16 tps: 10.00 qps: 20.00 (r/w/o: 1.00/1.00/1.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00\n"), 0o600),
			os.WriteFile(d.Path(rundir.StatusFile), noise, 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
	claim.Release()
	return dir
}

// TestFaults guards that each fault is reported in a clear line without a secret, that no partial run is visible
// meanwhile, and that the upload is complete after the fault.
func TestFaults(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s)
	u, _ := url.Parse(p.URL)
	proxied := u.Host
	cut := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		_, _ = io.CopyN(io.Discard, r.Body, 1000)
		panic(http.ErrAbortHandler)
	}
	hang := func(http.ResponseWriter, *http.Request) bool { <-p.hung; return true }
	for name, fault := range map[string]struct {
		begin, end func()
		address    string
		bucket     string
		want       string
	}{
		"busy":       {func() { p.set(answers(503, "SlowDown")) }, nil, proxied, "team", "the server answers 503 Service Unavailable"},
		"full":       {func() { p.set(answers(507, "XMinioStorageFull", http.MethodPut)) }, nil, proxied, "team", "no space left"},
		"read-only":  {func() { p.set(answers(403, "AccessDenied", http.MethodPut)) }, nil, proxied, "team", "access denied: the account lacks the right, or its keys are wrong"},
		"hung":       {func() { p.set(hang) }, nil, proxied, "team", "no answer within 300ms"},
		"cut":        {func() { p.set(cut) }, nil, proxied, "team", "the connection broke"},
		"killed":     {func() { s.Kill(t) }, func() { s.Again(t) }, s.Address, "team", "nothing is listening there"},
		"no bucket":  {nil, func() { _ = os.Mkdir(filepath.Join(s.Folder, "later"), 0o755) }, s.Address, "later", "the bucket does not exist"},
		"wrong keys": {func() { t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret") }, func() { t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.Secret) }, s.Address, "team", "the credentials are refused (SignatureDoesNotMatch)"},
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.ReplaceAll(name, " ", "-")
			dir := newRun(t, t.TempDir(), id, "gen1", 5<<20)
			if fault.begin != nil {
				fault.begin()
			}
			_, err := open(t, fault.address, fault.bucket).Push(t.Context(), dir, nil)
			if !errors.Is(err, archive.ErrUnavailable) || !strings.HasSuffix(err.Error(), fault.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want …%s", err, fault.want)
			}
			for _, text := range []string{s3server.Secret, "wrong-secret", "Signature=", "Authorization"} {
				if err != nil && strings.Contains(err.Error(), text) {
					t.Errorf("the error has a secret: %v", err)
				}
			}
			p.set(nil)
			if fault.end != nil {
				fault.end()
			}
			a := open(t, fault.address, fault.bucket)
			entries, err := a.Entries(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Find(entries, id); err == nil {
				t.Error("a run is visible whose upload failed")
			}
			pushed, err := a.Push(t.Context(), dir, nil)
			if err != nil || pushed.Existed {
				t.Fatal(pushed, err)
			}
			check(t, a, map[string]rundir.Directory{id: dir})
		})
	}
}

// check compares the archived runs with their directories, byte for byte.
func check(t *testing.T, a *archive.Archive, want map[string]rundir.Directory) {
	t.Helper()
	all, err := a.List(t.Context(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, x := range all {
		dir, ok := want[x.ID]
		if !ok {
			continue
		}
		found[x.ID] = true
		got, err := a.Run(t.Context(), x)
		if err != nil {
			t.Error(err)
			continue
		}
		if out, err := exec.Command("diff", "-r", "-x", ".*", string(dir), string(got)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", x.ID, err, out)
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d of %d runs are in the archive", len(found), len(want))
	}
}

// TestKilledWriters guards that two machines that upload at once, and are killed again
// and again, as is the server, lose no run and no byte.
func TestKilledWriters(t *testing.T) {
	runs := 60
	if n, err := strconv.Atoi(os.Getenv("BENCHWATCH_ARCHIVE_RUNS")); err == nil {
		runs = n
	}
	s := startServer(t)
	binary := filepath.Join(t.TempDir(), "benchwatch")
	if err := agents.Build(binary, "."); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	want := map[string]rundir.Directory{}
	data := []string{t.TempDir(), t.TempDir()}
	for i := range runs {
		machine := i % 2
		id := fmt.Sprintf("run%d", i)
		want[id] = newRun(t, data[machine], id, fmt.Sprintf("gen%d", machine), 20_000)
	}
	address := "s3://team/runs?endpoint=http://" + s.Address
	var kills atomic.Int64
	var machines sync.WaitGroup
	begin := time.Now()
	for m, dir := range data {
		random := rand.New(rand.NewPCG(seed, uint64(m)))
		machines.Go(func() {
			for tries := 0; ; tries++ {
				// Rarely enough that the end is reached.
				limit := time.Duration(random.Int64N(int64(200*time.Millisecond)))*time.Duration(tries+1) + 50*time.Millisecond
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				cmd := exec.CommandContext(ctx, binary, "archive", "push", "--archive="+address, "--data-dir="+dir)
				out, err := cmd.CombinedOutput()
				cancel()
				state := cmd.ProcessState
				if state != nil && state.Success() { // err may be that of the context, if the end came at the deadline
					return
				}
				if state == nil || !state.Sys().(syscall.WaitStatus).Signaled() {
					t.Errorf("%v: %s", err, out)
					return
				}
				kills.Add(1)
			}
		})
	}
	machines.Wait()
	t.Logf("%d runs by two machines in %v, killed %d times", runs, time.Since(begin).Round(time.Millisecond), kills.Load())
	if kills.Load() == 0 {
		t.Error("nothing was killed")
	}
	a := open(t, s.Address, "team")
	begin = time.Now()
	if all, err := a.List(t.Context(), func(err error) { t.Error(err) }); err != nil || len(all) != runs {
		t.Errorf("%d runs listed, %v", len(all), err)
	}
	t.Logf("listed in %v", time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	if all, err := a.List(t.Context(), func(err error) { t.Error(err) }); err != nil || len(all) != runs {
		t.Errorf("%d runs listed, %v", len(all), err)
	}
	t.Logf("listed from the cache in %v", time.Since(begin).Round(time.Millisecond))
	check(t, a, want)
}
