package cli

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestHugeAnswers: if a Grafana, a Prometheus, node_exporters, peers and servers answer endlessly or never, each
// command that queries them needs bounded memory, and SIGTERM ends it.
func TestHugeAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"text": func(w http.ResponseWriter, _ *http.Request) { endless(w, "x") },
		"lines": func(w http.ResponseWriter, _ *http.Request) {
			endless(w, "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1\n")
		},
		"numbers": func(w http.ResponseWriter, _ *http.Request) {
			jsonType(w)
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[`)
			endless(w, `[1,"1"],`)
		},
		"empty objects": func(w http.ResponseWriter, _ *http.Request) {
			jsonType(w)
			_, _ = io.WriteString(w, `{"status":"success","format":1,"runs":[`)
			endless(w, `{},`)
		},
		"a list": func(w http.ResponseWriter, _ *http.Request) {
			jsonType(w)
			_, _ = io.WriteString(w, `[`)
			endless(w, `{},`)
		},
		"deep": func(w http.ResponseWriter, _ *http.Request) { jsonType(w); endless(w, `[`) },
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			endless(w, "x")
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 20_000))
		},
		"zipped zeros": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.CopyN(z, zeros{}, 500<<20)
			z.Close()
		},
		"silence":      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a slow begin": func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); <-r.Context().Done() },
		"redirects":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"/x", http.StatusFound) },
		"switches": func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 101 Switching Protocols\r\n\r\n"+strings.Repeat("x", 1<<20))
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 100_000))
		},
		"chunks of text": func(w http.ResponseWriter, _ *http.Request) {
			hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"+strings.Repeat("x", 20<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				_, _ = io.Copy(io.Discard, r.Body) // only then is the end of the connection noticed
				answer(w, r)
			}))
			t.Cleanup(server.Close)
			t.Cleanup(server.CloseClientConnections)
			raw := endlessPort(t)
			folder := t.TempDir()
			config := filepath.Join(folder, "benchwatch.yml")
			text := fmt.Sprintf(`
data_dir: data
grafana: {url: '%[1]s', token_file: token}
prometheus: {url: '%[1]s'}
peers: [{url: '%[1]s'}]
hosts: [{name: h, node_exporter: '%[1]s/metrics', cluster: c}]
targets:
  - {name: a, engine: mysql, cluster: c, address: '%[2]s', user: u, node_exporter: '%[1]s/metrics'}
  - {name: b, engine: mongodb, cluster: d, address: '%[2]s'}
`, server.URL, raw)
			for path, content := range map[string]string{config: text, filepath.Join(folder, "token"): "geheim"} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			file := "--config.file=" + config
			agent := startChild(t, folder, "agent", file, "--web.listen-address=127.0.0.1:0")
			run := startChild(t, folder, "run", file, "--run-id=r", "--cluster=c", "--linger=0s", "--drain-timeout=1s", "--abort-when=lag>10s", "--", "sh", "-c", "sleep 3; echo ended")
			initial := []string{
				"init", "--config.file=new.yml", "--data-dir=new", "--target=mysql://u@" + raw, "--target=mongodb://u@" + raw, "--grafana.url=" + server.URL, "--grafana.token-file=token",
				"--prometheus.url=" + server.URL, "--yes",
			}
			for _, args := range [][]string{{"doctor", file}, {"dashboards", "import", file}, {"status", "--once", file}, initial} {
				c := startChild(t, folder, args...)
				select { // some end by themselves
				case err := <-c.ended:
					c.ended <- err
					c.end()
				case <-time.After(5 * time.Second):
					c.terminate()
				}
			}
			run.end()
			report := startChild(t, folder, "report", file, "r")
			report.end()
			agent.await("the peers, Grafana and machines are asked", func() bool { return asked.Load() > 3 })
			agent.terminate()
		})
	}
}

func jsonType(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") }

// endlessPort is the address of a server that never stops sending.
func endlessPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { endless(conn, "\xff\xff\xff\x00"); conn.Close() }()
		}
	}()
	return listener.Addr().String()
}
