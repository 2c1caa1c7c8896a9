package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// SettingsFile is the name of the file that holds how each server was configured:
// a line per target when the run begins, and another after each change.
const SettingsFile = "settings.jsonl"

// SettingsEvery is how often the servers' settings are read during a run.
const SettingsEvery = 10 * time.Second

// ServerSettings is one line of settings.jsonl: all settings of one target, as of
// an instant.
type ServerSettings struct {
	At      time.Time `json:"at"`
	Target  string    `json:"target"`
	Engine  string    `json:"engine"`
	Cluster string    `json:"cluster,omitempty"`
	Version string    `json:"version,omitempty"`
	Flavour string    `json:"flavour,omitempty"`
	// Settings by the server's own names; see engine.Settings.
	Settings map[string]string `json:"settings,omitempty"`
	// Error is why the settings are unknown.
	Error string `json:"error,omitempty"`
}

// equal reports whether s has the same content as the previous line.
func (s *ServerSettings) equal(before *ServerSettings) bool {
	return s.Version == before.Version && s.Error == before.Error && maps.Equal(s.Settings, before.Settings)
}

// settingsRecorder writes settings.jsonl.
type settingsRecorder struct {
	file  *lineFile
	start time.Time
	// known is the last line of each target; nil: not read yet.
	known map[string]ServerSettings
	seen  map[string]*engine.SettingsReading
}

// record appends what is new. Settings that were read before the run began may be
// out of date.
func (r *settingsRecorder) record(f engine.Frame) error {
	if r.known == nil {
		r.known = map[string]ServerSettings{}
		lines, err := readSettings(r.file.path) // of before a restart
		if err != nil {
			return err
		}
		for _, line := range lines {
			r.known[line.Target] = line
		}
	}
	var lines []any
	for i := range f.Samples {
		s := &f.Samples[i]
		if !s.Up() || s.Settings == nil || s.Settings == r.seen[s.Target.Name] || s.Settings.At.Before(r.start) {
			continue
		}
		r.seen[s.Target.Name] = s.Settings
		line := ServerSettings{
			At: s.Settings.At.UTC().Truncate(time.Millisecond), Target: s.Target.Name, Engine: s.Target.Engine, Cluster: s.Target.Cluster,
			Version: s.Status.Version, Flavour: s.Status.Flavour, Settings: s.Settings.Settings,
		}
		before, known := r.known[line.Target]
		if s.Settings.Err != nil {
			if known {
				continue // what was known may still be true
			}
			line.Error = s.Settings.Err.Error()
		}
		if known && line.equal(&before) {
			continue
		}
		r.known[line.Target] = line
		lines = append(lines, line)
	}
	return r.file.appendJSON(lines...)
}

// readSettings reads settings.jsonl.
func readSettings(path string) (all []ServerSettings, err error) {
	err = eachLine(path, func(line ServerSettings) {
		if line.Target != "" && !line.At.IsZero() && len(all) < maxServers*keptAnswers {
			all = append(all, line)
		}
	})
	if err != nil {
		err = fmt.Errorf("read settings: %w", err)
	}
	return all, err
}

// eachLine calls take for each line of a file of JSON objects; a file that does not exist
// has none. It skips damaged lines, such as the last one after a crash.
func eachLine[T any](path string, take func(T)) error {
	f, err := rundir.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, LongestStatus)
	for lines.Scan() {
		var line T
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			take(line)
		}
	}
	return lines.Err()
}

// ReadSettings returns the servers' settings in a run's directory, nothing if none
// were recorded. The error is for a file that can't be read.
func ReadSettings(d rundir.Directory) (SettingsHistory, error) {
	lines, err := readSettings(d.Path(SettingsFile))
	return newSettingsHistory(lines), err
}

// SettingsHistory is how the servers were configured, in the order in which their
// settings were first read.
type SettingsHistory []TargetSettings

// TargetSettings are one target's settings when the run began, and their changes.
type TargetSettings struct {
	ServerSettings
	Changes []SettingChange
}

// SettingChange is a setting that changed during the run. A value is empty if the
// server did not have the setting.
type SettingChange struct {
	At                  time.Time
	Name, Before, After string
}

func newSettingsHistory(lines []ServerSettings) SettingsHistory {
	var all SettingsHistory
	latest := map[string]ServerSettings{}
	for _, line := range lines {
		before, known := latest[line.Target]
		i := slices.IndexFunc(all, func(t TargetSettings) bool { return t.Target == line.Target })
		switch {
		case i < 0:
			all = append(all, TargetSettings{ServerSettings: line})
		case line.Error != "":
			continue
		case known && before.Error != "":
			all[i].ServerSettings = line
		default:
			all[i].Changes = append(all[i].Changes, changes(&before, &line)...)
		}
		latest[line.Target] = line
	}
	return all
}

func changes(before, after *ServerSettings) []SettingChange {
	was, is := before.Facts(), after.Facts()
	var found []SettingChange
	names := slices.Sorted(maps.Keys(was))
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, known := was[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if was[name] != is[name] {
			found = append(found, SettingChange{after.At, name, was[name], is[name]})
		}
	}
	return found
}

// VersionSetting is the name of the server's version among its settings.
const VersionSetting = "version"

// Facts returns the settings and the version.
func (s *ServerSettings) Facts() map[string]string {
	facts := maps.Clone(s.Settings)
	if facts == nil {
		facts = map[string]string{}
	}
	if s.Version != "" {
		facts[VersionSetting] = s.Version
	}
	return facts
}
