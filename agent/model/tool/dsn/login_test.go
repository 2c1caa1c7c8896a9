package dsn

import (
	"maps"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// TestCredentials guards that a connection string's login is read, with at least its TLS.
func TestCredentials(t *testing.T) {
	for s, want := range map[string]tool.Login{
		"mongodb://u:p%40w@h:1,h:2/db":                     {User: "u", Password: "p@w", Options: map[string]string{"auth_source": "db"}},
		"mongodb://u:p@h/?authSource=admin&tls=true":       {User: "u", Password: "p", TLS: tool.TLS{Mode: tool.TLSVerify}, Options: map[string]string{"auth_source": "admin"}},
		"mongodb://h/?ssl=true&tlsInsecure=true":           {TLS: tool.TLS{Mode: tool.TLSRequired}},
		"mongodb://h/?tlsCAFile=/ca.pem":                   {TLS: tool.TLS{Mode: tool.TLSVerify, CAFile: "/ca.pem"}},
		"mongodb+srv://h/?tls=false":                       {},
		"mongodb+srv://h/":                                 {TLS: tool.TLS{Mode: tool.TLSVerify}},
		"jdbc:mysql://h/db":                                {TLS: tool.TLS{Mode: tool.TLSPreferred}},
		"jdbc:mysql://h/db?useSSL=false&user=u&password=p": {User: "u", Password: "p"},
		"jdbc:mysql://h/db?useSSL=true":                    {TLS: tool.TLS{Mode: tool.TLSRequired}},
		"jdbc:mysql://h/db?sslMode=VERIFY_IDENTITY":        {TLS: tool.TLS{Mode: tool.TLSVerify}},
		"jdbc:mariadb://h/db?sslMode=trust":                {TLS: tool.TLS{Mode: tool.TLSRequired}},
		"jdbc:mysql://h/db?sslMode=new":                    {TLS: tool.TLS{Mode: tool.TLSVerify}},
		"jdbc:postgresql://h/db?sslmode=verify-ca&user=u":  {User: "u", TLS: tool.TLS{Mode: tool.TLSVerifyCA}},
		"postgres://u:p@h/db?sslmode=disable":              {User: "u", Password: "p"},
		"not a url":                                        {},
	} {
		got := Credentials(s)
		if got.User != want.User || got.Password != want.Password || got.TLS != want.TLS || !maps.Equal(got.Options, want.Options) {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
	}
}
