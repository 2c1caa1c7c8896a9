package option_test

import (
	"fmt"
	"strings"
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

func TestSyntax(t *testing.T) {
	getopt := option.Syntax{
		Short: map[byte]string{'c': "clients", 'd': "database"}, Switches: map[byte]string{'a': "all", 'v': ""},
		Valued: []string{"rate"}, Flags: []string{"random"}, Optional: "database",
	}
	pflag := option.Syntax{Short: map[byte]string{'c': "clients"}, Switches: map[byte]string{'h': "help"}, Flags: []string{"all"}, PFlag: true}
	for _, c := range []struct {
		syntax     option.Syntax
		args, want string
	}{
		{getopt, "-c4 -vac 5 x --rat 7 --cl=8 --all -- -c1", "clients=4 all=on clients=5 rate=7 clients=8 all=on | x -c1"},
		{getopt, "-d -v -d x --ra --rand --unknown y -xc3 -", "database=x ra=on random=on unknown=on | y -"},
		{getopt, "run --rate", " | run"},
		{getopt, "run -c", " | run"},
		{pflag, "-c=4 -c 5 -c6 --new 7 --all run --new=8 -h", "clients=4 clients=5 clients=6 new=7 all=on new=8 help=on | run"},
		{pflag, "run --new", " | run"},
	} {
		var got []string
		words := c.syntax.Read(strings.Fields(c.args), func(name, value string) { got = append(got, name+"="+value) })
		if text := strings.Join(got, " ") + " | " + strings.Join(words, " "); text != c.want {
			t.Errorf("%s: have %q, want %q", c.args, text, c.want)
		}
	}
}
