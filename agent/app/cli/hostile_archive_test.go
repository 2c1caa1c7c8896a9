package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// indexName returns the name of an index object, by its number.
func indexName(n int) string { return fmt.Sprintf("index/run%d~%016x~%016x.json", n, n, n) }

// listing is a page of S3's list of objects.
func listing(next string, names ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><KeyCount>%d</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>%t</IsTruncated>`, len(names), next != "")
	if next != "" {
		fmt.Fprintf(&b, "<NextContinuationToken>%s</NextContinuationToken>", next)
	}
	for _, name := range names {
		fmt.Fprintf(&b, "<Contents><Key>%s</Key><LastModified>2026-11-21T14:03:00.000Z</LastModified><ETag>x</ETag><Size>1</Size></Contents>", name)
	}
	return b.String() + "</ListBucketResult>"
}

// endless writes text until the other side has enough.
func endless(w io.Writer, text string) {
	block := []byte(strings.Repeat(text, 1+64<<10/len(text)))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// lyingStore is an S3 server, defined by its answers to a list and to a get.
type lyingStore struct {
	list, get http.HandlerFunc
	tls       bool
	waits     bool   // the command does not end by itself
	says      string // in the command's error
}

// TestHostileObjectStore: an S3 server that lies, is silent or never ends an answer ends
// `archive list` and `archive pull` with an error, in bounded memory.
func TestHostileObjectStore(t *testing.T) {
	t.Parallel()
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
	}
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}
	one := text(listing("", indexName(1)))
	many := make([]string, 1000)
	for i := range many {
		many[i] = indexName(i)
	}
	stolen := make(chan string, 100)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	t.Cleanup(elsewhere.Close)
	page := 0
	for name, store := range map[string]lyingStore{
		"list of one page without end": {list: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<ListBucketResult>")
			endless(w, "<Contents/>")
		}, says: "more than was requested"},
		"text without end": {list: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<ListBucketResult><Name>")
			endless(w, "x")
		}, says: "more than was requested"},
		"zeros without end":        {list: func(w http.ResponseWriter, _ *http.Request) { endless(w, "\x00") }, says: "unavailable"},
		"elements within elements": {list: func(w http.ResponseWriter, _ *http.Request) { endless(w, "<a>") }, says: "unavailable"},
		"pages without end": {list: func(w http.ResponseWriter, _ *http.Request) {
			page++
			io.WriteString(w, listing(fmt.Sprint("p", page), many...))
		}, says: "too many objects"},
		"names of a kilobyte without end": {list: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, listing("again", strings.Fields(strings.Repeat(strings.Repeat("x", 1000)+" ", 1000))...))
		}, says: "too many objects"},
		"other keys":           {list: text(listing("", "", "x", "index", "/etc/passwd", "../../x", "index/../../x~0~0.json", "runs/"+indexName(1))), says: "no runs"},
		"no XML":               {list: text("hello"), says: "unavailable"},
		"a page of HTML":       {list: text("<!DOCTYPE html><html><body>sign in</body></html>"), says: "unavailable"},
		"an entity that grows": {list: text(`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><ListBucketResult><Name>&b;</Name></ListBucketResult>`), says: "unavailable"},
		"less than announced": {list: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			io.WriteString(w, listing(""))
		}, says: "unavailable"},
		"more than announced": {list: one, get: func(w http.ResponseWriter, r *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nLast-Modified: Sat, 21 Nov 2026 14:03:00 GMT\r\nETag: \"x\"\r\n\r\n"+strings.Repeat("x", 1000))
		}, says: "damaged in the archive"},
		"a broken connection": {list: func(w http.ResponseWriter, _ *http.Request) { hijack(w, "HTTP/1.1 200 OK\r\nContent-Le") }, says: "unavailable"},
		"headers without end": {list: func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 5000))
		}, says: "unavailable"},
		"503":                  {list: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, says: "503"},
		"an error without end": {list: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden); endless(w, "x") }, says: "unavailable"},
		"a redirect elsewhere": {list: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, says: "unavailable"},
		"a certificate that is not valid": {list: one, tls: true, says: "certificate"},
		"index without end":               {list: one, get: func(w http.ResponseWriter, _ *http.Request) { object(w); endless(w, "{") }, says: "too long"},
		"indexes without end":             {list: text(listing("", many...)), get: func(w http.ResponseWriter, _ *http.Request) { object(w); endless(w, "{") }, says: "too long"},
		"index that is none":              {list: one, get: func(w http.ResponseWriter, _ *http.Request) { object(w); io.WriteString(w, "hello") }, says: "damaged in the archive"},
		"index of zipped zeros": {list: one, get: func(w http.ResponseWriter, _ *http.Request) {
			object(w)
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.CopyN(z, zeros{}, 200<<20)
			z.Close()
		}, says: "damaged in the archive"},
		"silence":                {list: silent, waits: true},
		"an index that is slow":  {list: one, get: func(w http.ResponseWriter, r *http.Request) { object(w); silent(w, r) }, waits: true},
		"an index that is gone":  {list: one, get: http.NotFound, says: "no longer in the archive"},
		"an index that is empty": {list: one, get: func(w http.ResponseWriter, _ *http.Request) { object(w); w.Header().Set("Content-Length", "0") }, says: "damaged in the archive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 1)
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case asked <- struct{}{}:
				default:
				}
				query := r.URL.Query()
				switch {
				case query.Has("list-type"):
					store.list(w, r)
				case store.get != nil:
					store.get(w, r)
				default:
					http.NotFound(w, r)
				}
			})
			server := httptest.NewUnstartedServer(handler)
			server.Config.ErrorLog = nil
			if store.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			t.Cleanup(server.CloseClientConnections)
			for _, args := range [][]string{{"list"}, {"pull", "run1"}} {
				folder := t.TempDir()
				c := startChildWith(t, folder, []string{"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=geheim"},
					append([]string{"archive", args[0], "--archive=s3://bucket?endpoint=" + server.URL}, args[1:]...)...)
				var out string
				if store.waits {
					c.await("it asks", func() bool { return len(asked) > 0 })
					<-asked
					out = c.terminate()
				} else {
					out = c.end()
				}
				if args[0] == "list" && !strings.Contains(out, store.says) || strings.Contains(out, "panic") || strings.Contains(out, "geheim") {
					t.Errorf("%s: %.1500s", args[0], out)
				}
			}
		})
	}
	t.Cleanup(func() {
		select {
		case got := <-stolen:
			t.Errorf("the redirect was followed: %q", got)
		default:
		}
	})
}

// object sets the headers that an S3 client needs.
func object(w http.ResponseWriter) {
	w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 14:03:00 GMT")
	w.Header().Set("ETag", `"x"`)
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// hijack sends bytes that are no answer, and closes the connection.
func hijack(w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text)
}

// TestHostileFolderArchive: what users put into a shared folder damages only their own runs, and leads nobody out of
// it.
func TestHostileFolderArchive(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	archive := filepath.Join(folder, "archive")
	outside := filepath.Join(folder, "outside")
	for _, dir := range []string{archive, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string { return startChild(t, folder, args...).end() }
	run("run", "--run-id=good", "--linger=0s", "--drain-timeout=1s", "--web.listen-address=127.0.0.1:0", "--", "sh", "-c", "echo begun")
	if out := run("archive", "push", "--archive="+archive); !strings.Contains(out, "good") {
		t.Fatal(out)
	}
	good, err := filepath.Glob(filepath.Join(archive, "index", "good~*"))
	if err != nil || len(good) != 1 {
		t.Fatal(good, err)
	}
	secret := filepath.Join(outside, "secret")
	for path, put := range map[string]func(path string) error{
		secret:                       func(path string) error { return os.WriteFile(path, []byte("topsecret"), 0o600) },
		archive + "/" + indexName(2): func(path string) error { return os.Symlink(secret, path) },
		archive + "/" + indexName(3): func(path string) error { return unix.Mkfifo(path, 0o644) },
		archive + "/" + indexName(4): func(path string) error { return os.Mkdir(path, 0o755) },
		archive + "/" + indexName(5): func(path string) error { return os.Symlink("/dev/zero", path) },
		archive + "/" + indexName(6): func(path string) error { return os.WriteFile(path, []byte("{}"), 0o644) },
		archive + "/" + indexName(7): func(path string) error {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		},
		archive + "/index/sub": func(path string) error { return os.Symlink("/", path) },
	} {
		if err := put(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"archive", "list"}, {"runs", "--json"}, {"report", "good"}} {
		out := run(append(args, "--archive="+archive)...)
		if !strings.Contains(out, "good") || strings.Contains(out, "unavailable") || strings.Contains(out, "topsecret") {
			t.Errorf("%q: %.1500s", args, out)
		}
	}
	// The folder of a run's objects leads elsewhere.
	parts, err := filepath.Glob(filepath.Join(archive, "runs", "good~*"))
	if err != nil || len(parts) != 1 {
		t.Fatal(parts, err)
	}
	if err := os.Rename(parts[0], parts[0]+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, parts[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(good[0]); err != nil { // so that the run is uploaded again
		t.Fatal(err)
	}
	out := run("archive", "push", "--archive="+archive, "good")
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 1 {
		t.Errorf("written outside of the archive: %v %v\n%s", left, err, out)
	}
	if text, err := os.ReadFile(secret); err != nil || !bytes.Equal(text, []byte("topsecret")) {
		t.Errorf("%q %v", text, err)
	}
}
