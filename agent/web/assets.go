package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"time"
)

// dist is what `npm run build` made of src; without Node it is empty but for a
// file that keeps the folder.
//
//go:embed all:dist
var dist embed.FS

const indexFile = "index.html"

// ContentSecurityPolicy lets the page load its own files and nothing else.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Built reports whether the page is in this binary.
func Built() bool {
	_, err := fs.Stat(dist, "dist/"+indexFile)
	return err == nil
}

// registerAssets adds the page's files, and the list at /list. Where the page was
// not built in, the list is at / too.
func (p *Page) registerAssets(mux *http.ServeMux) {
	mux.HandleFunc("GET /list", p.serveList)
	if !Built() {
		mux.HandleFunc("GET /{$}", p.serveList)
		return
	}
	entries, err := fs.ReadDir(dist, "dist")
	if err != nil {
		p.log.Error("the live page can't be served", "err", err)
		return
	}
	for _, e := range entries {
		data, err := fs.ReadFile(dist, "dist/"+e.Name())
		if err != nil || e.Name()[0] == '.' {
			continue
		}
		pattern := "GET /" + e.Name()
		if e.Name() == indexFile {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, asset(e.Name(), data))
	}
}

// asset serves one file, which browsers keep until a new binary has another.
func asset(file string, data []byte) http.Handler {
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	kind := mime.TypeByExtension(path.Ext(file))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy", ContentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		http.ServeContent(w, r, file, time.Time{}, bytes.NewReader(data))
	})
}
