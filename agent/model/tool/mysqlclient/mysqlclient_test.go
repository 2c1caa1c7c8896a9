package mysqlclient

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"io/fs"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// obfuscate writes text as mysql_config_editor does.
func obfuscate(lines ...string) string {
	key := []byte("0123456789abcdefghij")
	var short [16]byte
	for i, b := range key {
		short[i%16] ^= b
	}
	block, _ := aes.NewCipher(short[:])
	out := bytes.NewBuffer(append(make([]byte, 4), key...))
	for _, line := range lines {
		pad := 16 - len(line)%16
		padded := append([]byte(line), bytes.Repeat([]byte{byte(pad)}, pad)...)
		for i := 0; i < len(padded); i += 16 {
			block.Encrypt(padded[i:], padded[i:])
		}
		_ = binary.Write(out, binary.LittleEndian, uint32(len(padded)))
		out.Write(padded)
	}
	return out.String()
}

func TestLogin(t *testing.T) {
	files := map[string]string{
		"/etc/mysql/my.cnf":  "[client]\nuser = sys\nssl-mode=REQUIRED\n[mysqld]\npassword=wrong\n",
		"/home/me/.my.cnf":   "# mine\n[client]\npassword = \"geheim # 1\"\n!include /more.cnf\n[bench]\nssl_ca=/ca.pem # ours\n",
		"/more.cnf":          "!include /more.cnf\n[client]\nuser=more\n",
		"/only.cnf":          "[client]\npassword=only\n",
		"/home/me/login.cnf": obfuscate("[client]\n", "user = hidden\n", "password = \"obfuscated\"\n", "[other]\n", "password = third\n"),
	}
	environment := map[string]string{}
	in := &tool.Invocation{
		Getenv: func(name string) string { return environment[name] },
		ReadFile: func(name string) ([]byte, error) {
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		from Files
		want tool.Login
	}{
		{"system", nil, Files{}, tool.Login{User: "sys", TLS: tool.TLS{Mode: tool.TLSRequired}}},
		{"home", map[string]string{"HOME": "/home/me"}, Files{Groups: []string{"bench"}},
			tool.Login{User: "more", Password: "geheim # 1", TLS: tool.TLS{Mode: tool.TLSRequired, CAFile: "/ca.pem"}}},
		{"one file", map[string]string{"HOME": "/home/me"}, Files{Only: "/only.cnf"}, tool.Login{Password: "only", TLS: tool.TLS{Mode: tool.TLSPreferred}}},
		{"environment", map[string]string{"MYSQL_PWD": "env"}, Files{None: true}, tool.Login{Password: "env", TLS: tool.TLS{Mode: tool.TLSPreferred}}},
		{"login path", map[string]string{"MYSQL_TEST_LOGIN_FILE": "/home/me/login.cnf"}, Files{None: true},
			tool.Login{User: "hidden", Password: "obfuscated", TLS: tool.TLS{Mode: tool.TLSPreferred}}},
		{"named login path", map[string]string{"MYSQL_TEST_LOGIN_FILE": "/home/me/login.cnf"}, Files{None: true, LoginPath: "other"},
			tool.Login{User: "hidden", Password: "third", TLS: tool.TLS{Mode: tool.TLSPreferred}}},
	} {
		environment = c.env
		if got := Read(in, c.from).Login(in); got.User != c.want.User || got.Password != c.want.Password || got.TLS != c.want.TLS {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTLS(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    tool.TLSMode
	}{
		{Options{}, tool.TLSPreferred},
		{Options{"ssl-mode": "DISABLED"}, tool.TLSOff},
		{Options{"ssl-mode": "VERIFY_CA"}, tool.TLSVerifyCA},
		{Options{"skip-ssl": ""}, tool.TLSOff},
		{Options{"ssl": "0"}, tool.TLSOff},
		{Options{"ssl": ""}, tool.TLSRequired},
		{Options{"ssl": "on", "ssl-ca": "ca"}, tool.TLSVerifyCA},
		{Options{"ssl-verify-server-cert": ""}, tool.TLSVerify},
		{Options{"ssl-cert": "c", "ssl-key": "k"}, tool.TLSRequired},
	} {
		if got := c.options.tls(); got.Mode != c.want {
			t.Errorf("%v: %q, want %q", c.options, got.Mode, c.want)
		}
	}
}

func FuzzReveal(f *testing.F) {
	f.Add([]byte(obfuscate("[client]\n", "password = x\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(reveal(data)) > len(data) {
			t.Error("the text is longer than the file")
		}
	})
}
