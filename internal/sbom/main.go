// Command sbom writes what a built benchwatch consists of: a list in CycloneDX's JSON, or the
// licences of the linked modules. It reads the binary, the modules' source and the lock file of the
// live page, and uses no network.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	licences := flag.Bool("licences", false, "print the licence texts instead of the list")
	version := flag.String("version", "", "version of benchwatch")
	page := flag.String("page", "agent/show/web/package-lock.json", "lock file of the live page")
	flag.Parse()
	if err := run(os.Stdout, flag.Arg(0), *version, *page, *licences); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, binary, version, page string, licences bool) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	parts := []component{goComponent("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if strings.HasPrefix(m.Path, "./") { // a part of this repository
			continue
		}
		parts = append(parts, goComponent(m.Path, m.Version, m.Sum))
	}
	npm, err := npmComponents(page)
	if err != nil {
		return err
	}
	parts = append(parts, npm...)
	if licences {
		return writeLicences(w, parts, filepath.Dir(page))
	}
	return writeList(w, info.Main.Path, version, parts)
}

// The used fields of CycloneDX 1.5.
type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp,omitempty"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		PackageURL string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

func goComponent(path, version, sum string) component {
	purl := "pkg:golang/" + path + "@" + version
	c := component{Type: "library", Ref: purl, Name: path, Version: version, PackageURL: purl}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}

// npmComponents returns the packages bundled into the page, from its lock file, without build
// dependencies.
func npmComponents(path string) ([]component, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
		}
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []component
	for path, p := range lock.Packages {
		_, name, ok := strings.Cut(path, "node_modules/")
		if !ok || p.Dev {
			continue
		}
		purl := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version
		all = append(all, component{Type: "library", Ref: purl, Name: name, Version: p.Version, PackageURL: purl})
	}
	slices.SortFunc(all, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	return all, nil
}

// writeList writes the same bytes for the same program; the time is SOURCE_DATE_EPOCH.
func writeList(w io.Writer, path, version string, parts []component) error {
	main := goComponent(path, "v"+version, "")
	main.Type = "application"
	doc := document{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{Component: main}, Components: parts}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		var seconds int64
		if _, err := fmt.Sscan(epoch, &seconds); err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		doc.Metadata.Timestamp = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
	on := dependency{Ref: main.Ref}
	for _, p := range parts {
		on.On = append(on.On, p.Ref)
	}
	doc.Dependencies = []dependency{on}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// writeLicences writes the licence files of all modules. A module without one is an error, since
// its terms are unknown.
func writeLicences(w io.Writer, parts []component, page string) error {
	for _, p := range parts {
		dir, err := source(p, page)
		if err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			found = true
			fmt.Fprintf(w, "%s %s: %s\n%s\n%s\n\n", p.Name, p.Version, e.Name(), strings.Repeat("-", 78), strings.TrimSpace(string(text)))
		}
		if !found {
			return fmt.Errorf("%s: no licence in %s", p.Ref, dir)
		}
	}
	return nil
}

// source returns the folder with the source of a component.
func source(p component, page string) (string, error) {
	switch {
	case strings.HasPrefix(p.PackageURL, "pkg:npm/"):
		return filepath.Join(page, "licences", p.Name), nil
	case p.Name == "stdlib":
		out, err := exec.Command("go", "env", "GOROOT").Output()
		return strings.TrimSpace(string(out)), err
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", p.Name).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.Ref, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", errors.New(p.Name + ": its source is not in the module cache: run go mod download")
	}
	return dir, nil
}
