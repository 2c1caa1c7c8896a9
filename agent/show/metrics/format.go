package metrics

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
)

// Format is a text format of Prometheus.
type Format int

// The formats that Prometheus reads, with and without OpenMetrics.
const (
	Text Format = iota
	OpenMetrics
)

// Negotiate returns the format that the header of a scrape requests, and its content type. A scraper that requests
// neither gets Text.
func Negotiate(header http.Header) (Format, string) {
	accepted := expfmt.NegotiateAccept(header, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtText)
	if accepted.FormatType() == expfmt.TypeOpenMetrics {
		return OpenMetrics, string(accepted)
	}
	return Text, string(accepted)
}

// head returns the lines before a family's series. OpenMetrics names counters without their _total, and calls the type
// untyped unknown.
func (f *Family) head(format Format) string {
	name, kind, help := f.Name, f.Type, escapeTextHelp.Replace(f.Help)
	if format == OpenMetrics {
		help = escapeHelp.Replace(f.Help)
		switch kind {
		case "counter":
			name = strings.TrimSuffix(name, "_total")
		case "untyped":
			kind = "unknown"
		}
	}
	return "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n"
}

var escapeTextHelp = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

// appendValue appends a value as Prometheus' own encoders do. OpenMetrics' whole numbers have a ".0".
func (f Format) appendValue(text []byte, v float64) []byte {
	if v != math.Trunc(v) || math.Abs(v) >= 1e6 { // from there on with an exponent
		return strconv.AppendFloat(text, v, 'g', -1, 64)
	}
	text = strconv.AppendInt(text, int64(v), 10)
	if f == OpenMetrics {
		text = append(text, ".0"...)
	}
	return text
}
