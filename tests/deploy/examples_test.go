package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/app/config"
)

// examples are files of values for the chart.
const examples = "../../deploy/helm/examples/"

// TestExamples guards that the agent accepts the configuration of each example, and that the chart has each key.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var known map[string]any
	if err := yaml.Unmarshal([]byte(read(t, source+"/values.yaml")), &known); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var values map[string]any
			if err := yaml.Unmarshal([]byte(read(t, file)), &values); err != nil {
				t.Fatal(err)
			}
			contained(t, "", known, values)
			text, err := yaml.Marshal(values["config"])
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"secrets/monitor-password": "x", "secrets/stats-password": "x", "benchwatch.yml": string(text)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := config.Load(filepath.Join(dir, "benchwatch.yml"))
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Targets) < 3 {
				t.Errorf("%d targets", len(c.Targets))
			}
		})
	}
}

// contained reports keys that the chart does not have. The agent checks the keys of config.
func contained(t *testing.T, path string, known, values map[string]any) {
	t.Helper()
	for key, v := range values {
		other, found := known[key]
		if !found {
			t.Errorf("the chart has no value %s%s", path, key)
		}
		if into, ok := v.(map[string]any); ok && path+key != "config" {
			if below, ok := other.(map[string]any); ok {
				contained(t, path+key+".", below, into)
			}
		}
	}
}
