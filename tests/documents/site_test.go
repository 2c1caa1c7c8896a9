//go:build site

package documents

import (
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const built = "../../build/site/html"

// place is a file of the site, and what it refers to and can be referred to.
type place struct {
	ids   map[string]bool
	links []string
}

// TestSite follows each link, image and script of the built site: it leads to a file of the site and to a place in it, and
// nothing is loaded from another host.
func TestSite(t *testing.T) {
	files := map[string]*place{}
	err := filepath.WalkDir(built, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		at := &place{}
		if filepath.Ext(path) == ".html" {
			at = parsed(t, path)
		}
		files[path] = at
		return nil
	})
	if err != nil {
		t.Fatal(err, "make docs builds the site")
	}
	all := 0
	for path, at := range files {
		if filepath.Base(path) == "404.html" { // is served at any address
			continue
		}
		for _, link := range at.links {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if u.Scheme != "" || u.Host != "" {
				continue
			}
			all++
			to := path
			if u.Path != "" {
				to = filepath.Join(filepath.Dir(path), u.Path)
				if info, err := os.Stat(to); err == nil && info.IsDir() {
					to = filepath.Join(to, "index.html")
				}
			}
			target := files[to]
			switch {
			case target == nil:
				t.Errorf("%s leads nowhere: %s", path, link)
			case u.Fragment != "" && u.Fragment != "__search" && target.ids != nil && !target.ids[u.Fragment]:
				t.Errorf("%s: %s has no such place: %s", path, to, link)
			}
		}
	}
	if all < 5000 {
		t.Errorf("only %d links", all)
	}
}

// parsed reads a page. What a page loads from another host is an error.
func parsed(t *testing.T, path string) *place {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	root, err := html.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	at := &place{ids: map[string]bool{}}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id" || a.Key == "name" && n.Data == "a":
				at.ids[a.Val] = true
			case a.Key == "href" && n.Data != "base", a.Key == "src":
				at.links = append(at.links, a.Val)
				loaded := a.Key == "src" || n.Data == "link" && !strings.Contains(attribute(n, "rel"), "canonical") && attribute(n, "rel") != "alternate"
				if loaded && strings.Contains(a.Val, "//") {
					t.Errorf("%s loads %s", path, a.Val)
				}
			}
		}
	}
	return at
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// TestSitePublished puts the site into a branch three times: as main, as a release and as the next one.
func TestSitePublished(t *testing.T) {
	branch := t.TempDir()
	for _, args := range [][]string{{branch, "main"}, {branch, "0.2", "latest"}, {branch, "0.10", "latest"}, {branch, "main"}} {
		if out, err := exec.Command("../../site/publish.sh", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	const want = `[{"version":"main","title":"main","aliases":[]},{"version":"0.10","title":"0.10","aliases":["latest"]},{"version":"0.2","title":"0.2","aliases":[]}]`
	if got := strings.Join(strings.Fields(read(t, filepath.Join(branch, "versions.json"))), ""); got != want {
		t.Errorf("versions.json: %s", got)
	}
	for _, file := range []string{"main/index.html", "0.2/limits/index.html", "latest/metrics/index.html"} {
		read(t, filepath.Join(branch, file))
	}
	if start := read(t, filepath.Join(branch, "index.html")); !strings.Contains(start, "url=latest/") {
		t.Errorf("the root leads to %s", start)
	}
}
