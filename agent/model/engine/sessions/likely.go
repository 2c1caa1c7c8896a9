package sessions

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// likely concludes who holds what sessions wait for, where the server lists only states: MariaDB has no list of requests
// for metadata locks.
func (w *witness) likely() {
	w.behindFullDisk()
	waiting := map[evidence.Kind][]*evidence.Session{}
	for i := range w.a.Sessions {
		s := &w.a.Sessions[i]
		if s.Waits != nil && len(s.Waits.By) == 0 && s.Waits.Kind != evidence.RowLock {
			waiting[s.Waits.Kind] = append(waiting[s.Waits.Kind], s)
		}
	}
	for kind, all := range waiting {
		switch kind {
		case evidence.MetadataLock:
			w.behindChange(all)
		case evidence.GlobalLock, evidence.BackupLock:
			w.behindLock(kind, all)
		}
	}
}

// behindFullDisk has commits wait for the session that waits for space: the binary log is written in order.
func (w *witness) behindFullDisk() {
	full := slices.IndexFunc(w.a.Sessions, func(s evidence.Session) bool { return s.Waits != nil && s.Waits.Kind == fullDisk })
	for i := range w.a.Sessions {
		if s := &w.a.Sessions[i]; full >= 0 && s.Waits != nil && s.Waits.Kind == evidence.Committing && len(s.Waits.By) == 0 {
			s.Waits.By = []string{w.a.Sessions[full].ID}
		}
	}
}

// behindChange finds the statement that changes or locks a table among those that wait: it waits for the transactions
// that used the table before, and all others wait for it.
func (w *witness) behindChange(waiting []*evidence.Session) {
	change := -1
	for i, s := range waiting {
		if isChange(s.Statement) && (change < 0 || s.Seconds.Value > waiting[change].Seconds.Value) {
			change = i
		}
	}
	var first *evidence.Session
	if change >= 0 {
		first = waiting[change]
	}
	holder, certain := w.holderOf(first)
	for _, s := range waiting {
		switch {
		case s == first && holder != nil:
			s.Waits.By, s.Waits.Likely = []string{holder.ID}, !certain
		case s != first && first != nil:
			s.Waits.By = []string{first.ID}
		case first == nil && holder != nil:
			s.Waits.By, s.Waits.Likely = []string{holder.ID}, !certain
		}
	}
}

// holderOf returns who holds the lock of a table that a statement changes: by the list of locks, or the only transaction
// that is older and does not wait.
func (w *witness) holderOf(change *evidence.Session) (holder *evidence.Session, certain bool) {
	for _, m := range w.held {
		s := w.a.Session(m.id)
		if s == nil || s.Waits != nil || m.kind != evidence.MetadataLock || change != nil && !mentions(change.Statement, m.object) {
			continue
		}
		if holder == nil || s.Transaction.Value > holder.Transaction.Value {
			holder = s
		}
	}
	if holder != nil {
		return holder, true
	}
	for i := range w.a.Sessions {
		s := &w.a.Sessions[i]
		if s.Waits != nil || !s.Transaction.Known || change != nil && s.Transaction.Value < change.Seconds.Value {
			continue
		}
		if holder != nil {
			return nil, false // several
		}
		holder = s
	}
	return holder, false
}

// behindLock finds who holds a lock of the whole server.
func (w *witness) behindLock(kind evidence.Kind, waiting []*evidence.Session) {
	for _, m := range w.held {
		holder := w.a.Session(m.id)
		if m.kind != kind || holder == nil || holder.Waits != nil || !isHolder("BACKUP_DML", m.mode) && !isHolder("INTENTION_EXCLUSIVE", m.mode) {
			continue
		}
		if strings.HasPrefix(m.mode, "BACKUP_FTWRL") { // since MariaDB 10.5, FLUSH TABLES WITH READ LOCK takes it
			w.a.Waiting[evidence.GlobalLock] = w.a.Waiting[kind]
			delete(w.a.Waiting, kind)
			kind = evidence.GlobalLock
		}
		for _, s := range waiting {
			s.Waits.Kind, s.Waits.By = kind, []string{holder.ID}
		}
		return
	}
}

// isChange reports whether a statement changes, drops or locks a table.
func isChange(statement string) bool {
	word, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(statement)), " ")
	switch word {
	case "ALTER", "DROP", "TRUNCATE", "RENAME", "OPTIMIZE", "CREATE", "LOCK", "ANALYZE", "REPAIR":
		return true
	}
	return false
}

// mentions reports whether a statement names a table, with or without its schema.
func mentions(statement, object string) bool {
	_, table, ok := strings.Cut(object, ".")
	if !ok {
		table = object
	}
	return table != "" && strings.Contains(strings.ToLower(statement), strings.ToLower(table))
}
