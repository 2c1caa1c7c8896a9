package cli

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return newCommand("version", "Print the version.", "benchwatch version").does(func(s Streams) error {
		fmt.Fprintln(s.Out, versionText())
		return nil
	})
}

// The Makefile sets version and revision; after a plain `go build` or `go install`, Go's record of them is used.
func init() {
	if info, ok := debug.ReadBuildInfo(); ok && version.Version == "" {
		version.Version, version.BuildDate = recorded(info)
	}
}

// recorded returns the version of the main module, which comes from the tag, and the
// date of the commit. Without a repository the version is "devel".
func recorded(info *debug.BuildInfo) (release, date string) {
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			date = s.Value
		}
	}
	release = strings.TrimPrefix(info.Main.Version, "v")
	if release == "" || release == "(devel)" {
		release = "devel"
	}
	return release, date
}

// versionText is what --version prints.
func versionText() string {
	revision := "revision: " + version.GetRevision()
	if version.Branch != "" {
		revision = "branch: " + version.Branch + ", " + revision
	}
	return fmt.Sprintf("benchwatch, version %s (%s)\n  build date: %s\n  go version: %s\n  platform:   %s/%s",
		version.Version, revision, cmp.Or(version.BuildDate, "unknown"), version.GoVersion, version.GoOS, version.GoArch)
}
