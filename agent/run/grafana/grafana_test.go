package grafana

import (
	"strings"
	"testing"
	"time"
)

func TestBadAddress(t *testing.T) {
	for _, bad := range []string{
		"", "grafana.test:3000", "ftp://grafana.test", "http://", "http://:3000", "/grafana", "file:///etc/passwd",
		"http://admin:hunter2@grafana.test", "http://glsa_hunter2@grafana.test", "http://grafana.test/?token=hunter2",
		"http://grafana.test/#hunter2", "http://admin:hunter2@grafana.test:port",
	} {
		_, err := New(bad, "")
		if err == nil {
			t.Errorf("%q: accepted", bad)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows a secret: %v", bad, err)
		}
	}
}

func TestRetryAfterHeader(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-5": 0, "soon": 0, "99999999999999999999": 0,
		"2000000000":                    maxRetryAfter,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0,
		"Fri, 31 Dec 2100 23:59:59 GMT": maxRetryAfter,
	} {
		if got := retryAfter(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
