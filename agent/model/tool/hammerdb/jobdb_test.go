package hammerdb

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/model/tool/tooltest"
)

const jobDatabase = "testdata/hammer.DB"

// TestJobDatabase reads two runs of a loop, whose second has no result, and a build.
func TestJobDatabase(t *testing.T) {
	t.Setenv("TZ", "UTC")
	var text bytes.Buffer
	if err := decodeJobs(t.Context(), jobDatabase, &text); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"maria_pass", "maria_user"} {
		if bytes.Contains(text.Bytes(), []byte(login)) {
			t.Errorf("the text has %s", login)
		}
	}
	if sniff(text.Bytes()) < 90 {
		t.Errorf("the text is not recognised")
	}
	tooltest.Golden(t, "testdata/hammer.golden.txt", tooltest.Parse(Tool, tooltest.Lines(tool.Stdout, text.Bytes())).String())
}

// TestDamagedJobDatabase reads files that are no complete job database.
func TestDamagedJobDatabase(t *testing.T) {
	whole, err := os.ReadFile(jobDatabase)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(path string) error{
		"cut":        func(path string) error { return os.WriteFile(path, whole[:len(whole)/3], 0o600) },
		"not SQLite": func(path string) error { return os.WriteFile(path, []byte("HammerDB JOBMAIN"), 0o600) },
		"a new version": func(path string) error {
			return change(path, whole, "ALTER TABLE JOBOUTPUT RENAME COLUMN output TO lines")
		},
		"another one": func(path string) error { return change(path, whole, "ALTER TABLE JOBMAIN RENAME TO RUNS") },
	} {
		path := filepath.Join(t.TempDir(), "hammer?.DB")
		if err := damage(path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := decodeJobs(t.Context(), path, &bytes.Buffer{}); !errors.Is(err, ErrJobDatabase) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func change(path string, content []byte, statement string) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Dir(path)+"/hammer%3f.DB")
	if err != nil {
		return err
	}
	_, err = db.Exec(statement)
	return errors.Join(err, db.Close())
}
