package setup

import "testing"

func TestCountWebhooks(t *testing.T) {
	const receivers = "receivers:\n- name: a\n  webhook_configs:\n"
	for name, c := range map[string]struct {
		text          string
		named, hidden int
		fails         bool
	}{
		"two agents, one of them twice": {receivers + "  - url: http://a/api/v1/alerts\n  - url: http://a/api/v1/alerts\n  - url: http://b/api/v1/alerts\n", 2, 0, false},
		"another program":               {receivers + "  - url: http://chat/hook\n", 0, 0, false},
		"Alertmanager 0.26":             {receivers + "  - url: <secret>\n", 0, 1, false},
		"no webhook":                    {"receivers:\n- name: a\n", 0, 0, false},
		"no configuration":              {"receivers: [", 0, 0, true},
	} {
		named, hidden, err := countWebhooks(c.text)
		if named != c.named || hidden != c.hidden || (err != nil) != c.fails {
			t.Errorf("%s: %d, %d, %v", name, named, hidden, err)
		}
	}
}
