package setup

import (
	"context"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// webhooks checks whether the Alertmanagers that Prometheus sends alerts to have a webhook for each
// agent: an agent sets markers only for its own runs.
func (d *doctor) webhooks(ctx context.Context, agents int) {
	if d.c.WebhookTokenFile == "" {
		return
	}
	var active struct {
		Data struct {
			ActiveAlertmanagers []struct{ URL string }
		}
	}
	if _, err := get(ctx, d.c.Prometheus.URL+"/api/v1/alertmanagers", &active); err != nil {
		d.add("prometheus", Failed, "webhook", secret.Error(err), "")
		return
	}
	if len(active.Data.ActiveAlertmanagers) == 0 {
		d.add("prometheus", Warning, "webhook", "Prometheus knows no Alertmanager: runs get no markers of alerts",
			"name it under alerting in the configuration of Prometheus")
		return
	}
	for _, a := range active.Data.ActiveAlertmanagers {
		base := strings.TrimSuffix(a.URL, "/api/v2/alerts")
		var status struct {
			Config struct{ Original string }
		}
		if _, err := get(ctx, base+"/api/v2/status", &status); err != nil {
			d.add("prometheus", Skipped, "webhook", secret.Error(err), "")
			continue
		}
		named, hidden, err := countWebhooks(status.Config.Original)
		has := fmt.Sprintf("Alertmanager has %s for %s", table.Plural(named+hidden, "webhook"), table.Plural(agents, "agent"))
		switch {
		case err != nil:
			d.add("prometheus", Skipped, "webhook", "read the configuration of Alertmanager: "+err.Error(), "")
		case named+hidden < agents:
			d.add("prometheus", Warning, "webhook", has+": the runs of the others get no markers of alerts",
				"add one for each agent to the receiver: docs/scale.md")
		case hidden > 0:
			d.add("prometheus", Skipped, "webhook", has+", but hides the addresses", "compare them by hand: docs/scale.md")
		default:
			d.add("prometheus", OK, "webhook", has, "")
		}
	}
}

// countWebhooks returns how many webhooks of a configuration are an agent's by their address, and how
// many may be: since 0.26, Alertmanager hides the addresses.
func countWebhooks(configuration string) (named, hidden int, err error) {
	var c struct {
		Receivers []struct {
			WebhookConfigs []struct{ URL string } `yaml:"webhook_configs"`
		}
	}
	if err := yaml.Unmarshal([]byte(configuration), &c); err != nil {
		return 0, 0, err
	}
	found := map[string]bool{}
	for _, r := range c.Receivers {
		for _, w := range r.WebhookConfigs {
			if w.URL == "<secret>" {
				hidden++
			} else if strings.HasSuffix(w.URL, "/api/v1/alerts") {
				found[w.URL] = true
			}
		}
	}
	return len(found), hidden, nil
}
