package secret

import "io"

// Writer blanks what looks like a secret in what is written to W. What one call of
// Write gets is read as a whole: a line of a log, a message.
type Writer struct{ W io.Writer }

// Write implements io.Writer.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.W, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
