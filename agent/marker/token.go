package marker

import (
	"fmt"
	"os"
	"strings"
)

// Token says where the service account's token comes from.
type Token struct {
	// File holds the token; it is read at each request, so that a new token
	// counts at once.
	File string
	// Value is used when there is no File.
	Value string
}

// maxToken is more than any token has, in bytes.
const maxToken = 16 << 10

// Read returns the token. None is empty and no error: a Grafana may let
// anybody in.
func (t Token) Read() (string, error) {
	value := t.Value
	if t.File != "" {
		data, err := os.ReadFile(t.File)
		if err != nil {
			return "", fmt.Errorf("read grafana token: %w", err)
		}
		value = strings.TrimSpace(string(data))
		if value == "" {
			return "", fmt.Errorf("grafana token file %s is empty", t.File)
		}
	}
	if len(value) > maxToken || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("grafana token %sis not a token: one line of printable characters is expected", t.named())
	}
	return value, nil
}

func (t Token) named() string {
	if t.File == "" {
		return ""
	}
	return "in " + t.File + " "
}
