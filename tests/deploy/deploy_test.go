//go:build deploy

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/internal/need"
)

// Programs and schemas, all of them Go modules.
const (
	helm        = "helm.sh/helm/v3/cmd/helm@v3.22.0"
	kubeconform = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
	kubernetes  = "sigs.k8s.io/kubectl-validate@v0.0.4" // has the API's OpenAPI documents
	operator    = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	apiVersion  = "1.30"
)

type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	Spec       map[string]any
}

// all are values that enable every template.
const all = `
config:
  targets:
    - {name: db1, engine: mysql, cluster: blue, address: "db1:3306", user: benchwatch, password_file: secrets/db-password}
secret: passwords
agent: {nodeSelector: {a: b}, tolerations: [{operator: Exists}], affinity: {podAntiAffinity: {}}}
benchmark:
  enabled: true
  image: example.com/sysbench:1.0.20
  command: |
    sysbench oltp_read_write --mysql-password="$PASSWORD" \
      --threads=16 --report-interval=1 run
  tool: sysbench
  cluster: blue
  labels: {disk: nvme}
  env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: sbtest, key: password}}}]
  resources: {requests: {cpu: 1}}
  nodeSelector: {a: b}
  tolerations: [{operator: Exists}]
serviceMonitor: {enabled: true, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
dashboards: {enabled: true, annotations: {folder: benchwatch}}
imagePullSecrets: [{name: registry}]
`

// chart is the complete chart, made once for all tests.
var chart = sync.OnceValues(func() (string, error) {
	out, err := filepath.Abs("../../build/chart")
	if err != nil {
		return "", err
	}
	text, err := exec.Command("../../packaging/chart.sh", out).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("packaging/chart.sh: %w\n%s", err, text)
	}
	return filepath.Join(out, "benchwatch"), nil
})

// render is `helm template` with these values.
func render(t *testing.T, values string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o644); err != nil {
		t.Fatal(err)
	}
	helm := need.GoTool(t, "../..", helm)
	chart, err := chart()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), helm, "template", "bw", chart, "--values", file, "--kube-version", apiVersion)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problem.String())
	}
	return out
}

func objects(t *testing.T, manifest []byte) map[string]object {
	t.Helper()
	found := map[string]object{}
	loader, err := yaml.NewLoader(bytes.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	for {
		var o object
		if loader.Load(&o) != nil {
			break
		}
		if o.Kind != "" {
			found[o.Kind+"/"+o.Metadata.Name] = o
		}
	}
	return found
}

// TestManifestsAreValid guards that Kubernetes and the Prometheus Operator know every
// field.
func TestManifestsAreValid(t *testing.T) {
	check := need.GoTool(t, "../..", kubeconform)
	location := schemas(t)
	for name, values := range map[string]string{"defaults": "{}", "everything": all, "without volume": "agent: {persistence: {enabled: false}}",
		"PostgreSQL": read(t, examples+"postgresql.yaml"), "proxies": read(t, examples+"proxy.yaml")} {
		manifest := render(t, values)
		cmd := exec.CommandContext(t.Context(), check, "-strict", "-summary", "-schema-location", location)
		cmd.Stdin = bytes.NewReader(manifest)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		// The schemas work: they refuse an unknown field.
		cmd = exec.CommandContext(t.Context(), check, "-strict", "-schema-location", location)
		cmd.Stdin = bytes.NewReader(bytes.Replace(manifest, []byte("automountServiceAccountToken:"), []byte("automountServiceAccountTokens:"), 1))
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s: an unknown field passes\n%s", name, out)
		}
	}
}

// TestRulesAndDashboards guards that the chart contains the rules and dashboards of the repository.
func TestRulesAndDashboards(t *testing.T) {
	found := objects(t, render(t, all))
	rules, dashboards := 0, 0
	for pattern, name := range map[string]string{"../../alerts/*.rules.yml": "alerts", "../../prometheus/rules/*.yml": "rules"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			rules++
			o := found["PrometheusRule/bw-benchwatch-"+name+"-"+strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yml"), ".rules")]
			var want map[string]any
			if err := yaml.Unmarshal([]byte(read(t, file)), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(o.Spec, want) {
				t.Errorf("%s differs in the chart", file)
			}
		}
	}
	files, _ := filepath.Glob("../../dashboards/*.json")
	for _, file := range files {
		dashboards++
		base := filepath.Base(file)
		if got := found["ConfigMap/bw-benchwatch-dashboard-"+strings.TrimSuffix(base, ".json")].Data[base]; strings.TrimSpace(got) != strings.TrimSpace(read(t, file)) {
			t.Errorf("%s differs in the chart", file)
		}
	}
	if rules == 0 || dashboards == 0 {
		t.Errorf("%d files of rules, %d dashboards", rules, dashboards)
	}
	for name := range found {
		if strings.HasPrefix(name, "PrometheusRule/") {
			rules--
		}
	}
	if rules != 0 {
		t.Errorf("the chart has %d rules more than the repository", -rules)
	}
}

// TestConfiguration guards that the agent accepts what the chart writes, and that the
// benchmark's agent follows its log.
func TestConfiguration(t *testing.T) {
	for _, values := range []string{"{}", all} {
		data := objects(t, render(t, values))["ConfigMap/bw-benchwatch"].Data
		for name, text := range data {
			dir := t.TempDir()
			for path, text := range map[string]string{name: text, "secrets/db-password": "x"} {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, err := config.Load(filepath.Join(dir, name))
			if err != nil {
				t.Errorf("%v\n%s", err, text)
				continue
			}
			if c.DataDir != "/var/lib/benchwatch" {
				t.Errorf("%s: data_dir is %s", name, c.DataDir)
			}
			if name == "benchmark.yml" && (len(c.Logs) != 1 || c.Logs[0].Path != "/var/lib/benchwatch/output/*.log" || len(c.Targets) != 1) {
				t.Errorf("%s: %+v", name, c.Logs)
			}
		}
	}
}

// schemas writes JSON schemas of all kinds into a folder and returns kubeconform's
// pattern for it. They come from Go modules: the usual place of schemas is a web site.
func schemas(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	api := filepath.Join(module(t, kubernetes), "pkg/openapiclient/builtins", apiVersion)
	for _, path := range []string{"api/v1.json", "apis/apps/v1.json", "apis/batch/v1.json"} {
		var doc map[string]any
		if err := json.Unmarshal([]byte(read(t, filepath.Join(api, path))), &doc); err != nil {
			t.Fatal(err)
		}
		components := doc["components"].(map[string]any)
		strict(components)
		for name, schema := range components["schemas"].(map[string]any) {
			kinds, _ := schema.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
			if len(kinds) != 1 {
				continue
			}
			kind := kinds[0].(map[string]any)
			write(t, folder, kind["kind"].(string), kind["version"].(string), map[string]any{
				"$ref": "#/components/schemas/" + name, "components": components,
			})
		}
	}
	crds := filepath.Join(module(t, operator), "example/prometheus-operator-crd")
	for _, name := range []string{"servicemonitors", "prometheusrules"} {
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema map[string]any `yaml:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, filepath.Join(crds, "monitoring.coreos.com_"+name+".yaml"))), &crd); err != nil {
			t.Fatal(err)
		}
		v := crd.Spec.Versions[0]
		strict(v.Schema.OpenAPIV3Schema["properties"].(map[string]any)["spec"])
		write(t, folder, crd.Spec.Names.Kind, v.Name, v.Schema.OpenAPIV3Schema)
	}
	return folder + "/{{.ResourceKind}}-{{.ResourceAPIVersion}}.json"
}

// strict makes every object with known properties refuse others.
func strict(node any) {
	switch n := node.(type) {
	case map[string]any:
		if _, ok := n["properties"].(map[string]any); ok && n["additionalProperties"] == nil && n["x-kubernetes-preserve-unknown-fields"] == nil {
			n["additionalProperties"] = false
		}
		for _, child := range n {
			strict(child)
		}
	case []any:
		for _, child := range n {
			strict(child)
		}
	}
}

func write(t *testing.T, folder, kind, version string, schema any) {
	t.Helper()
	data, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, strings.ToLower(kind)+"-"+version+".json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// module returns the folder of a module's source.
func module(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", name)
	cmd.Dir = t.TempDir() // not a requirement of this module
	out, err := cmd.Output()
	var m struct{ Dir string }
	if err != nil || json.Unmarshal(out, &m) != nil || m.Dir == "" {
		t.Skipf("%s can't be downloaded: %v", name, err)
	}
	return m.Dir
}
