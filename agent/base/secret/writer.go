package secret

import "io"

// Writer blanks secrets in everything written to W. Each call of Write is read by itself, so it has
// to contain a whole line or message.
type Writer struct{ W io.Writer }

// Write implements io.Writer.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.W, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
