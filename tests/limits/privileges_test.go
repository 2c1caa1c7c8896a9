//go:build limits

package limits

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/internal/servers"
)

// TestDocumentedPrivileges: a user with the privileges that docs/databases/mysql.md lists sees who holds the locks that
// sessions wait for, and InnoDB's monitor; nothing is missing.
func TestDocumentedPrivileges(t *testing.T) {
	for kind, heading := range map[servers.Kind]string{servers.MariaDB: "-- MariaDB 10.5 and later", servers.MySQL9: "-- MySQL 5.7 and later"} {
		t.Run(string(kind), func(t *testing.T) {
			g := started(t, kind, 1, "performance_schema=ON", "performance_schema_instrument='wait/lock/metadata/sql/mdl=ON'")
			page, err := os.ReadFile("../../docs/databases/mysql.md")
			must(t, err)
			_, block, found := strings.Cut(string(page), heading)
			block, _, ended := strings.Cut(block, "\n\n")
			if !found || !ended {
				t.Fatalf("docs/databases/mysql.md has no block %q", heading)
			}
			block = regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(block, "")
			_, block, _ = strings.Cut(block, "\n")
			for statement := range strings.SplitSeq(strings.NewReplacer("10.0.0.%", "127.0.0.1", "…", "secret-of-a-test").Replace(block), ";") {
				if strings.TrimSpace(statement) != "" {
					_, err := g.Query(t.Context(), 1, statement)
					must(t, err)
				}
			}
			waits := map[string]evidence.Kind{}
			locked := func(kind evidence.Kind, holds []string, statement string) {
				holder, waiting := session(t, g, 1), session(t, g, 1)
				id := ""
				must(t, waiting.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id))
				for _, statement := range append([]string{"BEGIN"}, holds...) {
					do(t, holder, statement)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = waiting.ExecContext(context.Background(), statement)
				}()
				t.Cleanup(func() { do(t, holder, "ROLLBACK"); <-done })
				waits[id] = kind
			}
			locked(evidence.RowLock, []string{"UPDATE sbtest.sbtest1 SET k = 0 WHERE id = 5"}, "UPDATE sbtest.sbtest1 SET k = 1 WHERE id = 5")
			locked(evidence.MetadataLock, []string{"SELECT * FROM sbtest.sbtest2 WHERE id = 1"}, "ALTER TABLE sbtest.sbtest2 ADD COLUMN extra INT")
			log := slog.New(slog.DiscardHandler)
			w := engine.NewWitnesses(func(target engine.Target) (engine.Prober, error) { return registry.ByName("mysql").Open(target, log) }, log)
			t.Cleanup(w.Close)
			w.Arm("r", []engine.Target{{Name: "n1", Engine: "mysql", Address: g.Address(1), User: "benchwatch", Password: "secret-of-a-test"}})
			<-time.After(2 * time.Second) // the statements above wait by then
			a := w.Testify(t.Context(), "r")[0]
			if a.Error != "" || len(a.Missing) > 0 {
				t.Errorf("%q, missing %q", a.Error, a.Missing)
			}
			for id, kind := range waits {
				if s := a.Session(id); s == nil || s.Waits == nil || s.Waits.Kind != kind || len(s.Waits.By) != 1 || s.Waits.Likely {
					t.Errorf("session %s: %+v, expected to wait for a %s", id, s, kind)
				}
			}
			if _, ok := a.Values["Innodb_history_list_length"]; !ok {
				t.Error("nothing of InnoDB's monitor")
			}
			if folder := os.Getenv("MONITOR"); folder != "" { // records it
				rows, err := g.Query(t.Context(), 1, "SHOW ENGINE INNODB STATUS")
				must(t, err)
				must(t, os.WriteFile(folder+"/"+string(kind)+".txt", []byte(rows[0][2]), 0o644))
			}
		})
	}
}
