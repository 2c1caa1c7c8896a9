package compose

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

var (
	versioned = regexp.MustCompile(`:v?\d+\.\d+(\.\d+)?(-[a-z0-9.-]+)?$`)
	floating  = regexp.MustCompile(`(?i)latest|stable|nightly|edge|main|master`)
)

func TestVersionsArePinned(t *testing.T) {
	each(t, func(t *testing.T, s types.ServiceConfig) {
		pinned(t, s.Image)
		if strings.HasPrefix(s.Image, "benchwatch/") {
			version := strings.TrimSpace(read(t, root+"/VERSION"))
			if !strings.HasSuffix(s.Image, ":"+version) {
				t.Errorf("image %s, but VERSION has %s", s.Image, version)
			}
		}
	})
	text := read(t, folder+"/Dockerfile")
	stages := map[string]bool{"scratch": true}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?`).FindAllStringSubmatch(text, -1) {
		image := m[1]
		if name, found := strings.CutPrefix(image, "${"); found {
			def := regexp.MustCompile(`(?m)^ARG ` + strings.TrimSuffix(name, "}") + `=(\S+)$`).FindStringSubmatch(text)
			if def == nil {
				t.Fatalf("%s has no default", image)
			}
			image = def[1]
		}
		if !stages[image] {
			pinned(t, image)
		}
		stages[m[2]] = true
	}
	for _, m := range regexp.MustCompile(`-require=.*@(\S+)`).FindAllStringSubmatch(text, -1) {
		if !versioned.MatchString(":" + m[1]) {
			t.Errorf("a Go program of version %s", m[1])
		}
	}
	// The version of Go's image equals the version in go.mod.
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, root+"/go.mod"))[1]
	if !strings.Contains(text, "golang:"+want+".") {
		t.Errorf("go.mod has Go %s, the Dockerfile another version", want)
	}
}

func pinned(t *testing.T, image string) {
	t.Helper()
	if !versioned.MatchString(image) || floating.MatchString(image[strings.LastIndex(image, ":")+1:]) {
		t.Errorf("image %q has no fixed version", image)
	}
}

// Every build target is a stage of the Dockerfile.
func TestBuilds(t *testing.T) {
	each(t, func(t *testing.T, s types.ServiceConfig) {
		if (s.Build != nil) != strings.HasPrefix(s.Image, "benchwatch/") {
			t.Fatalf("image %s: the project's images are built, others are pulled", s.Image)
		}
		if s.Build == nil {
			return
		}
		file := filepath.Join(s.Build.Context, s.Build.Dockerfile)
		if !regexp.MustCompile(`(?m) AS ` + s.Build.Target + `$`).MatchString(read(t, file)) {
			t.Errorf("%s has no stage %s", file, s.Build.Target)
		}
	})
}

// Without a build argument, the Dockerfile's own address applies.
func TestMirrors(t *testing.T) {
	if args := load(t, nil, "tidb").Services["loadgen"].Build.Args.Resolve(func(string) (string, bool) { return "", false }); args["YCSB_URL"] != nil {
		t.Errorf("YCSB_URL is set to %q", *args["YCSB_URL"])
	}
	args := load(t, map[string]string{"YCSB_URL": "http://mirror.example"}, "tidb").Services["loadgen"].Build.Args
	if url := args["YCSB_URL"]; url == nil || *url != "http://mirror.example" {
		t.Errorf("YCSB_URL is not passed on: %v", args)
	}
	text := read(t, folder+"/Dockerfile")
	for name := range args {
		if !strings.Contains(text, "\nARG "+name+"=") {
			t.Errorf("the Dockerfile has no argument %s", name)
		}
	}
}

// The folder of each package of the agent is copied into the stage that builds it.
func TestSourceIsCopied(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}`, ".")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, ignored := read(t, folder+"/Dockerfile"), read(t, folder+"/Dockerfile.dockerignore")
	for dir := range strings.FieldsSeq(string(out)) {
		if dir == top { // main.go, without which nothing is built
			continue
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(dir, top+"/"), "/")
		if !strings.Contains(dockerfile, "\nCOPY "+first+" "+first+"\n") {
			t.Errorf("the Dockerfile does not copy %s, which the agent imports", first)
		}
		if !strings.Contains(ignored, "\n!"+first+"\n") {
			t.Errorf("Dockerfile.dockerignore leaves out %s", first)
		}
	}
}

// The agent's image only has the agent, which runs as an unprivileged user.
func TestAgentImage(t *testing.T) {
	text := read(t, folder+"/Dockerfile")
	stage := regexp.MustCompile(`(?s)FROM scratch AS agent\n(.*?)\nFROM `).FindStringSubmatch(text)
	if stage == nil {
		t.Fatal("the agent's image is not from scratch")
	}
	for _, want := range []string{`USER \d+:\d+\n`, `ENTRYPOINT \["/benchwatch"\]`, `HEALTHCHECK .*"/benchwatch", "health"`} {
		if !regexp.MustCompile(want).MatchString(stage[1] + "\n") {
			t.Errorf("the agent's stage lacks %s", want)
		}
	}
	if !strings.Contains(text, "CGO_ENABLED=0 go build") {
		t.Error("the agent is not static")
	}
}
