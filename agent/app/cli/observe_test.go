package cli

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPanicIsLogged guards that a failing answer is an error in the log and ends the connection, and that an abandoned
// answer is not an error.
func TestPanicIsLogged(t *testing.T) {
	for cause, want := range map[any]string{"index out of range": `level=ERROR msg="answer failed" path=/runs/a/report panic="index out of range"`, http.ErrAbortHandler: ""} {
		var log bytes.Buffer
		h := logPanics(slog.New(slog.NewTextHandler(&log, nil)), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(cause) }))
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // the server compares so
					t.Errorf("%v: the server sees %v", cause, p)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/runs/a/report", nil))
		}()
		if got := log.String(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%v: logged %q", cause, got)
		}
	}
}
