package option_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/agent/model/tool/option"
	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

func Example() {
	s := option.New()
	s.Values["user"] = "bench"
	s.SetDefault("user", "root") // from a file
	s.SetDefault("password", "hunter2")
	s.Words = append(s.Words, "run")
	fmt.Println(s.Text("user", "root"), s.Values["password"], s.Word(0))
	// Output: bench *** run
}

func TestValues(t *testing.T) {
	s := option.New()
	s.Values = map[string]string{"n": "16", "bad": "x", "negative": "-1", "large": "4294967296", "every": "10s", "empty": ""}
	for name, want := range map[string]int{"n": 16, "bad": 0, "negative": 0, "large": 0, "empty": 0, "absent": 7} {
		if got := s.Number(name, 7); got != want {
			t.Errorf("Number(%s) = %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]time.Duration{"every": 10 * time.Second, "bad": 0, "absent": time.Minute} {
		if got := s.Duration(name, time.Minute); got != want {
			t.Errorf("Duration(%s) = %v, want %v", name, got, want)
		}
	}
	if s.Text("empty", "else") != "else" || !s.Has("empty") || s.Has("absent") || s.Word(0) != "" {
		t.Error("empty and absent values are mixed up")
	}
	s.SetDefault("n", "1")
	s.SetDefault("new", "2")
	if got := s.Labels(map[string]string{"n": "threads", "new": "x", "empty": "y", "absent": "z"}); fmt.Sprint(got) != "map[threads:16 x:2]" {
		t.Errorf("labels %v", got)
	}
}

func TestTargets(t *testing.T) {
	if got := option.Targets("a, [::1]", "1,2", false); got != "a:1,[::1]:1,a:2,[::1]:2" {
		t.Error(got)
	}
	if got := option.Targets("a,b", "1,2", true); got != "a:1,a:2,b:1,b:2" {
		t.Error(got)
	}
}
