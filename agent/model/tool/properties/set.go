package properties

import (
	"path"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/option"
)

// Set is the properties of one run of YCSB or go-ycsb.
type Set struct {
	Values map[string]string
	// Files are the property files. Unread: at least one of them could not be read.
	Files  []string
	Unread bool
}

// ReadFiles adds the properties of files, with secrets blanked unless the invocation keeps them. Later files win.
func (s *Set) ReadFiles(in *tool.Invocation) {
	if s.Values == nil {
		s.Values = map[string]string{}
	}
	for _, name := range s.Files {
		text, err := in.Read(name)
		if err != nil {
			s.Unread = true
			continue
		}
		Each(string(text), func(key, value string) {
			if !in.WithSecrets {
				value = secret.Value(key, value)
			}
			s.Values[key] = value
		})
	}
}

// Number returns a property as a whole number, 0 if it is not one.
func (s *Set) Number(key string) int { return option.Number(s.Values[key]) }

// Threads returns the number of threads, 0 if a file that may set it could not be read.
func (s *Set) Threads() int {
	if _, set := s.Values["threadcount"]; !set && !s.Unread {
		return 1
	}
	return s.Number("threadcount")
}

// Rate returns the target rate in operations per second, 0 if there is none.
func (s *Set) Rate() int { return s.Number("target") }

// Workload returns the file name of the workload, such as workloada. Of several files it is the
// first one named workload…, since others contain settings.
func (s *Set) Workload() string {
	name := ""
	for _, f := range s.Files {
		base := path.Base(strings.ReplaceAll(f, `\`, "/"))
		if strings.HasPrefix(base, "workload") {
			return base
		}
		if name == "" {
			name = base
		}
	}
	if name != "" {
		return name
	}
	class := s.Values["workload"]
	return class[strings.LastIndexByte(class, '.')+1:]
}

// operations have a share of a workload each.
var operations = []string{"read", "update", "insert", "scan", "readmodifywrite"}

// Labels returns the facts that describe a run. It has the operations with a share.
func (s *Set) Labels(binding string) map[string]string {
	labels := map[string]string{}
	for label, value := range map[string]string{
		"binding":              binding,
		"recordcount":          s.Values["recordcount"],
		"operationcount":       s.Values["operationcount"],
		"insertcount":          s.Values["insertcount"],
		"request_distribution": s.Values["requestdistribution"],
		"field_count":          s.Values["fieldcount"],
		"field_length":         s.Values["fieldlength"],
	} {
		if value != "" {
			labels[label] = value
		}
	}
	for _, name := range operations {
		value := s.Values[name+"proportion"]
		if share, err := strconv.ParseFloat(value, 64); err == nil && share > 0 {
			labels[name+"_proportion"] = value
		}
	}
	if n := s.Rate(); n > 0 {
		labels["target_rate"] = strconv.Itoa(n)
	}
	return labels
}

// Secrets returns the values that must not be stored or shown.
func (s *Set) Secrets() []string {
	var all []string
	for key, value := range s.Values {
		all = append(all, Secrets(key, value)...)
	}
	return all
}

// Secrets returns the secrets in one property.
func Secrets(key, value string) []string {
	if value != "" && secret.Name(key) {
		return []string{value}
	}
	return secret.Values(value)
}
