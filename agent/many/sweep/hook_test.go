package sweep

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHookValuesAreNotRun guards that a value in a hook is always a word of the shell and never
// part of its program, wherever the placeholder is, and that a place where this is impossible is
// refused.
func TestHookValuesAreNotRun(t *testing.T) {
	values := []string{
		"$(touch f)", "`touch f`", "'; touch f; '", `"; touch f; "`, "x[$(touch f)]", "\n touch f\n", "a b", `\`, "${x:-$(touch f)}", "-", "\"$(touch f)\"",
	}
	sets := []Set{{Name: "a", Values: values}}
	for hook, allowed := range map[string]bool{
		"printf %s {a}":                   true,
		"printf %s x{a}y":                 true,
		"printf %s x={a}":                 true,
		"X={a}; printf %s \"$X\"":         true,
		"printf %s $(printf %s {a})":      true,
		"if true; then printf %s {a}; fi": true,
		`printf %s "$BENCHWATCH_A"`:       true,
		`printf %s "$SWEEP_A"`:            true,
		`printf %s "{a}"`:                 false,
		`printf %s '{a}'`:                 false,
		`printf %s '"{a}"'`:               false,
		`printf %s "$(printf %s {a})"`:    false,
		"printf %s `printf %s {a}`":       false,
		"printf %s $(({a}))":              false,
		"printf %s ${a}":                  false,
		"printf %s ${X:-{a}}":             false,
		`printf %s \{a}`:                  false,
		"cat <<END\n{a}\nEND\n":           false,
		"cat <<'END'\n{a}\nEND\n":         false,
		"echo # \"\necho \"{a}\"":         false,
		"printf %s {a} \"{a}\"":           false,
		"printf %s {a} 'unterminated":     false,
		"{a}() { true; }":                 false,
	} {
		err := CheckHook(hook, sets)
		if (err == nil) != allowed {
			t.Errorf("%s: %v", hook, err)
		}
		if err != nil && !strings.Contains(err.Error(), `use "$BENCHWATCH_A"`) {
			t.Errorf("%s: the message does not name the variable: %v", hook, err)
		}
		if !allowed {
			continue
		}
		for _, v := range values {
			s := &Sweep{ID: "s", Sets: sets}
			step := &Step{RunID: "s-001", Values: map[string]string{"a": v}}
			cmd := exec.Command("sh", "-c", hookText(hook, step))
			cmd.Dir, cmd.Env = t.TempDir(), s.environment(step)
			out, err := cmd.CombinedOutput()
			if _, ran := os.Stat(filepath.Join(cmd.Dir, "f")); ran == nil {
				t.Errorf("%s: the value %q was run", hook, v)
			}
			fields := strings.Contains(hook, "$(") // the shell splits the output of a command
			if err != nil || !fields && !strings.Contains(string(out), v) {
				t.Errorf("%s: %q printed %q, %v", hook, v, out, err)
			}
		}
	}
	if err := CheckHook(`echo "{b}" "unterminated`, sets); err != nil {
		t.Errorf("a hook without a placeholder: %v", err)
	}
}
