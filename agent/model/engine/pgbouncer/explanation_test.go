package pgbouncer

import (
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/proxy"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestLogins guards when logins are what keeps the thread busy, and that optional TLS leaves open which kind they are.
func TestLogins(t *testing.T) {
	view := func(logins, cores float64, tls string) *cause.View {
		return &cause.View{Limit: cause.ProxyThread, Target: "px", Seconds: 10, Throughput: 200, Record: &causetest.Record{
			Over:     map[*measure.Measure][]float64{engine.ServerCPU: {cores, cores}},
			Grown:    map[*measure.Measure]float64{proxy.Accepted: logins},
			Settings: map[string]string{"client_tls_sslmode": tls}}}
	}
	for name, c := range map[string]struct {
		view           *cause.View
		encrypted, not string // the evidence of each cause; empty: it is not found
	}{
		"TLS":             {view(2000, 1, "require"), "200 TLS handshakes a second, 1.00 for each transaction, and px used 5.00 ms", ""},
		"no TLS":          {view(2000, 1, "disable"), "", "200 logins a second, 1.00 for each transaction, and px used 5.00 ms"},
		"optional TLS":    {view(2000, 1, "prefer"), "", ""},
		"few logins":      {view(20, 1, "require"), "", ""},
		"cheap logins":    {view(2000, 0.05, "require"), "", ""},
		"before 1.24":     {&cause.View{Seconds: 10, Throughput: 200, Record: &causetest.Record{Settings: map[string]string{"client_tls_sslmode": "require"}}}, "", ""},
		"unknown setting": {view(2000, 1, ""), "", ""},
	} {
		for encrypted, want := range map[bool]string{true: c.encrypted, false: c.not} {
			if found, is := logins(c.view, encrypted); is != (want != "") || !strings.Contains(found.Evidence, want) {
				t.Errorf("%s, %v: %v, %+v, want %q", name, encrypted, is, found, want)
			}
		}
	}
}
