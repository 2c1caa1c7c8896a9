package commandline_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

// TestReadHidesEverySecret checks the commands in testdata/secrets.txt, where § is the secret, · a
// blank within an argument and ⏎ a line break: nothing that Read returns for display contains the
// secret or half of it.
func TestReadHidesEverySecret(t *testing.T) {
	data, err := os.ReadFile("testdata/secrets.txt")
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	const letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	for line := range strings.Lines(string(data)) {
		b := []byte{'Z'}
		for range 14 {
			b = append(b, letters[r.IntN(len(letters))])
		}
		pw := string(b) + "9"
		var args []string
		for a := range strings.FieldsSeq(line) {
			args = append(args, strings.NewReplacer("·", " ", "⏎", "\n", "§", pw).Replace(a))
		}
		c := commandline.Read(args, registry.Tools, commandline.Env{})
		d := c.Description
		for _, shown := range []string{
			strings.Join(c.Redacted, " "), c.Title(), c.Program, d.Workload, d.Target, d.Database, d.Command, fmt.Sprint(d.Labels), fmt.Sprint(d.Notes),
		} {
			if strings.Contains(shown, pw[:8]) || strings.Contains(shown, pw[8:]) {
				t.Errorf("seed %d: %s\n\tshows %q", seed, line, shown)
			}
		}
		if started := strings.Join(c.Start, " "); !strings.Contains(started, pw) {
			t.Errorf("%s\n\tis started as %q", line, started)
		}
	}
}
