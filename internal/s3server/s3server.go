// Package s3server runs a real S3 server, versitygw, for tests. It can be killed, suspended and
// restarted.
package s3server

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/servers"
)

const (
	gateway = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
	// Key and Secret are the credentials of every server.
	Key    = "benchwatch"
	Secret = "geheim-geheim"
)

// Server is an S3 server that keeps the objects of each bucket in a folder.
type Server struct {
	Folder, Address string

	program string
	process *agents.Process
}

// Start starts a server with these buckets.
func Start(t testing.TB, buckets ...string) *Server {
	t.Helper()
	root, err := servers.Repository()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{program: need.GoTool(t, root, gateway), Folder: t.TempDir(), Address: agents.FreeAddress(t)}
	for _, bucket := range buckets {
		if err := os.Mkdir(filepath.Join(s.Folder, bucket), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Again(t)
	return s
}

// Again starts the server after Kill.
func (s *Server) Again(t testing.TB) {
	t.Helper()
	s.process = agents.Start(t, s.program, "--access", Key, "--secret", Secret, "--port", s.Address, "--quiet", "posix", s.Folder)
	agents.Wait(t, time.Minute, "the S3 server", func() error {
		c, err := net.Dial("tcp", s.Address)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// Kill ends the server at once.
func (s *Server) Kill(t testing.TB) { s.process.Kill(t) }

// Hang suspends the server: it accepts connections but answers nothing until Resume.
func (s *Server) Hang(t testing.TB) { s.process.Signal(t, syscall.SIGSTOP) }

// Resume continues the server after Hang.
func (s *Server) Resume(t testing.TB) { s.process.Signal(t, syscall.SIGCONT) }
