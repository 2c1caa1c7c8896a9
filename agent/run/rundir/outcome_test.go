package rundir

import (
	"cmp"
	"testing"
)

func TestConclude(t *testing.T) {
	exit := func(n int) *int { return &n }
	for name, tt := range map[string]struct {
		meta   Meta
		output Output
		want   Outcome
		reason string
	}{
		"aborted":                         {Meta{End: End{Aborted: "lag>10s: 12 s", ExitCode: exit(0)}}, Output{Complete: true}, Aborted, "lag>10s: 12 s"},
		"exit status 0":                   {Meta{End: End{ExitCode: exit(0)}}, Output{}, Succeeded, ""},
		"exit status 1":                   {Meta{End: End{ExitCode: exit(1)}}, Output{Complete: true}, Failed, "exit status 1"},
		"exit status 1 with a cause":      {Meta{End: End{ExitCode: exit(1)}}, Output{Complaint: "FATAL: no server"}, Failed, "exit status 1: FATAL: no server"},
		"signal":                          {Meta{End: End{Signal: "SIGKILL"}}, Output{}, Failed, "ended by SIGKILL"},
		"a signal after an error":         {Meta{End: End{Signal: "SIGKILL"}}, Output{Complaint: "FATAL: x"}, Failed, "ended by SIGKILL: FATAL: x"},
		"interrupted by the user":         {Meta{End: End{Outcome: Interrupted, Reason: "ended by SIGINT", Signal: "SIGINT"}}, Output{Failure: "x"}, Interrupted, "ended by SIGINT"},
		"exit status 0, failed all same":  {Meta{End: End{ExitCode: exit(0), Outcome: Succeeded}}, Output{Complete: true, Failure: "no connection"}, Failed, "no connection"},
		"unknown status, summary":         {Meta{}, Output{Complete: true, Complaint: "one deadlock"}, Succeeded, ""},
		"unknown status, error":           {Meta{}, Output{Complaint: "FATAL: x"}, Failed, "FATAL: x"},
		"unknown status, neither":         {Meta{}, Output{}, Lost, "no exit status was seen and the output has no summary"},
		"first lost, then output is read": {Meta{End: End{Outcome: Lost, Reason: "x"}}, Output{Complete: true}, Succeeded, ""},
		"abandoned copy":                  {Meta{}, Output{Missing: "it was removed there"}, Lost, "it was removed there"},
		"abandoned copy of a failed run":  {Meta{End: End{ExitCode: exit(1)}}, Output{Missing: "it was removed there"}, Failed, "exit status 1"},
		"pipe closed, of version 0.1":     {Meta{End: End{Outcome: Succeeded}}, Output{}, Succeeded, ""},
		"recorded as failed":              {Meta{End: End{Outcome: Failed, Reason: "x"}}, Output{}, Failed, "x"},
		"pipe closed after an error":      {Meta{End: End{Outcome: Succeeded}}, Output{Complaint: "FATAL: x"}, Failed, "FATAL: x"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // a restarted agent concludes again
				tt.meta.Conclude(tt.output)
				if tt.meta.Outcome != tt.want || tt.meta.Reason != tt.reason {
					t.Errorf("got %s: %s, want %s: %s", tt.meta.Outcome, tt.meta.Reason, tt.want, cmp.Or(tt.reason, "(no reason)"))
				}
			}
		})
	}
}
