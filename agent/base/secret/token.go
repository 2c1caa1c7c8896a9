package secret

import (
	"errors"
	"fmt"
	"strings"
)

// maxToken is the maximum length of a token in bytes. No real token is that long.
const maxToken = 16 << 10

// ReadToken returns the token in a file: one line of printable characters. The error names the
// file; it wraps fs.ErrNotExist if the file does not exist.
func ReadToken(file string) (string, error) {
	data, err := ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read token file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("token file %s is empty", file)
	}
	if err := CheckToken(token); err != nil {
		return "", fmt.Errorf("token file %s: %w", file, err)
	}
	return token, nil
}

// CheckToken reports what is wrong with a token. The error does not contain the token.
func CheckToken(token string) error {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("no token; one line of printable characters is expected")
	}
	return nil
}

// ReadPassword returns the password in a file, without the line end. Unlike a token a password can
// contain anything. The error names the file.
func ReadPassword(file string) (string, error) {
	data, err := ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read password file: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
