// Package compose checks the files of compose/ with the library by which docker compose reads
// them.
package compose

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const (
	root   = "../.."
	folder = root + "/compose"
)

var profiles = []string{"mysql", "galera", "group-replication", "replication", "postgresql", "proxy", "mongodb", "mongodb-sharded", "tidb", "tidb-balanced", "aurora", "fleet"}

// load reads compose.yaml as docker compose does. Unknown keys, services, volumes and
// cycles in depends_on are errors of the library. A variable that is not set and has no
// default is an error here; docker compose only warns of it.
func load(t *testing.T, env map[string]string, profiles ...string) *types.Project {
	t.Helper()
	project, err := loadProject(env, profiles)
	if err != nil {
		t.Fatalf("profiles %v: %v", profiles, err)
	}
	return project
}

func loadProject(env map[string]string, profiles []string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{filepath.Join(folder, "compose.yaml")},
		cli.WithProfiles(profiles),
		cli.WithEnv(pairs(env)),
		cli.WithInterpolation(true),
		cli.WithResolvedPaths(true),
		cli.WithConsistency(true),
	)
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

func pairs(env map[string]string) []string {
	var list []string
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	return list
}

// allProfiles is read once, since that takes a second. No test changes it.
var allProfiles = sync.OnceValues(func() (*types.Project, error) { return loadProject(nil, profiles) })

func everything(t *testing.T) *types.Project {
	t.Helper()
	project, err := allProfiles()
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// each calls check for each service of all profiles.
func each(t *testing.T, check func(*testing.T, types.ServiceConfig)) {
	t.Helper()
	services := everything(t).Services
	for _, name := range slices.Sorted(maps.Keys(services)) {
		t.Run(name, func(t *testing.T) { check(t, services[name]) })
	}
}

var core = []string{
	"agent", "alertmanager", "configure", "grafana", "grafana-token", "node-exporter", "prometheus", "reload", "secrets",
}

func TestProfiles(t *testing.T) {
	family := func(names ...string) []string {
		all := []string{}
		for _, name := range names {
			all = append(all, name, name+"-exporter")
		}
		return all
	}
	for profile, want := range map[string][]string{
		"":                  {},
		"mysql":             {"mysql", "mysqld-exporter"},
		"galera":            family("galera1", "galera2", "galera3"),
		"group-replication": append(family("gr1", "gr2", "gr3"), "group"),
		"replication":       append(family("primary", "replica1", "replica2"), "replication"),
		"postgresql":        family("postgresql1", "postgresql2", "postgresql3"),
		"proxy":             append(family("postgresql1", "postgresql2", "postgresql3"), "mysql", "mysqld-exporter", "haproxy", "proxysql", "pgbouncer"),
		"mongodb":           append(family("mongo1", "mongo2", "mongo3"), "mongodb-set"),
		"mongodb-sharded": append(family("mongos", "shard1a", "shard1b", "shard2a", "shard2b", "shard3a", "shard3b", "config1", "config2", "config3"),
			"arbiter1", "arbiter2", "arbiter3", "config-set", "shard1-set", "shard2-set", "shard3-set", "mongodb-cluster"),
		"tidb":          {"pd", "tikv1", "tikv2", "tikv3", "tidb"},
		"tidb-balanced": {"pd", "tikv1", "tikv2", "tikv3", "tidb", "tidb2", "tidb3", "tidb-balancer"},
		"aurora":        {"cloudwatch-config", "cloudwatch-exporter"},
		"fleet": {"fleet-objects", "forwarder", "thanos-receiver1", "thanos-receiver2", "thanos-receiver3", "thanos-router",
			"thanos-querier", "thanos-ruler", "thanos-store", "thanos-compactor"},
	} {
		t.Run("profile "+profile, func(t *testing.T) {
			want = append(want, core...)
			var project *types.Project
			if profile == "" {
				project = load(t, nil)
			} else {
				project = load(t, nil, profile)
				want = append(want, "loadgen")
			}
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(got, want) {
				t.Errorf("services %v, want %v", got, want)
			}
		})
	}
}

// Each file in compose/ belongs to the project.
func TestEveryFileIsIncluded(t *testing.T) {
	text := read(t, folder+"/compose.yaml")
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil || len(files) != 1+len(profiles) {
		t.Fatalf("%v, %v: compose.yaml and one file for each profile expected", files, err)
	}
	for _, profile := range profiles {
		if !strings.Contains(text, "  - "+profile+".yaml\n") {
			t.Errorf("compose.yaml does not include %s.yaml", profile)
		}
	}
}

// The environment of the shell has no influence by accident: every variable has a default or
// is passed on unchanged.
func TestVariables(t *testing.T) {
	plain := regexp.MustCompile(`\$\{?[A-Za-z_]+\}|\$[A-Za-z_]`)
	for _, file := range composeFiles(t) {
		for i, line := range strings.Split(read(t, file), "\n") {
			if found := plain.FindString(strings.ReplaceAll(line, "$$", "")); found != "" {
				t.Errorf("%s:%d: %s has no default", file, i+1, found)
			}
		}
	}
	project := load(t, map[string]string{"PROMETHEUS_PORT": "29999"}, "mysql")
	if port := project.Services["prometheus"].Ports[0].Published; port != "29999" {
		t.Errorf("PROMETHEUS_PORT=29999 publishes port %s", port)
	}
	for _, profile := range profiles {
		load(t, map[string]string{"AWS_REGION": "eu-central-1", "MONGODB_CACHE_GB": "4"}, profile)
	}
}

// A joining node gets the accounts of its donor, so the password that the image created for
// its own health check is no longer valid.
func TestGaleraIsAskedAsASharedUser(t *testing.T) {
	services := load(t, nil, "galera").Services
	for _, name := range []string{"galera1", "galera2", "galera3"} {
		if test := strings.Join(services[name].HealthCheck.Test, " "); !strings.Contains(test, "/secrets/client.cnf") {
			t.Errorf("%s: %s", name, test)
		}
	}
}

// Mounted files and folders are in the repository. For a missing one, the engine would make
// an empty folder.
func TestMountsExist(t *testing.T) {
	each(t, func(t *testing.T, s types.ServiceConfig) {
		for _, v := range s.Volumes {
			switch {
			case v.Type == types.VolumeTypeVolume && v.Source == "":
				t.Errorf("%s: an anonymous volume is lost with its container", v.Target)
			case v.Type == types.VolumeTypeBind && !v.ReadOnly:
				t.Errorf("%s can be written by the container", v.Source)
			case v.Type == types.VolumeTypeBind && v.Source != "/":
				if _, err := os.Stat(v.Source); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// The arguments of the scripts in setup/ exist, too.
func TestScriptsExist(t *testing.T) {
	each(t, func(t *testing.T, s types.ServiceConfig) {
		for _, word := range append(slices.Clone(s.Entrypoint), s.Command...) {
			if name, found := strings.CutPrefix(word, "/setup/"); found {
				read(t, folder+"/setup/"+name)
			}
		}
	})
}

func TestPortsAreOnLoopback(t *testing.T) {
	published := map[string]string{}
	each(t, func(t *testing.T, s types.ServiceConfig) {
		for _, p := range s.Ports {
			if ip := net.ParseIP(p.HostIP); ip == nil || !ip.IsLoopback() {
				t.Errorf("port %s is published on %q", p.Published, p.HostIP)
			}
			if other := published[p.Published]; other != "" {
				t.Errorf("port %s is published by %s, too", p.Published, other)
			}
			published[p.Published] = s.Name
		}
		if s.NetworkMode == "host" || s.Privileged {
			t.Error("the container is not isolated from its host")
		}
	})
}

// oneShot are the services that do their work and end.
func oneShot(s types.ServiceConfig) bool { return s.Restart == "no" && s.Name != "loadgen" }

// Servers and exporters have a health check and restart after a crash. Others wait until they
// are healthy, or until a step has succeeded.
func TestHealthAndOrder(t *testing.T) {
	services := everything(t).Services
	each(t, func(t *testing.T, s types.ServiceConfig) {
		switch {
		case oneShot(s) || s.Name == "loadgen":
			if s.HealthCheck != nil || s.Restart != "no" {
				t.Error("a service that ends must not restart")
			}
		case s.HealthCheck == nil || s.HealthCheck.Disable || len(s.HealthCheck.Test) < 2:
			t.Error("no health check")
		case s.Restart != "unless-stopped":
			t.Errorf("restart: %q", s.Restart)
		}
		for name, on := range s.DependsOn {
			want := types.ServiceConditionHealthy
			if oneShot(services[name]) {
				want = types.ServiceConditionCompletedSuccessfully
			}
			if on.Condition != want && s.Name != "configure" {
				t.Errorf("waits for %s to be %s, not %s", name, on.Condition, want)
			}
			if s.Name == "configure" && name != "secrets" && (on.Required || on.Condition != types.ServiceConditionStarted) {
				t.Errorf("needs %s, which another profile does not have", name)
			}
		}
		if s.Name == "loadgen" {
			// docker compose run loadgen activates all of its profiles, so its dependencies
			// would start every system.
			if len(s.DependsOn) > 0 {
				t.Error("depends on other services")
			}
			return
		}
		if uses(s, "secrets") && s.Name != "secrets" && !waitsFor(services, s.Name, "secrets") {
			t.Error("reads secrets, but does not wait until they exist")
		}
	})
}

func uses(s types.ServiceConfig, volume string) bool {
	return slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Source == volume })
}

func waitsFor(services types.Services, name, other string) bool {
	for next := range services[name].DependsOn {
		if next == other || waitsFor(services, next, other) {
			return true
		}
	}
	return false
}

// What a service stores is in a named volume.
func TestVolumes(t *testing.T) {
	services := everything(t).Services
	for name, target := range map[string]string{
		"agent": "/var/lib/benchwatch", "loadgen": "/var/lib/benchwatch", "prometheus": "/prometheus",
		"alertmanager": "/alertmanager", "grafana": "/var/lib/grafana", "mysql": "/var/lib/mysql",
		"galera1": "/var/lib/mysql", "galera2": "/var/lib/mysql", "galera3": "/var/lib/mysql",
		"gr1": "/var/lib/mysql", "gr2": "/var/lib/mysql", "gr3": "/var/lib/mysql",
		"primary": "/var/lib/mysql", "replica1": "/var/lib/mysql", "replica2": "/var/lib/mysql",
		"postgresql1": "/var/lib/postgresql/data", "postgresql2": "/var/lib/postgresql/data", "postgresql3": "/var/lib/postgresql/data",
		"mongo1": "/data/db", "mongo2": "/data/db", "mongo3": "/data/db",
		"config1": "/data/db", "config2": "/data/db", "config3": "/data/db",
		"shard1a": "/data/db", "shard1b": "/data/db", "arbiter1": "/data/db",
		"shard2a": "/data/db", "shard2b": "/data/db", "arbiter2": "/data/db",
		"shard3a": "/data/db", "shard3b": "/data/db", "arbiter3": "/data/db",
		"pd": "/data", "tikv1": "/data", "tikv2": "/data", "tikv3": "/data",
		"forwarder": "/prometheus", "thanos-receiver1": "/thanos", "thanos-receiver2": "/thanos", "thanos-receiver3": "/thanos",
		"thanos-ruler": "/thanos", "thanos-store": "/thanos", "thanos-compactor": "/thanos", "fleet-objects": "/objects",
	} {
		owners := map[string]string{}
		found := slices.ContainsFunc(services[name].Volumes, func(v types.ServiceVolumeConfig) bool {
			if v.Target != target || v.Type != types.VolumeTypeVolume {
				return false
			}
			if target != "/var/lib/benchwatch" && owners[v.Source] != "" {
				t.Errorf("%s and %s share %s", name, owners[v.Source], v.Source)
			}
			owners[v.Source] = name
			return true
		})
		if !found {
			t.Errorf("%s: %s is in no volume", name, target)
		}
	}
}

// Passwords come from files that setup/secrets.sh makes; no file of the repository has one.
func TestNoPasswords(t *testing.T) {
	secretName := regexp.MustCompile(`(?i)(passw|secret|token|_key)`)
	passedOn := []string{"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"}
	each(t, func(t *testing.T, s types.ServiceConfig) {
		for name, value := range s.Environment {
			switch {
			case !secretName.MatchString(name) || slices.Contains(passedOn, name) && value == nil:
			case value == nil || !strings.HasPrefix(*value, "/secrets/") || !regexp.MustCompile(`_FILE$`).MatchString(name):
				t.Errorf("%s is not a file in /secrets", name)
			}
		}
		for _, word := range append(slices.Clone(s.Entrypoint), s.Command...) {
			if regexp.MustCompile(`(?i)(passw(or)?d|token)=[^/]`).MatchString(word) {
				t.Errorf("a password in %q", word)
			}
		}
	})
	literal := regexp.MustCompile(`(?i)(password|passwd|token|secret)["']?\s*[:=]\s*["']?([^\s"'$%]+)`)
	for _, file := range sources(t) {
		for i, line := range strings.Split(read(t, file), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			if m := literal.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[2], "/secrets/") && !strings.HasPrefix(m[2], "secret(") && m[2] != "(name)" {
				t.Errorf("%s:%d: %q looks like a password", file, i+1, m[0])
			}
		}
	}
}

// composeFiles returns the files that docker compose reads.
func composeFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sources returns all files of compose/ except its manual.
func sources(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) != ".md" && !strings.Contains(path, "/local/") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The agent starts only if the files of its configuration exist, so setup/secrets.sh, which
// runs before everything else, makes them all.
func TestSecretsOfAgentExist(t *testing.T) {
	made := read(t, folder+"/setup/secrets.sh")
	files := 0
	for _, source := range sources(t) {
		if !strings.HasPrefix(source, folder+"/agent/") {
			continue
		}
		for _, m := range regexp.MustCompile(`: /secrets/([a-z-]+)`).FindAllStringSubmatch(read(t, source), -1) {
			files++
			if !regexp.MustCompile(`(?m)^(\[ -e .* \|\| )?(secret|put) ` + m[1] + ` `).MatchString(made) {
				t.Errorf("%s names /secrets/%s, which setup/secrets.sh does not make", source, m[1])
			}
		}
	}
	if files < 10 {
		t.Errorf("only %d files", files)
	}
}
