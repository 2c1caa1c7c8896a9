// Package alerts holds the alert rules for Prometheus and the configuration of
// Alertmanager, so that the program knows which alerts there should be, and which of them
// have the same cause.
package alerts

import "embed"

// Alertmanager is alertmanager.yml.
//
//go:embed alertmanager.yml
var Alertmanager []byte

// Files are the files of rules.
//
//go:embed *.rules.yml
var Files embed.FS
