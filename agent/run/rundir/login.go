package rundir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Login is how the tool of a run connects to its servers. `benchwatch run --sample` lends it to the
// agent through a socket in the run directory: it is never stored.
type Login struct {
	// Target has the addresses to which the tool connects, separated by commas.
	Target   string     `json:"target"`
	Engine   string     `json:"engine"`
	User     string     `json:"user"`
	Password string     `json:"password"`
	Place    tool.Place `json:"place"`
	// Database is the one that the tool uses.
	Database string `json:"database,omitempty"`
	// TLS is the least that protects the login, Options are the engine's options of a target.
	TLS     tool.TLS          `json:"tls"`
	Options map[string]string `json:"options,omitempty"`
	// Discover: the other members of the servers' clusters are sampled with this login, too.
	Discover bool `json:"discover,omitempty"`
}

// NewLogin returns the login of a tool's command.
func NewLogin(d *tool.Description, l *tool.Login, place tool.Place) Login {
	return Login{Target: d.Target, Engine: d.Engine, User: cmp.Or(d.User, l.User), Password: l.Password, Place: place, Database: d.Database, TLS: l.TLS, Options: l.Options}
}

// loginSocket is hidden: archives and copies have no such files.
const loginSocket = ".login.sock"

const (
	// maxLogin is longer than any login, in bytes.
	maxLogin  = 1 << 16
	loginTime = time.Second
)

// Lend sends the login to everyone who connects to the socket of the run directory, until stop is
// called. The same users can connect who can read the tool's output: its owner and, in a shared
// runs folder, the agent. The directory may be renamed meanwhile.
func (d Directory) Lend(l Login) (stop func(), err error) {
	path := d.Path(loginSocket)
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("lend the login to the agent: %w", err)
	}
	socket.SetUnlinkOnClose(false)
	mode := outputAccess.perm
	if isSharedRun(string(d)) {
		mode = 0o660
	}
	if err := os.Chmod(path, mode); err != nil {
		socket.Close()
		return nil, fmt.Errorf("lend the login to the agent: %w", err)
	}
	var lending sync.WaitGroup
	lending.Go(func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(loginTime))
			_ = json.NewEncoder(conn).Encode(l) // a reader that has gone asks again
			conn.Close()
		}
	})
	return func() {
		socket.Close()
		lending.Wait()
	}, nil
}

// Borrow returns the login that the run's owner lends; nil if none is lent.
func (d Directory) Borrow() (*Login, error) {
	path := d.Path(loginSocket)
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		return nil, nil
	}
	conn, err := net.DialTimeout("unix", path, loginTime)
	if err != nil {
		return nil, fmt.Errorf("borrow the login: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(loginTime))
	var l Login
	if err := json.NewDecoder(io.LimitReader(conn, maxLogin)).Decode(&l); err != nil {
		return nil, fmt.Errorf("borrow the login: %w", err)
	}
	return &l, nil
}

// EndLogin removes the socket of Lend.
func (d Directory) EndLogin() error {
	if err := os.Remove(d.Path(loginSocket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end the login: %w", err)
	}
	return nil
}
