package hammerdb

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/benchwatch/benchwatch/agent/base/secret"
)

// sqliteHeader begins every file of SQLite.
const sqliteHeader = "SQLite format 3\x00"

// isJobDatabase recognises hammer.DB, the database of HammerDB's jobs, by its tables.
func isJobDatabase(head []byte) bool {
	return bytes.HasPrefix(head, []byte(sqliteHeader)) && bytes.Contains(head, []byte("JOBMAIN"))
}

// ErrJobDatabase is returned for a file that is no complete job database.
var ErrJobDatabase = errors.New("not a complete job database of HammerDB")

// decodeJobs writes the runs of a job database as the text that the parser reads: a header, the settings, the output of
// all virtual users, the transaction counter and the timings of each job. Builds and checks are jobs, too.
func decodeJobs(ctx context.Context, path string, w io.Writer) error {
	db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(path, "?", "%3f")+"?mode=ro&immutable=1")
	if err != nil {
		return fmt.Errorf("open job database: %w", err)
	}
	defer db.Close()
	out := bufio.NewWriter(w)
	d := jobDecoder{ctx, db, out}
	err = d.each("SELECT jobid, coalesce(db, ''), coalesce(bm, ''), coalesce(jobdict, ''), timestamp FROM JOBMAIN ORDER BY timestamp, rowid", nil, d.job)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJobDatabase, err)
	}
	return out.Flush()
}

// jobDecoder reads one job database.
type jobDecoder struct {
	ctx context.Context
	db  *sql.DB
	out *bufio.Writer // which keeps its first error
}

// each calls row with the columns of each row of a query.
func (d *jobDecoder) each(query string, args []any, row func(columns []string) error) error {
	rows, err := d.db.QueryContext(d.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	columns, cells := make([]string, len(names)), make([]any, len(names))
	for i := range cells {
		cells[i] = &columns[i]
	}
	for rows.Next() {
		if err := rows.Scan(cells...); err != nil {
			return err
		}
		if err := row(columns); err != nil {
			return err
		}
	}
	return rows.Err()
}

// job writes one job.
func (d *jobDecoder) job(columns []string) error {
	id, database, benchmark, dictionary, at := columns[0], columns[1], columns[2], columns[3], columns[4]
	fmt.Fprintf(d.out, jobHeader+"%s @ %s\nBenchmark set to %s for %s\n", id, sqlTime(at), benchmark, database)
	d.settings(dictionary)
	job := []any{id}
	err := d.each("SELECT vu, output FROM JOBOUTPUT WHERE jobid = ? ORDER BY rowid", job, d.output)
	if err != nil {
		return err
	}
	opened := false
	err = d.each("SELECT timestamp, counter, metric FROM JOBTCOUNT WHERE jobid = ? ORDER BY timestamp, rowid", job, func(c []string) error {
		if !opened {
			opened = true
			fmt.Fprintf(d.out, "{\"%s %s\": {\n", database, c[2])
		}
		fmt.Fprintf(d.out, "    \"%s\": \"%s\",\n", sqlTime(c[0]), c[1])
		return nil
	})
	if opened {
		fmt.Fprintln(d.out, "  }}")
	}
	if err != nil {
		return err
	}
	return d.each("SELECT procname, min_ms, avg_ms, max_ms, p99_ms, p95_ms, p50_ms FROM JOBTIMING WHERE jobid = ? AND summary = 1 ORDER BY rowid", job,
		func(c []string) error {
			fmt.Fprintf(d.out, "  \"%s\": {\n", c[0])
			for i, name := range []string{"min_ms", "avg_ms", "max_ms", "p99_ms", "p95_ms", "p50_ms"} {
				fmt.Fprintf(d.out, "    \"%s\": \"%s\",\n", name, c[i+1])
			}
			fmt.Fprintln(d.out, "  }")
			return nil
		})
}

// settings writes the settings of a dictionary of Tcl, "tpcc {maria_rampup 1 maria_pass x} …", that are labels.
func (d *jobDecoder) settings(dictionary string) {
	words := strings.Fields(strings.NewReplacer("{", " ", "}", " ").Replace(dictionary))
	for i := 0; i+1 < len(words); i++ {
		if label := settingLabel(words[i]); label != "" {
			value := secret.Value(label, words[i+1])
			fmt.Fprintf(d.out, "Value %s for %s is the same as existing value %s, no change made\n", value, words[i], value)
		}
	}
}

// output writes what a virtual user printed, as in HammerDB's log. User 0 is the program.
func (d *jobDecoder) output(columns []string) error {
	for line := range strings.Lines(columns[1]) {
		if line = strings.TrimSpace(line); columns[0] != "0" && line != "" {
			line = "Vuser " + columns[0] + ":" + line
		}
		fmt.Fprintln(d.out, line)
	}
	return nil
}

// sqlTime returns a time as the database has it: the driver may have read it as a time in UTC.
func sqlTime(text string) string {
	return strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "Z")
}
