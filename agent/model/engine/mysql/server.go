package mysql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Server is what is known about a connection's server, read when the connection was opened and once
// a minute since.
type Server struct {
	// Version is the server's own text without the prefix 5.5.5-, which MariaDB 10 adds for old
	// replicas.
	Version string
	// Number is the version as numbers. Compare it only between servers of one flavour. On Aurora
	// and TiDB it is the compatible MySQL version.
	Number [3]int
	// Flavour is mysql, mariadb, percona, aurora or tidb.
	Flavour string
	// Variables are the system variables in serverVariables and those of the details.
	Variables Values
}

// serverVariables are read from every server.
var serverVariables = []string{"version", "version_comment", "max_connections", "aurora_version", "hostname", "server_uuid", "server_uid"}

// NewServer identifies a server by its variables. It fails if the version is missing or older than
// 5.5.
func NewServer(variables Values) (*Server, error) {
	version := variables["version"]
	if rest, ok := strings.CutPrefix(version, "5.5.5-"); ok && strings.Contains(rest, "MariaDB") {
		version = rest
	}
	s := &Server{Version: version, Variables: variables}
	number, ok := versionNumber(version)
	if !ok {
		return nil, fmt.Errorf("server gives no version that can be read (%q)", version)
	}
	s.Number = number

	comment := variables["version_comment"]
	_, aurora := variables["aurora_version"]
	switch {
	case strings.Contains(version, "-TiDB-") || strings.HasPrefix(comment, "TiDB"):
		s.Flavour = "tidb"
	case strings.Contains(version, "MariaDB") || strings.Contains(strings.ToLower(comment), "mariadb"):
		s.Flavour = "mariadb"
	case aurora:
		s.Flavour = "aurora"
	case strings.Contains(comment, "Percona"):
		s.Flavour = "percona"
	default:
		s.Flavour = "mysql"
	}
	if !s.AtLeast(5, 5, 0) {
		return nil, fmt.Errorf("server version %s is too old: 5.5 is the oldest that can be sampled", version)
	}
	return s, nil
}

// AtLeast compares the version number, not the flavour.
func (s *Server) AtLeast(major, minor, patch int) bool {
	for i, n := range []int{major, minor, patch} {
		if s.Number[i] != n {
			return s.Number[i] > n
		}
	}
	return true
}

// id returns the server's id; empty if it has none. All servers of a TiDB or Aurora cluster may have one
// in common.
func (s *Server) id() string {
	if s.Flavour == "tidb" || s.Flavour == "aurora" {
		return ""
	}
	if s.MariaDB() && s.Variables["server_uid"] != "" { // of MAC address and port, which containers may share
		return s.Variables["hostname"] + " " + s.Variables["server_uid"]
	}
	return s.Variables["server_uuid"]
}

// MariaDB reports whether the server belongs to MariaDB's branch of the family.
func (s *Server) MariaDB() bool { return s.Flavour == "mariadb" }

var versionParts = regexp.MustCompile(`^([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?`)

// versionNumber reads "10.11.19-MariaDB-…"; missing parts are 0.
func versionNumber(version string) (number [3]int, ok bool) {
	parts := versionParts.FindStringSubmatch(version)
	if parts == nil {
		return number, false
	}
	for i := range number {
		number[i], _ = strconv.Atoi(parts[i+1]) // empty or a number
	}
	return number, true
}
