// Package dashboards holds the dashboards for Grafana, so that the program can import
// them. They are generated from dashboards-src.
package dashboards

import "embed"

// Files are the dashboards as JSON.
//
//go:embed *.json
var Files embed.FS
