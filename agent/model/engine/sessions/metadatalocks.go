package sessions

import (
	"context"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// metadataLock is a lock of performance_schema.metadata_locks, or of MariaDB's METADATA_LOCK_INFO.
type metadataLock struct {
	object, mode, id string
	kind             evidence.Kind
}

// newMetadataLock reads a row.
func newMetadataLock(row mysql.Row) metadataLock {
	m := metadataLock{mode: strings.TrimPrefix(strings.ToUpper(row.Text("mode")), "MDL_"), id: row.Text("id"), kind: evidence.MetadataLock}
	switch kind := strings.ToUpper(row.Text("type")); {
	case strings.HasPrefix(kind, "GLOBAL"), strings.HasPrefix(kind, "COMMIT"):
		m.object, m.kind = "GLOBAL", evidence.GlobalLock
	case strings.HasPrefix(kind, "BACKUP"):
		m.object, m.kind = "BACKUP", evidence.BackupLock
	case strings.HasPrefix(kind, "USER"):
		m.object, m.kind = row.Text("object"), evidence.UserLock
	default:
		m.object = strings.Trim(row.Text("db")+"."+row.Text("object"), ".")
	}
	return m
}

// conflicts are the granted locks that a waiting request can wait for. What is not listed waits for every exclusive
// lock.
var conflicts = map[string][]string{
	"EXCLUSIVE":         {"SHARED", "INTENTION", "EXCLUSIVE", "BACKUP"},
	"SHARED_NO_WRITE":   {"SHARED_WRITE", "SHARED_UPGRADABLE", "SHARED_NO", "SHARED_READ_ONLY", "EXCLUSIVE"},
	"SHARED_NO_READ":    {"SHARED_READ", "SHARED_WRITE", "SHARED_UPGRADABLE", "SHARED_NO", "EXCLUSIVE"},
	"SHARED":            {"INTENTION_EXCLUSIVE", "EXCLUSIVE"}, // of GLOBAL and COMMIT
	"INTENTION_EXCLUSI": {"SHARED", "EXCLUSIVE", "BACKUP"},
}

// isHolder reports whether a granted lock can be what a request in a mode waits for.
func isHolder(pending, granted string) bool {
	if of := conflicts[pending[:min(len(pending), 17)]]; of != nil {
		for _, mode := range of {
			if strings.HasPrefix(granted, mode) {
				return true
			}
		}
		return false
	}
	return strings.Contains(granted, "EXCLUSIVE") && !strings.HasPrefix(granted, "INTENTION") || strings.HasPrefix(granted, "SHARED_NO") ||
		strings.HasPrefix(granted, "BACKUP_FTWRL") || strings.HasPrefix(granted, "BACKUP_WAIT") || strings.HasPrefix(granted, "BACKUP_BLOCK")
}

// metadataLocks reads who holds the metadata locks that sessions wait for.
func (w *witness) metadataLocks(ctx context.Context) error {
	waits := false
	for kind := range w.a.Waiting {
		waits = waits || kind != evidence.RowLock
	}
	if !waits {
		return nil
	}
	if on, _ := w.server.Variables.Bool("performance_schema"); on {
		done, err := w.fromSchema(ctx)
		if done || err != nil {
			return err
		}
	}
	if !w.server.MariaDB() {
		w.a.Missing = append(w.a.Missing, "metadata locks (performance_schema with the instrument wait/lock/metadata/sql/mdl)")
		return nil
	}
	return w.fromPlugin(ctx)
}

// fromSchema reads performance_schema. It is not done if that has no metadata locks.
func (w *witness) fromSchema(ctx context.Context) (done bool, err error) {
	rows, err := w.rows(ctx, pendingLocks, "")
	if err != nil || len(rows) == 0 {
		return false, err
	}
	objects := map[string][]metadataLock{}
	var where []string
	for _, row := range rows {
		m := newMetadataLock(row)
		if objects[m.object] == nil && len(where) < 8 {
			where = append(where, "(OBJECT_TYPE = "+quoted(row.Text("type"))+" AND "+is("OBJECT_SCHEMA", row, "db")+" AND "+is("OBJECT_NAME", row, "object")+")")
		}
		objects[m.object] = append(objects[m.object], m)
	}
	granted, err := w.rows(ctx, grantedLocks+"("+strings.Join(where, " OR ")+")"+grantedEnd, "")
	if err != nil {
		return false, err
	}
	held := map[string][]metadataLock{}
	for _, row := range granted {
		m := newMetadataLock(row)
		held[m.object] = append(held[m.object], m)
	}
	for object, pending := range objects {
		w.queue(object, pending, held[object])
	}
	return true, nil
}

// queue adds the sessions that wait for an object. A request waits for conflicting locks that are granted or, if there
// are none, for the requests for exclusive locks before it.
func (w *witness) queue(object string, pending, granted []metadataLock) {
	for _, p := range pending {
		holders := 0
		for _, g := range granted {
			if g.id != p.id && isHolder(p.mode, g.mode) {
				w.a.Block(p.id, g.id, p.kind, object)
				w.hold(g)
				holders++
			}
		}
		for _, other := range pending {
			if holders == 0 && other.id != p.id && isHolder(p.mode, other.mode) {
				w.a.Block(p.id, other.id, p.kind, object)
			}
		}
	}
}

// hold notes what a session holds.
func (w *witness) hold(m metadataLock) {
	if s := w.a.Session(m.id); s != nil && s.Holds == "" {
		s.Holds = strings.ToLower(m.mode) + " of " + m.object
	}
}

// fromPlugin reads MariaDB's plugin, which lists who holds locks. Who waits is in the states of sessions.
func (w *witness) fromPlugin(ctx context.Context) error {
	ids := []string{"0"}
	for i := range w.a.Sessions {
		if id := w.a.Sessions[i].ID; strings.Trim(id, "0123456789") == "" {
			ids = append(ids, id)
		}
	}
	rows, err := w.rows(ctx, lockInfo+strings.Join(ids, ",")+") LIMIT 300", "metadata locks (performance_schema, or INSTALL SONAME 'metadata_lock_info')")
	for _, row := range rows {
		m := newMetadataLock(row)
		if m.mode == "SHARED" || m.mode == "BACKUP_START" {
			continue
		}
		if w.a.Add(m.id) != nil {
			w.hold(m)
			w.held = append(w.held, m)
		}
	}
	return err
}

func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

// is compares a column with a value of a row, which may be NULL.
func is(column string, row mysql.Row, name string) string {
	if v, ok := row.Lookup(name); ok {
		return column + " = " + quoted(v)
	}
	return column + " IS NULL"
}
