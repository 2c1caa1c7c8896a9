package galera

import (
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// said is what a node says at one second.
func said(target string, second int, queue, pausedSeconds, sent float64) evidence.Answer {
	a := evidence.Answer{Target: target, Engine: mysql.Name, At: time.Unix(int64(second), 0), Active: 16}
	a.Set("wsrep_local_recv_queue", queue)
	a.Set("wsrep_flow_control_paused_ns", pausedSeconds*1e9)
	a.Set("wsrep_flow_control_sent", sent)
	return a
}

func TestFlowControlStall(t *testing.T) {
	parted := evidence.Answer{Target: "n1", Engine: mysql.Name}
	parted.Say("wsrep_cluster_status", "non-Primary")
	parted.Set("wsrep_cluster_size", 1)
	silent := evidence.Answer{Target: "n3", Engine: mysql.Name, Error: "no answer within 0.9 s"}
	for name, c := range map[string]struct {
		moments      []evidence.Moment
		reason, text string
	}{
		"a slow node": {[]evidence.Moment{{Answers: []evidence.Answer{said("n1", 0, 0, 10, 5), said("n3", 0, 160, 10, 5)}},
			{Answers: []evidence.Answer{said("n1", 2, 0, 11.9, 5), said("n3", 2, 170, 11.9, 6)}}},
			"flow control", "flow control paused writes on n1 for 95 % of the time; n3 had up to 170 write sets to apply and asked for the pauses"},
		"a node that does not answer": {[]evidence.Moment{{Answers: []evidence.Answer{said("n1", 0, 0, 10, 5), silent}},
			{Answers: []evidence.Answer{said("n1", 2, 0, 12, 5), silent}}},
			"flow control", "flow control paused writes on n1 for 100 % of the time; n3 did not answer"},
		"calm": {[]evidence.Moment{{Answers: []evidence.Answer{said("n1", 0, 0, 10, 5)}}, {Answers: []evidence.Answer{said("n1", 2, 0, 10.1, 5)}}},
			evidence.Unknown, "not explained by what was captured"},
		"parted": {[]evidence.Moment{{Answers: []evidence.Answer{parted}}}, "not in the primary component",
			"n1 was not in the primary component (wsrep_cluster_status = non-Primary, 1 nodes)"},
	} {
		if got := evidence.Explain(16, 5, c.moments); got.Reason != c.reason || got.Text != c.text {
			t.Errorf("%s: %s: %s", name, got.Reason, got.Text)
		}
	}
}
