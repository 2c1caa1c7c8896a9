// Package prometheus holds the recording rules, so that the program knows which ones
// there should be.
package prometheus

import "embed"

// Files are the files of rules.
//
//go:embed rules/*.yml
var Files embed.FS
