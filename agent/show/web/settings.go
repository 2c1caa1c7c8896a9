package web

import (
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// settingsView is how the servers of a run are configured.
type settingsView struct {
	Clusters []review.ClusterSettings `json:"clusters"`
	Changes  []settingChangeView      `json:"changes"`
	Unknown  []unknownView            `json:"unknown"`
}

type settingChangeView struct {
	Server string `json:"server"`
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
	At     int64  `json:"at"`
}

// unknownView is a server whose settings are unknown.
type unknownView struct {
	Server string `json:"server"`
	Why    string `json:"why"`
}

func newSettingsView(all record.SettingsHistory) settingsView {
	v := settingsView{Clusters: append([]review.ClusterSettings{}, review.SettingsByCluster(all)...), Changes: []settingChangeView{}, Unknown: []unknownView{}}
	for _, t := range all {
		if t.Error != "" {
			v.Unknown = append(v.Unknown, unknownView{t.Target, t.Error})
		}
		for _, c := range t.Changes {
			v.Changes = append(v.Changes, settingChangeView{t.Target, c.Name, c.Before, c.After, c.At.UnixMilli()})
		}
	}
	return v
}
