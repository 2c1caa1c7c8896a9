package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"time"
)

// dist is what build.sh makes of src. It is committed, so that building the agent
// needs no Node.js; tests/web checks that it is up to date.
//
//go:embed dist/page.js dist/page.css
var dist embed.FS

// ContentSecurityPolicy lets the page load its own files and nothing else.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (p *Page) registerAssets(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.serveIndex)
	for _, file := range []string{"page.js", "page.css"} {
		data, err := dist.ReadFile("dist/" + file)
		if err != nil {
			panic(err) // it is embedded by name
		}
		mux.Handle("GET /"+file, asset(file, data))
	}
}

func setPageHeaders(h http.Header, contentType string) {
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", ContentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// asset serves one file, which browsers keep until a new binary has another one.
func asset(file string, data []byte) http.Handler {
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	contentType := mime.TypeByExtension(path.Ext(file))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setPageHeaders(w.Header(), contentType)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, file, time.Time{}, bytes.NewReader(data))
	})
}
