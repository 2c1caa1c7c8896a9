package record

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// settingsFrame is the answer of n1 second seconds after the start, if its settings were read at second read.
func settingsFrame(second, read int, s engine.Settings, err error) engine.Frame {
	at := historyStart.Add(time.Duration(second) * time.Second)
	return engine.Frame{Tick: at, Samples: []engine.Sample{{
		Target: &engine.Target{Name: "n1", Engine: "mysql", Cluster: "c"}, Tick: at, Asked: at, Answered: at,
		Status:   &engine.Status{Version: "10.11", Flavour: "mariadb"},
		Settings: &engine.SettingsReading{At: historyStart.Add(time.Duration(read) * time.Second), Settings: s, Err: err},
	}}}
}

// TestSettingsAreRecorded guards that each server's settings are recorded once, and again when they change; settings
// that were read before the run began are not taken for the run's.
func TestSettingsAreRecorded(t *testing.T) {
	dir := recorded(t, "", nil)
	r := NewRecorder(dir, historyStart)
	record := func(f engine.Frame) {
		t.Helper()
		if err := r.Record(f); err != nil {
			t.Fatal(err)
		}
	}
	one := engine.Settings{"sync_binlog": "1", "gone": "x"}
	two := engine.Settings{"sync_binlog": "0", "new": "y"}
	record(settingsFrame(1, -5, engine.Settings{"sync_binlog": "1000"}, nil))
	record(settingsFrame(2, 1, nil, errors.New("denied")))
	record(settingsFrame(3, 2, nil, errors.New("denied")))
	record(settingsFrame(4, 3, one, nil))
	record(settingsFrame(5, 4, one, nil))
	r.Close()

	r = NewRecorder(dir, historyStart) // the agent was restarted
	record(settingsFrame(6, 5, one, nil))
	record(settingsFrame(7, 6, nil, errors.New("timeout")))
	record(settingsFrame(8, 7, two, nil))
	down := settingsFrame(9, 8, one, nil)
	down.Samples[0].Err = errors.New("down")
	record(down)
	r.Close()
	text, err := os.ReadFile(dir.Path(SettingsFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir.Path(SettingsFile), string(text)+`{"at":"2026-11-21T02:1`) // as after a crash

	got, err := ReadSettings(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := func(second int) time.Time { return historyStart.Add(time.Duration(second) * time.Second) }
	want := SettingsHistory{{
		ServerSettings: ServerSettings{At: at(3), Target: "n1", Engine: "mysql", Cluster: "c", Version: "10.11", Flavour: "mariadb", Settings: one},
		Changes: []SettingChange{
			{At: at(7), Name: "gone", Before: "x"},
			{At: at(7), Name: "sync_binlog", Before: "1", After: "0"},
			{At: at(7), Name: "new", After: "y"},
		},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, read(t, dir).Settings); d != "" {
		t.Error(d)
	}
}

// TestNoSettings guards what is reported about a run without settings, and about a server that refuses to return them.
func TestNoSettings(t *testing.T) {
	dir := recorded(t, "", nil)
	if got, err := ReadSettings(dir); err != nil || got != nil {
		t.Errorf("%v %v", got, err)
	}
	r := NewRecorder(dir, historyStart)
	if err := r.Record(settingsFrame(2, 1, nil, errors.New("denied"))); err != nil {
		t.Fatal(err)
	}
	r.Close()
	got, err := ReadSettings(dir)
	if err != nil || len(got) != 1 || got[0].Error != "denied" || len(got[0].Settings) != 0 || len(got[0].Changes) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}
