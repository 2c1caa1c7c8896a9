package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// In a shared runs folder a run directory can be anybody's, and one from an archive or
// another machine has whatever its author wrote. What names a program is therefore read
// only by OpenTrusted.

// ErrForeign is returned for a file whose content another user may have chosen.
var ErrForeign = errors.New("not written by this user")

// Own reports whether a file belongs to the user of this process.
func Own(path string) bool {
	owner, err := ownerOf(path)
	return err == nil && owner == uint32(os.Geteuid())
}

// Owner returns the user who owns the run directory.
func (d Directory) Owner() (uint32, error) { return ownerOf(string(d)) }

func ownerOf(path string) (uint32, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return st.Uid, err
}

// checkRoot returns ErrForeign if the folder of all runs is a symbolic link of another
// user than this one and root.
func checkRoot(root string) error {
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK || st.Uid == 0 || st.Uid == uint32(os.Geteuid()) {
		return nil
	}
	return fmt.Errorf("%s is a symbolic link: %w", root, ErrForeign)
}

// OpenTrusted opens a file of a folder if only this user can have written it: both belong
// to this user, and no other may write the file or, but for the group of a shared runs
// folder, the folder. Else the error is ErrForeign; it matches fs.ErrNotExist if there is
// no such file.
func OpenTrusted(folder, name string) (*os.File, error) {
	path := filepath.Join(folder, name)
	info, err := os.Lstat(folder)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || !Own(folder) || info.Mode()&0o002 != 0 {
		return nil, fmt.Errorf("%s: %w", folder, ErrForeign)
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	if err == nil && (st.Uid != uint32(os.Geteuid()) || st.Mode&0o022 != 0 || st.Nlink != 1) {
		err = fmt.Errorf("%s: %w", path, ErrForeign)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Connection is how the machine that started a group reaches its generators. It names a program, so it has its own
// file, which only its writer can read and which is never archived, mirrored or served.
type Connection struct {
	// SSH is the program and its options, Benchwatch the program on the other side.
	SSH        []string `json:"ssh"`
	Benchwatch string   `json:"benchwatch"`
	// Hosts are the machines, in the order of the generators' numbers.
	Hosts []string `json:"hosts"`

	// Group and Inode identify the run directory: a copy of the file elsewhere, or of the directory, does not count.
	Group string `json:"group"`
	Inode uint64 `json:"inode"`
}

// connectionFile is hidden: archives have no such files.
const connectionFile = ".connection.json"

// maxConnection is longer than any connection file, in bytes.
const maxConnection = 1 << 20

// Inode returns the inode of the directory, which a copy of it does not have; 0 if there is none.
func (d Directory) Inode() uint64 {
	var st unix.Stat_t
	if err := unix.Lstat(string(d), &st); err != nil {
		return 0
	}
	return st.Ino
}

// SaveConnection records how the generators of a group are reached.
func (d Directory) SaveConnection(c Connection) error {
	c.Group, c.Inode = d.ID(), d.Inode()
	err := Replace(d.Path(connectionFile), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(c) })
	if err != nil {
		return fmt.Errorf("record the connection: %w", err)
	}
	return nil
}

// LoadConnection returns what this user recorded by SaveConnection. The error matches
// fs.ErrNotExist if nothing was, and ErrForeign if another user may have written it.
func (d Directory) LoadConnection() (Connection, error) {
	var c Connection
	f, err := OpenTrusted(string(d), connectionFile)
	if err != nil {
		return c, fmt.Errorf("read the connection: %w", err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxConnection)).Decode(&c); err != nil {
		return c, fmt.Errorf("read the connection: %w", err)
	}
	if c.Group != d.ID() || c.Inode != d.Inode() || len(c.SSH) == 0 || len(c.Hosts) == 0 {
		return c, fmt.Errorf("read the connection: %s is of another group: %w", connectionFile, ErrForeign)
	}
	return c, nil
}

// adoptedFile is in a run directory whose files come from elsewhere, such as an archive.
const adoptedFile = ".adopted"

// Adopted reports whether the files of the run came from elsewhere.
func (d Directory) Adopted() bool {
	_, err := os.Lstat(d.Path(adoptedFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// MayFollowLog reports whether this process may read the log file that run.json names.
// In a shared runs folder any user can write a run.json, and an agent must not read for
// one user what belongs to another: there only this user, root and the owner of the runs
// folder, which is the agent, may name one. In an adopted run nothing may.
func (d Directory) MayFollowLog() bool {
	if d.Adopted() {
		return false
	}
	owner, err := ownerOf(string(d))
	return err == nil && (!isShared(filepath.Dir(string(d))) || owner == uint32(os.Geteuid()) || d.ownerReadsAll(owner))
}

// MayShow reports whether the output of another run of the same folder may be copied into
// this one. Its owner must not read by way of an agent what they can't read themselves.
func (d Directory) MayShow(other Directory) bool {
	owner, err := ownerOf(string(d))
	if err != nil {
		return false
	}
	author, err := ownerOf(string(other))
	return err == nil && (!isShared(filepath.Dir(string(d))) || owner == author || d.ownerReadsAll(owner))
}

// ownerReadsAll reports whether a user reads the runs of all users: root, and the owner
// of the runs folder, which is the agent.
func (d Directory) ownerReadsAll(owner uint32) bool {
	agent, err := ownerOf(filepath.Dir(string(d)))
	return owner == 0 || err == nil && owner == agent
}
