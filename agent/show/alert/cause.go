package alert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/alerts"
)

// inhibition is a rule of Alertmanager: while an alert called source fires, alerts called target with the same labels
// are not sent.
type inhibition struct {
	source, target *regexp.Regexp
	equal          []string
}

// inhibitions returns the inhibitions of alerts/alertmanager.yml. Alertmanager sends an alert as
// soon as the alert that inhibits it has ended; to a run it is still the same cause.
var inhibitions = sync.OnceValue(func() []inhibition {
	all, err := parseInhibitions(alerts.Alertmanager)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return all
})

// alertname is the only matcher that the rules use: a name, or a pattern of names.
var alertname = regexp.MustCompile(`^alertname *(=~?) *"?([\w.+|]+)"?$`)

func parseInhibitions(file []byte) ([]inhibition, error) {
	var c struct {
		Rules []struct {
			Sources []string `yaml:"source_matchers"`
			Targets []string `yaml:"target_matchers"`
			Equal   []string
		} `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal(file, &c); err != nil {
		return nil, fmt.Errorf("alertmanager.yml: %w", err)
	}
	names := func(matchers []string) (*regexp.Regexp, error) {
		if len(matchers) != 1 {
			return nil, fmt.Errorf("alertmanager.yml: %d matchers in %q, want 1", len(matchers), matchers)
		}
		m := alertname.FindStringSubmatch(matchers[0])
		if m == nil {
			return nil, fmt.Errorf("alertmanager.yml: matcher %q is not of alertname", matchers[0])
		}
		if m[1] == "=" {
			m[2] = regexp.QuoteMeta(m[2])
		}
		return regexp.Compile("^(?:" + m[2] + ")$")
	}
	var all []inhibition
	for _, r := range c.Rules {
		source, err := names(r.Sources)
		if err != nil {
			return nil, err
		}
		target, err := names(r.Targets)
		if err != nil {
			return nil, err
		}
		all = append(all, inhibition{source, target, r.Equal})
	}
	return all, nil
}

// lull is how long an alert may be silent and then fire again as the same cause: it ends
// when the agent is stopped for a moment, and fires again after its waiting time.
const lull = time.Minute

// continues reports whether a marker of a run is of this alert. The alert fires again with a new start after a lull, or
// if Prometheus and Alertmanager have been restarted.
func (al *alert) continues(m *marker.Marker, runID string) bool {
	start := al.StartsAt.Truncate(time.Millisecond) // as a marker's
	return m.Kind == marker.Alert && strings.HasPrefix(m.ID, al.cause(runID)+"-") &&
		(m.End.IsZero() || !start.After(m.End.Add(lull))) && (!al.resolved() || !al.end().Before(m.Start))
}

// isEffectOf reports whether a marker of the same run is of an alert that inhibits this alert, which began before the
// other one ended.
func (al *alert) isEffectOf(m *marker.Marker) bool {
	if m.Kind != marker.Alert || !m.End.IsZero() && al.StartsAt.After(m.End) || al.resolved() && al.end().Before(m.Start) {
		return false
	}
	tag := func(key string) string {
		for _, t := range m.Tags {
			if value, ok := strings.CutPrefix(t, key+":"); ok {
				return value
			}
		}
		return ""
	}
	source, target := tag("alert"), al.Labels["alertname"]
	return slices.ContainsFunc(inhibitions(), func(rule inhibition) bool {
		return rule.source.MatchString(source) && rule.target.MatchString(target) && source != target &&
			!slices.ContainsFunc(rule.equal, func(label string) bool { return label != "run" && tag(label) != al.Labels[label] })
	})
}
