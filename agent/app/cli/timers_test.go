package cli

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

// TestRelaxTimers guards that all threads, also those of the runtime, get the slack.
func TestRelaxTimers(t *testing.T) {
	if err := os.WriteFile("/proc/"+strconv.Itoa(os.Getppid())+"/timerslack_ns", []byte("50000"), 0); err != nil {
		t.Skipf("needs Linux and root: %v", err)
	}
	relaxTimers()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		slack, err := os.ReadFile("/proc/" + thread.Name() + "/timerslack_ns")
		if err == nil && string(bytes.TrimSpace(slack)) != strconv.Itoa(timerSlack) {
			t.Errorf("thread %s has a slack of %s ns", thread.Name(), slack)
		}
	}
}
