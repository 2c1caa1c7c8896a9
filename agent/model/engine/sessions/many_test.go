package sessions

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql/mysqltest"
)

// TestManySessions guards that 10,000 sessions in few states are counted completely and cheaply,
// and that of 10,000 states the most frequent ones are counted, which the sample reports.
func TestManySessions(t *testing.T) {
	const sessions = 10_000
	for _, c := range []struct {
		name    string
		states  int
		counted float64
		missing []string
	}{
		{"few states", 20, sessions, nil},
		{"a state each", sessions, mostStates, []string{cutShort}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var status, list strings.Builder
			fmt.Fprintln(&status, "t_req\tt_resp\terr\tThreads_connected\tUptime")
			fmt.Fprintln(&list, "t_req\tt_resp\terr\tstate\tevent\tn\tseen")
			const ticks = 5
			for tick := range ticks {
				at := fmt.Sprintf("%d.01\t%d.02\t\t", 1_795_000_000+tick, 1_795_000_000+tick)
				fmt.Fprintf(&status, "%s%d\t100\n", at, sessions)
				for i := range c.states {
					fmt.Fprintf(&list, "%sstate %d\tNULL\t%d\t%[3]d\n", at, i, sessions/c.states)
				}
			}
			for name, text := range map[string]string{"status": status.String(), "sessions": list.String()} {
				if err := os.WriteFile(filepath.Join(dir, "n1."+name+".tsv"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			frames, _ := mysqltest.Play(t, dir, []mysqltest.Node{{
				Name: "n1", Variables: mysql.Values{"version": "10.11.19-MariaDB"}, Details: []mysql.Detail{New()},
				Table: func(statement string) string {
					if !strings.HasSuffix(statement, bounded) {
						t.Errorf("without a bound: %s", statement)
					}
					return "sessions"
				},
			}})
			if len(frames) != ticks {
				t.Fatalf("%d frames", len(frames))
			}
			for _, f := range frames {
				s := f.Samples[0]
				if s.Err != nil {
					t.Fatal(s.Err)
				}
				counted, series := 0.0, 0
				for _, v := range s.Status.Values {
					if v.Metric == engine.ActiveSessions {
						counted += v.V
						series++
					}
				}
				if counted != c.counted || series > 32 || !slices.Equal(s.Status.Missing, c.missing) {
					t.Errorf("%g sessions in %d series, missing %q", counted, series, s.Status.Missing)
				}
			}
		})
	}
}

// answer is a server that answers each statement with the same rows, or not at all.
type answer struct {
	rows  []mysql.Row
	hangs bool
	asked int
}

// Rows implements mysql.Querier.
func (a *answer) Rows(ctx context.Context, _ string) ([]mysql.Row, error) {
	a.asked++
	if a.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return a.rows, nil
}

func cells(texts ...string) (values []sql.NullString) {
	for _, text := range texts {
		values = append(values, sql.NullString{String: text, Valid: true})
	}
	return values
}

// TestSlowList guards that a server that is too slow to list its sessions is still sampled, and is
// not asked each second.
func TestSlowList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, server := New(), &answer{hangs: true}
		tick := &mysql.Tick{Target: &engine.Target{}, Server: &mysql.Server{}}
		read := func() []string {
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			defer cancel()
			out := &engine.Status{}
			if err := d.Read(ctx, server, tick, out); err != nil {
				t.Fatal(err)
			}
			return out.Missing
		}
		for range 150 {
			if missing := read(); !slices.Equal(missing, []string{tooSlow}) {
				t.Fatalf("missing %q", missing)
			}
			time.Sleep(time.Second)
		}
		if server.asked != 3 {
			t.Errorf("asked %d times in 150 s", server.asked)
		}
		server.hangs = false
		time.Sleep(askAgain)
		if missing := read(); missing != nil {
			t.Errorf("missing %q of a server that answers", missing)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		server.hangs = true
		if err := d.Read(ctx, server, tick, &engine.Status{}); err == nil {
			t.Error("no error at the end of the sample's own time")
		}
	})
}

// BenchmarkManySessions reads one answer with 10,000 states.
func BenchmarkManySessions(b *testing.B) {
	d := New()
	server := &answer{}
	for i := range 10_000 {
		server.rows = append(server.rows, mysql.NewRow([]string{"state", "event", "n", "seen"}, cells(fmt.Sprintf("state %d", i), "", "1", "1")))
	}
	tick := &mysql.Tick{Target: &engine.Target{}, Server: &mysql.Server{}}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Read(b.Context(), server, tick, &engine.Status{}); err != nil {
			b.Fatal(err)
		}
	}
}
