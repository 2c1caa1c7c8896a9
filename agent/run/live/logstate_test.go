package live

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// TestDecide has a row for each transition in the comment of logState.
func TestDecide(t *testing.T) {
	before, wrote, later := time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)
	fresh := candidate{named: true, relation: differs, size: 10, changed: later}
	empty := candidate{named: true, relation: prefix, changed: later}
	same := candidate{named: true, relation: continues, at: 50, size: 50, changed: later}
	grown := candidate{named: true, relation: continues, at: 50, size: 60, changed: later}
	copied := candidate{relation: continues, at: 50, size: 60, changed: wrote}
	between := candidate{relation: differs, size: 10, changed: later}
	old := candidate{relation: differs, size: 10, changed: before}
	const stay, detach = -1, -2
	for name, tt := range map[string]struct {
		o     observation
		files []candidate
		want  int // of files
		state logState
		gap   string
	}{
		"the name is the file's":                   {observation{state: following, read: true}, nil, stay, 0, ""},
		"renamed, not read to the end":             {observation{state: finishing, usage: follow.Unused, kept: true}, []candidate{fresh}, stay, 0, ""},
		"renamed, no new file":                     {observation{state: finishing, read: true, usage: follow.Unused, kept: true}, nil, stay, 0, ""},
		"renamed, the new file is empty":           {observation{state: finishing, read: true, usage: follow.Unused, kept: true}, []candidate{empty}, stay, 0, ""},
		"renamed, the tool has the new file":       {observation{state: finishing, read: true, usage: follow.Unused, kept: true}, []candidate{fresh}, 0, following, ""},
		"renamed, the tool keeps the old file":     {observation{state: finishing, read: true, usage: follow.Written, kept: true}, []candidate{fresh}, detach, 0, ""},
		"renamed, who writes is unknown":           {observation{state: finishing, read: true, kept: true}, []candidate{fresh}, detach, 0, ""},
		"renamed twice":                            {observation{state: finishing, read: true, usage: follow.Unused, kept: true}, []candidate{between, fresh}, 0, superseded, ""},
		"renamed twice, who writes is unknown":     {observation{state: finishing, read: true, kept: true}, []candidate{between, fresh}, 0, superseded, ""},
		"renamed, files from before":               {observation{state: finishing, read: true, usage: follow.Unused, kept: true, changed: wrote}, []candidate{old, fresh}, 1, following, ""},
		"renamed and removed":                      {observation{state: finishing, read: true, usage: follow.Unused}, []candidate{fresh}, 0, following, gapRemoved},
		"renamed twice, one was compressed":        {observation{state: finishing, read: true, usage: follow.Unused, kept: true, compressed: true}, []candidate{fresh}, 0, following, gapCompressed},
		"replaced by a copy":                       {observation{state: finishing, read: true, usage: follow.Unused}, []candidate{same}, 0, following, ""},
		"replaced by a copy, the tool has the old": {observation{state: finishing, read: true, usage: follow.Written}, []candidate{same}, stay, 0, ""},
		"replaced by a copy, unknown":              {observation{state: finishing, read: true}, []candidate{same}, stay, 0, ""},
		"replaced by a copy that grows":            {observation{state: finishing, read: true}, []candidate{grown}, 0, following, ""},
		"replaced by a copy that was rotated":      {observation{state: finishing, read: true, usage: follow.Unused, kept: true}, []candidate{copied, fresh}, 0, superseded, ""},
		"an earlier file is read, the name's is":   {observation{state: superseded, read: true, kept: true}, []candidate{fresh}, 0, following, ""},
		"copytruncate":                             {observation{state: missing, read: true, kept: true}, []candidate{copied, fresh}, 0, superseded, ""},
		"copytruncate, twice":                      {observation{state: missing, read: true, kept: true, changed: wrote}, []candidate{copied, between, fresh}, 0, superseded, ""},
		"truncated":                                {observation{state: missing, read: true}, []candidate{empty}, stay, 0, ""},
		"truncated, other lines":                   {observation{state: missing, read: true}, []candidate{fresh}, 0, following, gapTruncated},
		"written again in place":                   {observation{state: missing, read: true}, []candidate{grown}, 0, following, ""},
		"cut":                                      {observation{state: missing, read: true}, []candidate{{named: true, relation: cut, at: 40, size: 45}}, 0, following, gapTruncated},
		"replaced by an edited file":               {observation{state: finishing, read: true, usage: follow.Unused, kept: true}, []candidate{{named: true, relation: edited, at: 70, size: 70}}, 0, following, gapEdited},
		"another follower has the name":            {observation{state: detached, read: true}, []candidate{fresh}, stay, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.o.files = tt.files
			m := decide(&tt.o)
			got := stay
			for i := range tt.o.files {
				if m.to == &tt.o.files[i] {
					got = i
				}
			}
			if m.detach {
				got = detach
			}
			if got != tt.want || m.state != tt.state || m.gap != tt.gap {
				t.Errorf("file %d, state %d, gap %q; want %d, %d, %q", got, m.state, m.gap, tt.want, tt.state, tt.gap)
			}
		})
	}
}

// TestRelation guards how a file is recognised.
func TestRelation(t *testing.T) {
	text := strings.Repeat("a line\n", 2000)
	read := []byte(text[:10_000])
	for name, p := range map[string]passage{
		"open":      {head: read[:rundir.HeadSize], tail: read[9000:], end: 10_000, content: bytes.NewReader(read)},
		"only kept": {head: read[:rundir.HeadSize], tail: read[9000:], from: 10_000, end: 10_000},
	} {
		for file, want := range map[string]relation{
			text[:10_000]: continues, text: continues, text[:5000]: prefix, text[:10]: prefix, "": prefix,
			"b" + text[1:]: differs, text[:9999] + "x" + text[10_000:]: edited, text[:5000] + "x": cut, "a lone": differs,
		} {
			got, _ := p.relate(strings.NewReader(file), int64(len(file)), func(n int64) bool { return n >= 1000 })
			if name == "only kept" && want == cut {
				want = got // what is between is not known
			}
			if got != want {
				t.Errorf("%s, %d bytes, %.20q: %d, want %d", name, len(file), file, got, want)
			}
		}
	}
}
