// Package alerts holds the alert rules for Prometheus, so that the program knows which
// ones there should be.
package alerts

import "embed"

// Files are the files of rules.
//
//go:embed *.rules.yml
var Files embed.FS
