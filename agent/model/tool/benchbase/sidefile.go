package benchbase

import (
	"regexp"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// Suffixes of the names of files.
const (
	rawSuffix     = ".raw.csv"
	summarySuffix = ".summary.json"
)

// otherName matches the names of files that have nothing that the others lack.
var otherName = regexp.MustCompile(`^(.+_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)\.(params\.json|metrics\.json|config\.xml|results\.\w+\.csv)$`)

// sideFile recognises the files in the folder of results by their names: tpcc_2026-11-27_14-35-26.samples.csv. Those of
// OLTPBench are called outputfile.res, outputfile.raw and outputfile.summary.
func sideFile(name string, _ []byte) (run string, kind tool.SideKind) {
	for _, s := range [...]struct {
		suffix string
		kind   tool.SideKind
	}{
		{rawSuffix, tool.SideLatencies}, {summarySuffix, tool.SideSummary},
		{".samples.csv", tool.SideIntervals}, {".results.csv", tool.SideFewerValues},
		{".raw", tool.SideLatencies}, {".summary", tool.SideSummary},
		{".samples", tool.SideIntervals}, {".res", tool.SideFewerValues},
	} {
		if run, ok := strings.CutSuffix(name, s.suffix); ok {
			return run, s.kind
		}
	}
	if m := otherName.FindStringSubmatch(name); m != nil {
		return m[1], tool.SideOther
	}
	return "", tool.SideOther
}
