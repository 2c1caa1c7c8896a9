package haproxy

import "github.com/benchwatch/benchwatch/agent/model/cause"

var _ = cause.Declare(cause.Explanation{Engine: Engine.Name, Programs: []string{processName}})
