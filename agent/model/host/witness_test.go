package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/evidence"
)

// look is what a machine says at one second: seconds without a task for I/O, threads that wait for a disk, and the time
// for which the disk was busy.
func look(second int, full, blocked, busy float64) evidence.Moment {
	a := evidence.Answer{Target: "m", Engine: Procfs, At: time.Unix(int64(second), 0)}
	a.Set(ioFull, full)
	if blocked > 0 {
		a.Set(blockedIn, blocked)
		a.Say(blockedIn, "mariadbd")
		a.Say(blockedAt, "jbd2_log_wait_commit")
	}
	testifyDisks(&a, fmt.Appendf(nil, " 254 0 vda 100 0 800 50 %d 0 800 %d 1 %d %d 0 0 0 0 5 5\n 254 1 vda1 1 1 1 1 1 1 1 1 1 1 1\n",
		100+10*second, 500*second, int(1000*busy), int(1000*busy)))
	return evidence.Moment{Answers: []evidence.Answer{a}}
}

func TestMachineStalls(t *testing.T) {
	held := func(second int, seconds float64) evidence.Moment {
		a := evidence.Answer{Target: "m", Engine: Procfs, At: time.Unix(int64(second), 0)}
		a.Set(heldServers, seconds)
		return evidence.Moment{Answers: []evidence.Answer{a}}
	}
	for name, c := range map[string]struct {
		moments      []evidence.Moment
		reason, text string
	}{
		"calm": {[]evidence.Moment{look(0, 0, 0, 0), look(1, 0.1, 0, 0.1), look(2, 0.1, 0, 0.2)}, evidence.Unknown, "not explained by what was captured"},
		"a disk": {[]evidence.Moment{look(0, 0, 4, 0), look(1, 0.9, 4, 1), look(2, 1.8, 6, 1.99)}, "disk",
			"up to 6 threads of mariadbd were blocked in the kernel at 3 of 3 looks (jbd2_log_wait_commit), and no task ran for I/O in up to 90 % of the time; vda was busy for 100 % of the time, a write took 50.00 ms"},
		"a quota that is over after half of the stall": {[]evidence.Moment{held(0, 0), held(1, 1.4), held(2, 2.8), held(3, 0), held(4, 0)}, "CPU quota",
			"the CPU quota of the servers' control group held them for up to 1.4 core seconds each second"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := evidence.Explain(8, 5, c.moments); got.Reason != c.reason || got.Text != c.text {
				t.Errorf("%s: %s", got.Reason, got.Text)
			}
		})
	}
}
